import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { type Counts, readCounts } from './counts.ts';

export interface Outcome extends Counts {
  /** What it printed, without the counts. */
  readonly text: string;
}

/** When its tests are done a process ends, whatever would keep it alive: there is no other bound to that. */
const FLAGS: readonly string[] = [
  '--test',
  '--test-isolation=none',
  '--test-force-exit',
  `--import=${import.meta.resolve('./preload.ts')}`,
  `--test-reporter=${import.meta.resolve('./reporter.ts')}`,
];

/** Who is told to end has this long to say what it was at, and its output to arrive. */
const LAST_WORDS_MS = 5000;

/** Process groups of what has begun and not ended. */
const running = new Set<number>();
process.once('exit', () => running.forEach(killGroup));

/**
 * Runs test files in a process of their own, which is told to end when the signal comes. It leads a group, which ends with it: nothing that
 * a test has left behind disturbs the others, or keeps anybody waiting for its output.
 */
export async function runApart(name: string, files: readonly string[], signal: AbortSignal): Promise<Outcome> {
  if (signal.aborted) return { ...NOTHING, failed: 1, text: `FAILED ${name}: not begun in time` };
  const child = spawn(process.execPath, [...FLAGS, ...files], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const group = child.pid as number;
  running.add(group);
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].setEncoding('utf8').on('data', (part: string) => (output[stream] += part));
  const closed = once(child, 'close');
  const stop = () => {
    child.kill('SIGTERM');
    void setTimeout(LAST_WORDS_MS).then(() => running.has(group) && killGroup(group));
  };
  signal.addEventListener('abort', stop);
  const [code, killedBy] = (await once(child, 'exit')) as [number | null, string | null];
  signal.removeEventListener('abort', stop);
  const left = processesOf(group).map(command => `left behind by ${name}: ${command}`);
  killGroup(group);
  running.delete(group);
  await Promise.race([closed, setTimeout(LAST_WORDS_MS)]);

  const lines = output.stdout.trimEnd().split('\n');
  const counts = readCounts(lines.at(-1) ?? '');
  const text = (...more: string[]) =>
    [...output.stderr.trimEnd().split('\n'), ...more, ...left].filter(Boolean).join('\n');
  if (counts !== undefined) return { ...counts, text: text(...lines.slice(0, -1)) };
  // Whoever ends without the last line has failed, whatever was said before.
  const failure = `FAILED ${name}: ended with ${code ?? killedBy} before it was done`;
  return { ...NOTHING, failed: 1, text: text(...lines, failure) };
}

const NOTHING: Counts = { passed: 0, failed: 0, skipped: 0 };

function killGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // Nobody is left.
  }
}

/** The commands of those that live in a group. */
function processesOf(group: number): string[] {
  const { stdout } = spawnSync('ps', ['-eo', 'pgid=,stat=,args='], { encoding: 'utf8' });
  return (stdout ?? '').split('\n').flatMap(line => {
    const [, pgid, state = '', args = ''] = /^ *(\d+) (\S+) +(.*)$/.exec(line) ?? [];
    return Number(pgid) === group && !state.startsWith('Z') ? [args.slice(0, 200)] : [];
  });
}
