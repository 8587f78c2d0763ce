import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { load } from 'js-yaml';

export interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface RuleFile {
  readonly file: string;
  /** What Prometheus itself reads: the operator's wrapping taken off. */
  readonly spec: { readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[] };
}

export interface Panel {
  readonly title: string;
  readonly description?: string;
  readonly type: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly templating: { readonly list: readonly { readonly name: string; readonly query?: string }[] };
  readonly panels: readonly Panel[];
}

export const ROOT = new URL('../../', import.meta.url).pathname;
const MONITORING = join(ROOT, 'manifests/monitoring');

export function ruleFiles(): RuleFile[] {
  return globSync('*-rules.yaml', { cwd: MONITORING })
    .sort()
    .map(file => ({
      ...(load(readFileSync(join(MONITORING, file), 'utf8')) as Omit<RuleFile, 'file'>),
      file: basename(file),
    }));
}

export function allRules(): Rule[] {
  return ruleFiles().flatMap(({ spec }) => spec.groups.flatMap(({ rules }) => rules));
}

export function alerts(): (Rule & { readonly alert: string })[] {
  return allRules().filter((rule): rule is Rule & { alert: string } => rule.alert !== undefined);
}

export function dashboard(): Dashboard {
  return JSON.parse(readFileSync(join(MONITORING, 'grafana-dashboard.json'), 'utf8')) as Dashboard;
}

/** Queries of a dashboard with Grafana's variables replaced by values of their kind. */
export function queriesOf({ panels }: Pick<Dashboard, 'panels'>): string[] {
  return panels
    .flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    .map(expr =>
      expr.replaceAll('$__rate_interval', '5m').replaceAll('$__interval', '5m').replaceAll('$__range', '1h'),
    );
}

const KEYWORDS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan']);
const LABEL_LISTS = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g;

/** The names of metrics in a query: what is neither text, label, function, keyword nor duration. */
export function metricNames(query: string): Set<string> {
  const bare = query
    .replace(/"(?:[^"\\]|\\.)*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    .replace(LABEL_LISTS, '');
  const words = bare.matchAll(/(?<![\w:])([a-zA-Z_:][\w:]*)(\s*\()?/g);
  return new Set(
    [...words]
      .filter(([, word = '', call]) => call === undefined && !KEYWORDS.has(word.toLowerCase()))
      .map(([, word = '']) => word),
  );
}
