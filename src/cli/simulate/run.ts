import { positiveDurationFrom } from '../cluster-flags.ts';
import { handOverFrom } from '../hand-over-flag.ts';
import { withSource } from '../inventory/open.ts';
import { lookAround, warnOfUnknown } from '../look/around.ts';
import { nowFrom } from '../moment.ts';
import { outputFormatFrom } from '../output/format.ts';
import { API_VERSION, type Listing, printDocument, printItems, refuseBadTemplate } from '../output/print.ts';
import { secondsText } from '../output/time.ts';
import { readPlanObjects } from '../plan/objects.ts';
import { daysFrom, forceFrom, requirePresent } from '../plan/run.ts';
import { rotationDayFrom } from '../plan/units.ts';
import { visible } from '../table.ts';
import type { SimulateFlags } from './command.ts';
import { type Refusal, rehearse } from './rehearse.ts';

export async function runSimulate(flags: SimulateFlags): Promise<void> {
  const now = nowFrom(flags.now);
  const dayCount = daysFrom(flags);
  const force = forceFrom(flags);
  const format = outputFormatFrom(flags.output);
  refuseBadTemplate(format);
  const handOver = flags.handOver === undefined ? undefined : handOverFrom(flags.handOver);
  const stoppedMs = flags.stoppedFor === undefined ? 0 : positiveDurationFrom('--stopped-for', flags.stoppedFor);
  const { objects, look } = await withSource(flags, async (source, cluster) => ({
    look: await lookAround(flags, cluster, now),
    objects: await readPlanObjects(source),
  }));
  for (const ref of force) requirePresent(objects, ref);
  const until = new Date(now.getTime() + Math.max(dayCount * rotationDayFrom(objects), stoppedMs));
  const stoppedUntil = new Date(now.getTime() + stoppedMs);
  const rehearsal = await rehearse(objects, { now, until, force, stoppedUntil, handOver });
  const { refusals, looks, checked, notes } = rehearsal;
  if (['table', 'wide', 'name', 'custom-columns'].includes(format.kind)) {
    process.stdout.write(printItems(LISTING, refusals, format));
    process.stderr.write(
      `from ${secondsText(now)} to ${secondsText(until)}: looked ${looks} times at ${checked} sides of connections, ${refusals.length} refusals\n`,
    );
    for (const note of notes) process.stderr.write(`note: ${visible(note)}\n`);
  } else {
    process.stdout.write(printDocument({ apiVersion: API_VERSION, kind: 'Simulation', ...rehearsal }, format));
  }
  if (refusals.length > 0) process.exitCode = 1;
  warnOfUnknown(look, checked === 0);
}

const LISTING: Listing<Refusal> = {
  kind: 'Refusal',
  columns: [
    { header: 'SINCE', cell: ({ since }) => secondsText(since) },
    { header: 'UNTIL', cell: ({ until }) => (until === undefined ? '<never>' : secondsText(until)) },
    { header: 'CONNECTION', cell: ({ connection }) => connection },
    { header: 'REFUSED-BY', cell: ({ by }) => by },
    { header: 'PLACE', isWide: true, cell: ({ place }) => place },
    { header: 'REASON', cell: ({ reason }) => reason.split('\n', 1)[0] ?? '' },
  ],
  name: ({ connection }) => connection,
};
