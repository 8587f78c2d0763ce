import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

/** Who is told to end has this long to say what it was at. */
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
  // Files take everything at once. A process that is ended when its tests are done loses what waits for a reader, and a few hundred short
  // lines fill a pipe: on a busy machine nobody reads for that long.
  const folder = mkdtempSync(join(tmpdir(), 'rotunda-output-'));
  const [stdout, stderr] = ['stdout', 'stderr'].map(stream => join(folder, stream)) as [string, string];
  const outputs = [stdout, stderr].map(path => openSync(path, 'ax', 0o600)) as [number, number];
  const child = spawn(process.execPath, [...FLAGS, ...files], { detached: true, stdio: ['ignore', ...outputs] });
  for (const file of outputs) closeSync(file);
  const group = child.pid as number;
  running.add(group);
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

  const [lines, errors] = [stdout, stderr].map(path => readFileSync(path, 'utf8').trimEnd().split('\n')) as [
    string[],
    string[],
  ];
  rmSync(folder, { recursive: true, force: true });
  const counts = readCounts(lines.at(-1) ?? '');
  const text = (...more: string[]) => [...errors, ...more, ...left].filter(Boolean).join('\n');
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
