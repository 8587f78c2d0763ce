import { endsUntil } from '../../forecast/ends.ts';
import { handBackNote } from '../../forecast/hand-back.ts';
import type { HandOverPhase, Plan, PlanEffect, PlanEvent, PlanWarning } from '../../forecast/model.ts';
import { type PlanObjects, readPlanObjects } from '../../forecast/objects.ts';
import { olderAccountKey } from '../../forecast/older-account-key.ts';
import { renewalsUntil } from '../../forecast/renewals.ts';
import { simulate } from '../../forecast/simulate.ts';
import { rotationDayFrom } from '../../forecast/units.ts';
import { days } from '../../kube/duration.ts';
import { type ObjectRef, objectText } from '../../trust/object.ts';
import { wholeNumberFrom } from '../flag-values.ts';
import { handOverFrom } from '../hand-over-flag.ts';
import { lookAround } from '../look/around.ts';
import type { Look } from '../look/look.ts';
import { firstEndText } from '../look/words.ts';
import { nowFrom } from '../moment.ts';
import { objectRefFrom } from '../object-refs.ts';
import { withSource } from '../open-source.ts';
import { type OutputFormat, outputFormatFrom } from '../output/format.ts';
import { API_VERSION, type Listing, printDocument, printItems, refuseBadTemplate } from '../output/print.ts';
import { secondsText, shortDuration } from '../output/time.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { PlanFlags } from './command.ts';

/** Ten years: signers live that long. */
const MOST_DAYS = 3660;

export async function runPlan(flags: PlanFlags): Promise<void> {
  const now = nowFrom(flags.now);
  const dayCount = daysFrom(flags);
  const format = outputFormatFrom(flags.output);
  refuseBadTemplate(format);
  const force = forceFrom(flags);
  const handOver = flags.handOver === undefined ? undefined : handOverFrom(flags.handOver);
  const { objects, look } = await withSource(flags, async (source, cluster) => {
    const seen = await lookAround(flags, cluster, now);
    if (seen?.failure !== undefined) {
      writeWarnings(endsUntil(seen.items, new Date(now.getTime() + days(dayCount))), now, format);
      throw seen.failure;
    }
    return { objects: await readPlanObjects(source), look: seen };
  });
  for (const ref of force) requirePresent(objects, ref);
  const until = new Date(now.getTime() + dayCount * rotationDayFrom(objects));
  const simulated = await simulate(objects, { now, until, force, handOver });
  const plan = withFindings(simulated, look, objects, now);
  const events = flags.onlyEffects ? plan.events.filter(({ effects }) => effects.length > 0) : plan.events;
  if (['table', 'wide', 'name', 'custom-columns'].includes(format.kind)) {
    writeWarnings(plan.warnings, now, format);
    process.stdout.write(printItems(LISTING, events, format));
    process.stderr.write(summaryOf({ ...plan, events }));
    for (const note of plan.notes) process.stderr.write(`note: ${visible(note)}\n`);
  } else {
    process.stdout.write(printDocument({ apiVersion: API_VERSION, kind: 'Plan', ...plan, events }, format));
  }
}

/** With what was seen outside of Secrets: what of it ends, and what could not be seen. */
function withFindings(plan: Plan, look: Look | undefined, objects: PlanObjects, now: Date): Plan {
  const { items = [], unseen = [] } = look ?? {};
  const warnings = [...endsUntil(items, new Date(plan.to)), ...plan.warnings].toSorted((a, b) =>
    a.at < b.at ? -1 : 1,
  );
  const later = warnings.length > 0 ? '' : firstEndText(items, now).replace('\n', ' ');
  const keys = handBackNote(objects, plan.events);
  const older = olderAccountKey(objects, now, new Date(plan.to));
  const notes = [keys ?? '', later, ...older.notes, ...unseen.map(text => `not seen from here: ${text}`)].filter(
    Boolean,
  );
  const renewals = [...renewalsUntil(items, now, new Date(plan.to)), ...older.events];
  const events = renewals.length === 0 ? plan.events : [...plan.events, ...renewals].toSorted(byTime);
  return { ...plan, events, warnings, notes: [...plan.notes, ...notes] };
}

function byTime(a: PlanEvent, b: PlanEvent): number {
  return Date.parse(a.at) - Date.parse(b.at);
}

/** What nobody renews comes before everything that will happen by itself; to people only, documents have it in a field. */
function writeWarnings(warnings: readonly PlanWarning[], now: Date, format: OutputFormat): void {
  if (warnings.length === 0 || (format.kind !== 'table' && format.kind !== 'wide')) return;
  const [what, them] = warnings.length === 1 ? ['1 end', 'it'] : [`${warnings.length} ends`, 'them'];
  process.stdout.write(`WARNING: ${what} in this time, and no controller renews ${them}:\n`);
  process.stdout.write(`${printItems(warningsAt(now), warnings, format)}\n`);
}

function warningsAt(now: Date): Listing<PlanWarning> {
  return {
    kind: 'PlanWarning',
    columns: [
      { header: 'ENDS', cell: ({ at }) => secondsText(at) },
      { header: 'IN', cell: ({ at }) => shortDuration(Date.parse(at) - now.getTime()) },
      { header: 'CERTIFICATE', cell: ({ name }) => name },
      { header: 'RENEWED-WITH', cell: ({ renewWith }) => renewWith },
      { header: 'CA', isWide: true, cell: ({ authority = '' }) => authority },
      { header: 'AT-ITS-END', isWide: true, cell: ({ atItsEnd = '' }) => atItsEnd },
    ],
    name: ({ name }) => name,
  };
}

/** `--days`. */
export function daysFrom({ days }: Pick<PlanFlags, 'days'>): number {
  return wholeNumberFrom('--days', days, 1, MOST_DAYS);
}

/** `--force`: Secrets to be regenerated now. */
export function forceFrom({ force = [] }: Pick<PlanFlags, 'force'>): ObjectRef[] {
  const refs = force.map(text => objectRefFrom('--force', text));
  const wrong = refs.find(({ kind }) => kind !== 'Secret');
  if (wrong !== undefined) throw new UsageError(`--force takes Secrets, found ${objectText(wrong)}`);
  return refs;
}

export function requirePresent({ secrets }: PlanObjects, { namespace, name }: ObjectRef): void {
  const isThere = secrets.some(({ metadata }) => metadata?.namespace === namespace && metadata.name === name);
  if (!isThere) throw new Error(`secret "${name}" not found in namespace ${namespace}`);
}

const LISTING: Listing<PlanEvent> = {
  kind: 'PlanEvent',
  columns: [
    { header: 'TIME', cell: ({ at }) => secondsText(at) },
    { header: 'CHANGE', cell: ({ change }) => change },
    { header: 'PHASE', cell: ({ phase = '' }) => phase },
    { header: 'OBJECT', cell: ({ object }) => (object === undefined ? '' : objectText(object)) },
    { header: 'EFFECT', cell: ({ effects }) => [...new Set(effects.map(effectText))].join('; ') },
    { header: 'REASON', cell: ({ reason }) => reason.split('\n', 1)[0] ?? '' },
    { header: 'FILES', isWide: true, cell: ({ effects }) => effects.flatMap(({ files = [] }) => files).join(',') },
  ],
  name: ({ object, change }) => (object === undefined ? change : objectText(object)),
};

function effectText({ kind, process, nodes }: PlanEffect): string {
  return `${kind} ${process} on ${nodes.join(',') || 'no node'}`;
}

function summaryOf({ from, to, events, warnings }: Plan): string {
  const count = (wanted: PlanEvent['change']) => events.filter(({ change }) => change === wanted).length;
  const parts = [
    ...(warnings.length > 0 ? [`${warnings.length} ends that no controller prevents`] : []),
    `${count('certificate')} certificates`,
    `${count('signer')} signers`,
    ...(events.some(({ phase }) => phase !== undefined) ? [`${count('hand-over')} hand-overs`] : []),
    ...(count('renewal') > 0 ? [`${count('renewal')} renewals, one node at a time`] : []),
    `${count('rollout')} roll-outs${phasesOf(events)}`,
    ...(count('reboot') > 0 ? [`${count('reboot')} pools to update`] : []),
    ...(count('fail') > 0 ? [`${count('fail')} failures`] : []),
  ];
  return `from ${secondsText(from)} to ${secondsText(to)}: ${parts.join(', ')}\n`;
}

/** What restarts for the distribution of signers, and what because they begin to sign. */
function phasesOf(events: readonly PlanEvent[]): string {
  const count = (wanted: HandOverPhase) =>
    events.filter(({ change, phase }) => change === 'rollout' && phase === wanted).length;
  const [distributing, signing] = [count('Distributing'), count('Signing')];
  return distributing + signing === 0 ? '' : ` (${distributing} to distribute signers, ${signing} because they sign)`;
}
