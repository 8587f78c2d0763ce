import { type ObjectRef, objectText } from '../../trust/object.ts';
import { wholeNumberFrom } from '../flag-values.ts';
import { handOverFrom } from '../hand-over-flag.ts';
import { withSource } from '../inventory/open.ts';
import { nowFrom } from '../moment.ts';
import { objectRefFrom } from '../object-refs.ts';
import { outputFormatFrom } from '../output/format.ts';
import { API_VERSION, type Listing, printDocument, printItems, refuseBadTemplate } from '../output/print.ts';
import { secondsText } from '../output/time.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { PlanFlags } from './command.ts';
import { handBackNote } from './hand-back.ts';
import type { HandOverPhase, Plan, PlanEffect, PlanEvent } from './model.ts';
import { type PlanObjects, readPlanObjects } from './objects.ts';
import { simulate } from './simulate.ts';
import { rotationDayFrom } from './units.ts';

/** Ten years: signers live that long. */
const MOST_DAYS = 3660;

export async function runPlan(flags: PlanFlags): Promise<void> {
  const now = nowFrom(flags.now);
  const dayCount = daysFrom(flags);
  const format = outputFormatFrom(flags.output);
  refuseBadTemplate(format);
  const force = forceFrom(flags);
  const handOver = flags.handOver === undefined ? undefined : handOverFrom(flags.handOver);
  const objects = await withSource(flags, readPlanObjects);
  for (const ref of force) requirePresent(objects, ref);
  const until = new Date(now.getTime() + dayCount * rotationDayFrom(objects));
  const simulated = await simulate(objects, { now, until, force, handOver });
  const keys = handBackNote(objects, simulated.events);
  const plan = keys === undefined ? simulated : { ...simulated, notes: [...simulated.notes, keys] };
  const events = flags.onlyEffects ? plan.events.filter(({ effects }) => effects.length > 0) : plan.events;
  if (['table', 'wide', 'name', 'custom-columns'].includes(format.kind)) {
    process.stdout.write(printItems(LISTING, events, format));
    process.stderr.write(summaryOf({ ...plan, events }));
    for (const note of plan.notes) process.stderr.write(`note: ${visible(note)}\n`);
  } else {
    process.stdout.write(printDocument({ apiVersion: API_VERSION, kind: 'Plan', ...plan, events }, format));
  }
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

function summaryOf({ from, to, events }: Plan): string {
  const count = (wanted: PlanEvent['change']) => events.filter(({ change }) => change === wanted).length;
  const parts = [
    `${count('certificate')} certificates`,
    `${count('signer')} signers`,
    ...(events.some(({ phase }) => phase !== undefined) ? [`${count('hand-over')} hand-overs`] : []),
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
