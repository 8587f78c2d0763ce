import { load } from 'js-yaml';
import type { Condition } from '../controller/condition.ts';
import { isManaged } from '../controller/management-state.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { KUBERNETES_YAML } from '../kube/yaml-schema.ts';
import { condition } from './condition.ts';
import { compareText } from './objects.ts';
import type { StaticPodOperator } from './operator.ts';

/** Says that settings nobody supports stand in the way of an upgrade (spec 30, 19.4 and 19.5). */
export function unsupportedOverridesReconcile({ operator }: { readonly operator: StaticPodOperator }): Reconcile {
  return async (_key, { signal }) => {
    const { spec = {} } = await operator.read(signal);
    if (!isManaged(spec.managementState)) return;
    await operator.setConditions([overridesCondition(spec.unsupportedConfigOverrides)], signal);
  };
}

const CONDITION = 'UnsupportedConfigOverridesUpgradeable';

/** The overrides are an object as the API stores it, or the text of one. */
export function overridesCondition(overrides: unknown): Condition {
  const value = typeof overrides === 'string' ? parsed(overrides) : { mapping: overrides ?? undefined };
  if (value === undefined) {
    return condition(
      CONDITION,
      'False',
      'UnsupportedConfigOverridesSet',
      `unsupportedConfigOverrides=${String(overrides)}`,
    );
  }
  if (value.mapping === undefined) return condition(CONDITION, 'True', 'NoUnsupportedConfigOverrides');
  const paths = leafPaths(value.mapping);
  return condition(CONDITION, 'False', 'UnsupportedConfigOverridesSet', `setting: [${paths.join(' ')}]`);
}

/** Undefined when the text is not the YAML of a mapping, or of nothing; without one when it is empty. Aliases could grow without end. */
function parsed(text: string): { mapping: unknown } | undefined {
  if (text === '') return { mapping: undefined };
  try {
    const value = load(text, { schema: KUBERNETES_YAML, json: true, maxAliases: 0 }) ?? {};
    return typeof value === 'object' && !Array.isArray(value) ? { mapping: value } : undefined;
  } catch {
    return undefined;
  }
}

/** Where the single values are: keys and list positions joined by dots, sorted, each once. */
export function leafPaths(value: unknown): string[] {
  const paths = new Set<string>();
  const walk = (part: unknown, path: readonly string[]) => {
    if (typeof part !== 'object' || part === null) {
      paths.add(path.join('.'));
      return;
    }
    for (const [key, child] of Object.entries(part)) walk(child, [...path, key]);
  };
  walk(value, []);
  return [...paths].sort(compareText);
}
