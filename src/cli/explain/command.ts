import type { Command } from 'commander';
import { dump } from 'js-yaml';
import { days, parseGoDuration } from '../../kube/duration.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import { printTable, visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import { type Explanation, explain } from './explain.ts';
import { loadObjects } from './load.ts';

interface Flags {
  filename: string[];
  now?: string;
  output: string;
  refresh?: string;
  rotationDay?: string;
  recovery?: boolean;
}

/** `rotunda explain`: keep or regenerate, why, and when that changes. */
export function addExplain(program: Command): void {
  program
    .command('explain')
    .summary('say for each signer, bundle and target: keep or regenerate, why, and when that changes')
    .description(
      'Reads Secrets and ConfigMaps from files or folders (a must-gather works too) and runs the decisions of the rotation\n' +
        'controllers over them, without a cluster. Nothing is written. Exit code 0 when everything is fine, 1 when an object\n' +
        'needs a person (action "fail"), 2 when the input cannot be read.',
    )
    .requiredOption('-f, --filename <path...>', 'files, folders, or - for standard input')
    .option('--now <time>', 'decide as of this moment, RFC 3339 (default: the clock)')
    .option('-o, --output <format>', 'table, json or yaml', 'table')
    .option('--refresh <duration>', 'refresh time of objects that do not say theirs, such as 360h')
    .option('--rotation-day <duration>', 'length of one rotation day (default 24h)')
    .option('--recovery', 'decide as the recovery process does: only what is expired or unusable')
    .addHelpText(
      'after',
      '\nExample:\n  oc get secrets,configmaps -A -o yaml | rotunda explain -f - --now 2027-01-01T00:00:00Z',
    )
    .action((flags: Flags) => {
      const now = flags.now === undefined ? new Date() : timeFrom(flags.now);
      const { secrets, configMaps, others, warnings } = loadObjects(flags.filename);
      const explanations = explain(secrets, configMaps, {
        now,
        dayMs: flags.rotationDay === undefined ? days(1) : durationFrom('--rotation-day', flags.rotationDay),
        refreshMs: flags.refresh === undefined ? undefined : durationFrom('--refresh', flags.refresh),
        refreshOnlyWhenExpired: flags.recovery ?? false,
      });
      for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
      process.stdout.write(render(explanations, flags.output));
      const passed = secrets.length + configMaps.length - explanations.length + others;
      if (explanations.length === 0) process.stderr.write('no signers, bundles or targets found\n');
      if (passed > 0) process.stderr.write(`${passed} other objects passed over\n`);
      if (explanations.some(({ action }) => action === 'fail')) process.exitCode = 1;
    });
}

function render(explanations: readonly Explanation[], format: string): string {
  if (format === 'json') return `${JSON.stringify(explanations, undefined, 2)}\n`;
  if (format === 'yaml') return dump(explanations);
  if (format !== 'table') throw new UsageError(`--output must be table, json or yaml, found "${format}"`);
  if (explanations.length === 0) return '';
  const rows = explanations.map(({ role, namespace, name, action, until, rule, reason }) => [
    role,
    namespace,
    name,
    action,
    until === undefined ? (action === 'fail' ? '' : 'now') : `${until.slice(0, 19)}Z`,
    rule,
    // Reasons of several lines list certificates; the table shows the first, json and yaml all.
    `${action === 'keep' ? 'then: ' : ''}${reason.split('\n', 1)[0]}`,
  ]);
  const table = printTable(['ROLE', 'NAMESPACE', 'NAME', 'DECISION', 'CHANGES', 'RULE', 'REASON'], rows);
  return table + notesOf(explanations);
}

/** Each note once, with the objects it is about. */
function notesOf(explanations: readonly Explanation[]): string {
  const notes = new Map<string, string[]>();
  for (const { name, notes: own } of explanations) {
    for (const note of own) notes.set(note, [...(notes.get(note) ?? []), name]);
  }
  const line = (note: string, names: string[]) =>
    `${visible(`note: ${note}: ${names.slice(0, 3).join(', ')}${names.length > 3 ? ` and ${names.length - 3} more` : ''}`)}\n`;
  return [...notes].map(([note, names]) => line(note, names)).join('');
}

function timeFrom(text: string): Date {
  const instant = parseRfc3339(text);
  if (instant === undefined) {
    throw new UsageError(`--now must be a time such as 2027-01-01T00:00:00Z, found "${text}"`);
  }
  return floorToMs(instant);
}

function durationFrom(flag: string, text: string): number {
  const duration = parseGoDuration(text);
  if (duration === undefined || duration <= 0) {
    throw new UsageError(`${flag} must be a duration above 0 such as 360h or 10s, found "${text}"`);
  }
  return duration;
}
