import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { isRevisionCopy } from '../../inventory/certificates.ts';
import { type Explanation, explain } from '../../inventory/explain.ts';
import { loadObjects } from '../../inventory/files.ts';
import type { HandOverItem } from '../../inventory/model.ts';
import { type PublicSecret, withoutPrivateData } from '../../inventory/public-secret.ts';
import { readObjects, rotationDayOf } from '../../inventory/read.ts';
import { namespaceFrom, positiveDurationFrom } from '../cluster-flags.ts';
import { handOverItems } from '../hand-overs/items.ts';
import { isUnderWay, PHASE_RULES } from '../hand-overs/words.ts';
import { isCertificateFile } from '../look/folder.ts';
import { nowFrom } from '../moment.ts';
import { withSource } from '../open-source.ts';
import { type OutputFormat, outputFormatFrom } from '../output/format.ts';
import { type Listing, printDocument, printItems, refuseBadTemplate } from '../output/print.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import { explainAccountKey, isAccountKeyFile, renderAccountKeys } from './account-key-file.ts';
import type { ExplainFlags } from './command.ts';
import { explainFiles, renderFiles } from './files.ts';

interface Objects {
  readonly secrets: readonly PublicSecret[];
  readonly configMaps: readonly ConfigMap[];
  readonly handOvers: readonly HandOverItem[];
  /** How many other things were read. */
  readonly others: number;
}

export async function runExplain(names: readonly string[], flags: ExplainFlags): Promise<void> {
  const now = nowFrom(flags.now);
  const namespace = namespaceFrom(flags);
  const dayMs = flags.rotationDay === undefined ? undefined : positiveDurationFrom('--rotation-day', flags.rotationDay);
  const refreshMs = flags.refresh === undefined ? undefined : positiveDurationFrom('--refresh', flags.refresh);
  const format = outputFormatFrom(flags.output);
  refuseBadTemplate(format);
  const keys = (flags.filename ?? []).filter(isAccountKeyFile);
  if (keys.length > 0) {
    refuseOthers(keys, names, flags, 'keys of service accounts');
    const explanations = keys.map(explainAccountKey);
    process.stdout.write(renderAccountKeys(explanations, format));
    if (explanations.some(({ state }) => state !== 'Good')) process.exitCode = 1;
    return;
  }
  const files = (flags.filename ?? []).filter(isCertificateFile);
  if (files.length > 0) {
    explainCertificateFiles(files, names, flags, now, format);
    return;
  }
  const { secrets, configMaps, handOvers, others } = await objectsFrom(flags, now);
  const all = explain(secrets, configMaps, {
    now,
    dayMs: dayMs ?? rotationDayOf(configMaps),
    refreshMs,
    refreshOnlyWhenExpired: flags.recovery ?? false,
  }).map(explanation => withPhase(explanation, handOvers));
  const explanations = all.filter(
    item =>
      (namespace === undefined || item.namespace === namespace) && (names.length === 0 || names.some(isNameOf(item))),
  );
  process.stdout.write(render(explanations, format));
  for (const name of names.filter(wanted => !explanations.some(item => isNameOf(item)(wanted)))) {
    process.stderr.write(`error: no signer, bundle or target "${visible(name)}" found\n`);
    process.exitCode = 1;
  }
  const passed = secrets.length + configMaps.length - all.length + others;
  if (explanations.length === 0 && names.length === 0) process.stderr.write('no signers, bundles or targets found\n');
  if (passed > 0 && names.length === 0) process.stderr.write(`${passed} other objects passed over\n`);
  if (explanations.some(({ action }) => action === 'fail')) process.exitCode = 1;
}

/** PEM files and kubeconfigs are no objects: no rule is about them, and what they are is said instead. */
function explainCertificateFiles(
  files: readonly string[],
  names: readonly string[],
  flags: ExplainFlags,
  now: Date,
  format: OutputFormat,
): void {
  refuseOthers(files, names, flags, 'certificates');
  const explanations = explainFiles(files, now);
  process.stdout.write(renderFiles(explanations, format, now));
  if (explanations.length === 0) throw new Error(`no certificate in ${files.join(', ')}`);
  if (explanations.some(({ state }) => state !== 'Good' && state !== 'Expiring')) process.exitCode = 1;
}

function refuseOthers(files: readonly string[], names: readonly string[], flags: ExplainFlags, what: string): void {
  const other = flags.filename?.find(path => !files.includes(path));
  if (other !== undefined)
    throw new UsageError(`${what} and everything else are explained apart: found ${files[0]} and ${other}`);
  if (names.length > 0) throw new UsageError(`files of ${what} have no names to choose from: leave "${names[0]}" out`);
}

function isNameOf({ kind, name }: Explanation): (wanted: string) => boolean {
  return wanted => wanted === name || wanted.toLowerCase() === `${kind.toLowerCase()}/${name}`;
}

async function objectsFrom(flags: ExplainFlags, now: Date): Promise<Objects> {
  if (flags.filename === undefined) {
    return withSource(flags, async source => {
      const objects = await readObjects(source, { parts: ['hand-overs'] });
      const { secrets, configMaps } = objects;
      const own = { secrets: secrets.filter(isOriginal), configMaps: configMaps.filter(isOriginal) };
      const copies = secrets.length + configMaps.length - own.secrets.length - own.configMaps.length;
      return { ...own, others: copies, handOvers: await handOverItems(objects, source, now) };
    });
  }
  for (const other of ['from', 'kubeconfig', 'context'] as const) {
    if (flags[other] !== undefined)
      throw new UsageError(`--filename and --${other} contradict each other: give one of them`);
  }
  const { objects, others, warnings } = loadObjects(flags.filename);
  for (const warning of warnings) process.stderr.write(`warning: ${visible(warning)}\n`);
  const secrets = objects.filter(({ kind }) => kind === 'Secret').map(object => withoutPrivateData(object as Secret));
  const configMaps = objects.filter(({ kind }) => kind === 'ConfigMap') as ConfigMap[];
  const found = { secrets, configMaps, nodes: [], operands: [], pools: [] };
  const handOvers = await handOverItems(found, { list: async () => [], warnings: [] }, now);
  return { secrets, configMaps, handOvers, others: others + objects.length - secrets.length - configMaps.length };
}

/** The rules say that a signer is due; the phase, what its operator makes of that (spec 90, HO-1). */
function withPhase(explanation: Explanation, handOvers: readonly HandOverItem[]): Explanation {
  const { role, namespace, name, notes } = explanation;
  const handOver = handOvers.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
  if (role !== 'signer' || handOver === undefined) return explanation;
  const { phase, because } = handOver;
  const { rule, goesOn } = PHASE_RULES[phase];
  const note = isUnderWay(handOver) ? [`${phase} (${rule}): ${because}; goes on when ${goesOn}`] : [];
  return { ...explanation, phase, notes: [...notes, ...note] };
}

function isOriginal(object: PublicSecret | ConfigMap): boolean {
  return !isRevisionCopy(object);
}

function render(explanations: readonly Explanation[], format: OutputFormat): string {
  if (format.kind === 'table' || format.kind === 'wide' || format.kind === 'name') {
    const notes = format.kind === 'name' ? '' : notesOf(explanations);
    return printItems(LISTING, explanations, format) + notes;
  }
  return printDocument(explanations, format);
}

const LISTING: Listing<Explanation> = {
  kind: 'Explanation',
  columns: [
    { header: 'ROLE', cell: ({ role }) => role },
    { header: 'NAMESPACE', cell: ({ namespace }) => namespace },
    { header: 'NAME', cell: ({ name }) => name },
    { header: 'DECISION', cell: ({ action }) => action },
    { header: 'PHASE', isWide: true, cell: ({ phase = '' }) => phase },
    {
      header: 'CHANGES',
      cell: ({ action, until }) =>
        until === undefined ? (action === 'fail' ? '<never>' : 'now') : `${until.slice(0, 19)}Z`,
    },
    { header: 'RULE', cell: ({ rule }) => rule },
    // Reasons of several lines list certificates; the table shows the first line, json and yaml all.
    {
      header: 'REASON',
      cell: ({ action, reason }) => `${action === 'keep' ? 'then: ' : ''}${reason.split('\n', 1)[0]}`,
    },
    { header: 'NOTES', isWide: true, cell: ({ notes }) => notes.join('; ') },
  ],
  name: ({ kind, name }) => `${kind.toLowerCase()}/${name}`,
};

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
