import { randomInt } from 'node:crypto';
import { days, seconds } from '../../kube/duration.ts';
import { wholeNumberFrom } from '../flag-values.ts';
import { handOverFrom } from '../hand-over-flag.ts';
import { machineFormatFrom } from '../output/format.ts';
import { API_VERSION, printDocument, refuseBadTemplate } from '../output/print.ts';
import { untilStopped } from '../signals.ts';
import { UsageError } from '../usage-error.ts';
import type { TwinFlags } from './command.ts';
import { type LifeReport, liveAll } from './lives.ts';
import { seedOf, totalsOf, twinText, yearsText } from './text.ts';
import type { LifeRequest } from './worker.ts';

const MOST_YEARS = 1000;
const MOST_LIVES = 10_000;
const MOST_FAULTS = 300;
const USUAL_FAULTS = 6;
const DAYS_OF_A_YEAR = 365;
const PROGRESS_EVERY_MS = seconds(5);

export async function runTwin(flags: TwinFlags): Promise<void> {
  const format = machineFormatFrom(flags.output);
  if (format !== undefined) refuseBadTemplate(format);
  const { lives, seed, request, again } = askedOf(flags);
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  let isStopped = false;
  const stopped = untilStopped().then(() => {
    isStopped = true;
  });
  if (flags.seed === undefined) process.stderr.write(`seed ${seed}\n`);
  let toldMs = 0;
  const reports = await liveAll({
    requests: Array.from({ length: lives }, (_, index) => ({ ...request, seed: seedOf(seed, index) })),
    stopped,
    onTold: lines => void process.stdout.write(`${lines.join('\n')}\n`),
    onProgress(sofar, now) {
      if (elapsed() - toldMs < PROGRESS_EVERY_MS) return;
      toldMs = elapsed();
      process.stderr.write(`${now ?? progressText(sofar, lives * days(request.days))}\n`);
    },
  });
  const asked = {
    seed,
    lives,
    days: request.days,
    hasFaults: request.faultsPerMonth !== undefined,
    again,
    seconds: elapsed() / seconds(1),
    isStopped,
  };
  if (format === undefined) process.stdout.write(twinText(reports, asked));
  else
    process.stdout.write(
      printDocument({ apiVersion: API_VERSION, kind: 'Twin', ...documentOf(reports), ...asked }, format),
    );
  if (reports.some(({ life }) => (life?.violations.length ?? 0) > 0)) process.exitCode = 1;
  // Whoever listens for signals keeps the process alive.
  process.stdout.write('', () => process.exit());
}

function askedOf(flags: TwinFlags) {
  const lifeDays =
    flags.days === undefined
      ? wholeNumberFrom('--years', flags.years ?? '1', 1, MOST_YEARS) * DAYS_OF_A_YEAR
      : wholeNumberFrom('--days', flags.days, 1, MOST_YEARS * DAYS_OF_A_YEAR);
  if (flags.days !== undefined && flags.years !== undefined)
    throw new UsageError('--days and --years say the same, expected one of them, found both');
  const lives = wholeNumberFrom('--lives', flags.lives, 1, MOST_LIVES);
  if (flags.trace === true && lives > 1)
    throw new UsageError(`--trace prints the story of one life, found --lives ${lives}`);
  if (flags.trace === true && flags.output !== 'text')
    throw new UsageError(`--trace prints lines for people, found --output ${flags.output}`);
  const seed = flags.seed ?? String(randomInt(1_000_000));
  if (!/^[\w.-]{1,50}$/.test(seed))
    throw new UsageError(`--seed must be up to 50 letters, digits, dots and dashes, found "${seed}"`);
  const request: Omit<LifeRequest, 'seed'> = {
    days: lifeDays,
    controlPlane: wholeNumberFrom('--control-plane', flags.controlPlane, 1, 9),
    workers: wholeNumberFrom('--workers', flags.workers, 0, 50),
    handOver: handOverFrom(flags.handOver),
    faultsPerMonth: faultsFrom(flags.faults),
    isTraced: flags.trace === true,
  };
  return { lives, seed, request, again: againOf(flags) };
}

function faultsFrom(flag: TwinFlags['faults']): number | undefined {
  if (flag === undefined) return undefined;
  return flag === true ? USUAL_FAULTS : wholeNumberFrom('--faults', flag, 1, MOST_FAULTS);
}

/** The flags of a life as they were given, but for its seed. */
function againOf({ years, days: inDays, faults, controlPlane, workers, handOver }: TwinFlags): string {
  return [
    inDays === undefined ? `--years ${years ?? '1'}` : `--days ${inDays}`,
    ...(faults === undefined ? [] : [faults === true ? '--faults' : `--faults=${faults}`]),
    ...(controlPlane === '3' ? [] : [`--control-plane ${controlPlane}`]),
    ...(workers === '2' ? [] : [`--workers ${workers}`]),
    ...(handOver === 'receipts' ? [] : [`--hand-over ${handOver}`]),
  ].join(' ');
}

function progressText(reports: readonly LifeReport[], wholeMs: number): string {
  const { livedMs, faults, inevitable } = totalsOf(reports);
  return `${yearsText(livedMs)} of ${yearsText(wholeMs)}: ${faults} faults, ${inevitable} refusals that they made inevitable`;
}

function documentOf(reports: readonly LifeReport[]) {
  const isBroken = reports.some(({ life }) => (life?.violations.length ?? 0) > 0);
  const lives = reports.map(({ seed, sofar, life, story }) => ({
    seed,
    ...sofar,
    isWhole: life !== undefined,
    violations: life?.violations ?? [],
    ...(story === undefined ? {} : { story }),
  }));
  return { verdict: isBroken ? 'broken' : 'nobody was refused', ...totalsOf(reports), items: lives };
}
