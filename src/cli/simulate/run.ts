import { byConnection, type ConnectionRefusal } from '../../forecast/by-connection.ts';
import { endsMeanwhile } from '../../forecast/ends-meanwhile.ts';
import { hibernate } from '../../forecast/hibernation.ts';
import { kubeletsAfter } from '../../forecast/kubelets.ts';
import { type PlanObjects, readPlanObjects } from '../../forecast/objects.ts';
import { type Rehearsal, rehearse } from '../../forecast/rehearse.ts';
import type { PlanOptions, Standstill } from '../../forecast/simulate.ts';
import { firstToFail } from '../../forecast/standstill.ts';
import { rotationDayFrom } from '../../forecast/units.ts';
import type { CertificateItem } from '../../inventory/model.ts';
import { inventoryOf } from '../../inventory/read.ts';
import { days, hours } from '../../kube/duration.ts';
import { objectText } from '../../trust/object.ts';
import { positiveDurationFrom } from '../cluster-flags.ts';
import { handOverFrom } from '../hand-over-flag.ts';
import { lookAround, warnOfUnknown } from '../look/around.ts';
import { nowFrom } from '../moment.ts';
import { withSource } from '../open-source.ts';
import { type OutputFormat, outputFormatFrom } from '../output/format.ts';
import { API_VERSION, type Listing, printDocument, printItems, refuseBadTemplate } from '../output/print.ts';
import { secondsText } from '../output/time.ts';
import { daysFrom, forceFrom, requirePresent } from '../plan/run.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { SimulateFlags } from './command.ts';
import { offFrom } from './off-flag.ts';
import { type Verdict, verdictOnHibernation, verdictOnRotation, verdictOnStandstill } from './verdict.ts';

/** So far an end of safety is looked for, in rotation days: signers live for ten years. */
const HORIZON_DAYS = 3660;
/** Whoever renews after a wake-up needs some time for it; where days are short, as little of them. */
const SETTLES = hours(1) / days(1);

interface Answer {
  readonly verdict: Verdict;
  readonly rehearsal: Rehearsal;
  readonly notes: readonly string[];
}

interface Question extends Omit<PlanOptions, 'stopped' | 'observe'> {
  readonly dayMs: number;
  readonly horizon: Date;
}

export async function runSimulate(flags: SimulateFlags): Promise<void> {
  const now = nowFrom(flags.now);
  const dayCount = daysFrom(flags);
  const force = forceFrom(flags);
  const format = outputFormatFrom(flags.output);
  refuseBadTemplate(format);
  const handOver = flags.handOver === undefined ? undefined : handOverFrom(flags.handOver);
  if (flags.off !== undefined && flags.stoppedFor !== undefined)
    throw new UsageError('--off and --stopped-for are two questions: give one of them');
  const off = flags.off === undefined ? undefined : offFrom(flags.off, now);
  const stoppedMs =
    flags.stoppedFor === undefined ? undefined : positiveDurationFrom('--stopped-for', flags.stoppedFor);
  const { objects, look } = await withSource(flags, async (source, cluster) => ({
    look: await lookAround(flags, cluster, now),
    objects: await readPlanObjects(source),
  }));
  for (const ref of force) requirePresent(objects, ref);
  const dayMs = rotationDayFrom(objects);
  const until = new Date(now.getTime() + dayCount * dayMs);
  const horizon = new Date(now.getTime() + HORIZON_DAYS * dayMs);
  const question = { now, until, force, handOver, dayMs, horizon };
  const { verdict, rehearsal, notes } =
    off !== undefined
      ? await answerOff(objects, look?.items ?? [], off, question)
      : stoppedMs !== undefined
        ? await answerStandstill(objects, new Date(now.getTime() + stoppedMs), question)
        : await answerRotation(objects, question);
  print(verdict, { ...rehearsal, notes: [...rehearsal.notes, ...notes] }, format);
  if (verdict.isSafe === false || rehearsal.refusals.length > 0) process.exitCode = 1;
  warnOfUnknown(off === undefined ? look : undefined, rehearsal.checked === 0);
}

async function answerRotation(objects: PlanObjects, question: Question): Promise<Answer> {
  const rehearsal = await rehearse(objects, question);
  const { refusals, checked } = rehearsal;
  const span = { from: question.now, to: question.until };
  const forced = (question.force ?? []).map(objectText);
  return { rehearsal, verdict: verdictOnRotation(byConnection(refusals), { checked, span, forced }), notes: [] };
}

async function answerStandstill(objects: PlanObjects, end: Date, question: Question): Promise<Answer> {
  const { now, horizon } = question;
  const stopped = { from: now, until: end };
  const until = new Date(Math.max(question.until.getTime(), end.getTime()));
  const rehearsal = await rehearse(objects, { ...question, until, stopped });
  const first = await firstToFail(objects, { ...question, from: now, until: horizon });
  const { checked, refusals } = rehearsal;
  const fails = refusals.length > 0;
  const verdict = verdictOnStandstill(first, { checked, span: { from: now, to: horizon }, stopped, fails });
  return { rehearsal, verdict, notes: [] };
}

async function answerOff(
  objects: PlanObjects,
  seen: readonly CertificateItem[],
  off: Standstill,
  question: Question,
): Promise<Answer> {
  const { dayMs, now } = question;
  const until = new Date(Math.max(question.until.getTime(), off.until.getTime() + dayMs));
  const horizon = new Date(Math.max(question.horizon.getTime(), until.getTime()));
  const settlesMs = SETTLES * dayMs;
  const hibernation = await hibernate(objects, { ...question, until, horizon, off, settlesMs, stepMs: dayMs });
  const { hand: kubelets, note } = kubeletsAfter(objects.configMaps, off);
  const ends = endsMeanwhile([...seen, ...inventoryOf(objects, now).certificates], off, now);
  const verdict = verdictOnHibernation(hibernation, { off, ends, kubelets });
  return { rehearsal: hibernation.rehearsal, verdict, notes: note === undefined ? [] : [note] };
}

function print(verdict: Verdict, rehearsal: Rehearsal, format: OutputFormat): void {
  const { from, to, refusals, looks, checked, notes } = rehearsal;
  if (!['table', 'wide', 'name', 'custom-columns'].includes(format.kind)) {
    process.stdout.write(printDocument({ apiVersion: API_VERSION, kind: 'Simulation', verdict, ...rehearsal }, format));
    return;
  }
  // To people only: what follows a machine reads line by line.
  const isForPeople = format.kind === 'table' || format.kind === 'wide';
  const lines = byConnection(refusals);
  if (isForPeople)
    process.stdout.write(`${visible(verdict.answer)}\n${handsText(verdict)}${lines.length > 0 ? '\n' : ''}`);
  process.stdout.write(printItems(LISTING, lines, format));
  process.stderr.write(
    `from ${secondsText(from)} to ${secondsText(to)}: looked ${looks} times at ${checked} sides of connections, ${refusals.length} refusals\n`,
  );
  for (const note of notes) process.stderr.write(`note: ${visible(note)}\n`);
}

function handsText({ needsHand, isSafe }: Verdict): string {
  if (needsHand === undefined || (isSafe === true && needsHand.length === 0)) return '';
  if (needsHand.length === 0) return 'what needs a hand then: nothing; what has ended is renewed within minutes\n';
  return `what needs a hand then:\n${needsHand.map(hand => `- ${visible(hand)}\n`).join('')}`;
}

const LISTING: Listing<ConnectionRefusal> = {
  kind: 'Refusal',
  columns: [
    { header: 'SINCE', cell: ({ since }) => secondsText(since) },
    { header: 'UNTIL', cell: ({ until }) => (until === undefined ? '<never>' : secondsText(until)) },
    { header: 'CONNECTION', cell: ({ connection }) => connection },
    { header: 'REFUSED-BY', cell: ({ by }) => by },
    { header: 'WHERE', cell: ({ places }) => places },
    { header: 'REASON', cell: ({ reason }) => reason.split('\n', 1)[0] ?? '' },
  ],
  name: ({ connection }) => connection,
};
