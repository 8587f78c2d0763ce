/**
 * The test command. `node test/run.ts` runs everything but what needs a real control plane, `node test/run.ts test/cluster/` that, and
 * `node test/run.ts unit` only the tests beside the code. Further arguments select files by a part of their path. Ends with a line
 * `N passed, N failed, N skipped`.
 */
import { spawn, spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { cpus } from 'node:os';
import { relative } from 'node:path';
import { run } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** Longest time one test file may take, in milliseconds. */
const FILE_TIMEOUT_MS = 20 * 60_000;

/** Longest time all of them may take: who waits for the last line gets it, with the names of the files that are to blame for its late coming. */
const WHOLE_TIMEOUT_MS = 40 * 60_000;

/** Tests that cross rooms mostly wait for processes, for each other and for clocks. */
const FILES_PER_CORE = 2;

/** Whatever begins last should not take longest. By what they took on two cores; others come after them. */
const LONGEST: readonly string[] = [
  'test/rollout/crash.test.ts',
  'test/machine-config/rollout.test.ts',
  'test/local/up.test.ts',
  'test/kube-apiserver/compressed.test.ts',
  'test/rollout/rollout.test.ts',
  'test/rollout/bad-input.test.ts',
  'test/informer/exact.test.ts',
  'test/quality/quality.test.ts',
  'test/console/console.test.ts',
  'test/daemon/apply/crash.test.ts',
  'test/api/durability.test.ts',
  'test/daemon/systemd/node.test.ts',
  'test/cli/cockpit.test.ts',
  'test/etcd/rotation.test.ts',
  'test/cli/plan.test.ts',
];

/** Takes many minutes and programs that are built first: only asked for by name, so that `npm test` is the same with and without them. */
const REAL_CONTROL_PLANE = 'test/cluster/';

const root = new URL('..', import.meta.url).pathname;
const [mode, ...rest] = process.argv.slice(2);
const onlyUnit = mode === 'unit';
const selected = onlyUnit || mode === undefined ? rest : [mode, ...rest];
const total: Counts = { passed: 0, failed: 0, skipped: 0 };
/** Files that have begun and not ended. */
const running = new Set<string>();

const unit = filesOf(['src/**/*.test.ts', 'test/structure/*.test.ts', 'test/vectors/*.test.ts']);
const crossing = onlyUnit
  ? []
  : longestFirst(filesOf(['test/*/**/*.test.ts']).filter(file => !unit.includes(file) && isWanted(file)));
// Tests beside the code share one process, which is fast; those that cross rooms get a process each. Most of what those do is to wait.
setTimeout(() => void giveUp(), WHOLE_TIMEOUT_MS).unref();
if (crossing.length === 0) await runFiles(unit, { isolation: 'none' });
else {
  await Promise.all([
    unit.length === 0 ? undefined : runUnitTestsApart(),
    runFiles(crossing, {
      isolation: 'process',
      concurrency: FILES_PER_CORE * cpus().length,
      timeout: FILE_TIMEOUT_MS,
    }),
  ]);
}
await end();

async function end(): Promise<void> {
  // Whoever reads from a socket gets the last line only if it is waited for.
  await new Promise(resolve =>
    process.stdout.write(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`, resolve),
  );
  process.exit(total.failed > 0 || total.passed + total.skipped === 0 ? 1 : 0);
}

/** A test that does not end, or a process of its that holds on to its output, must not cost the results of all others. */
async function giveUp(): Promise<void> {
  const { stdout } = spawnSync('ps', ['-eo', 'pid,ppid,etime,args'], { encoding: 'utf8' });
  for (const line of (stdout ?? '').split('\n'))
    if (line.includes('rotunda')) console.log(`still there: ${line.slice(0, 200)}`);
  for (const file of running) console.log(`FAILED ${file}: not done after ${WHOLE_TIMEOUT_MS / 60_000} minutes`);
  total.failed += Math.max(1, running.size);
  await end();
}

/** The unit tests in a process of their own, beside the others. */
async function runUnitTestsApart(): Promise<void> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), 'unit', ...selected], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // Not inherited: whoever reads our output must not wait for a process that a test has left behind.
  child.stderr.on('data', (part: Buffer) => process.stderr.write(part));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (output += part));
  const status = await new Promise(resolve => child.once('close', resolve));
  const lines = output.trimEnd().split('\n');
  const counts = /^(\d+) passed, (\d+) failed, (\d+) skipped$/.exec(lines.at(-1) ?? '');
  console.log((counts === null ? lines : lines.slice(0, -1)).join('\n'));
  const [passed, failed, skipped] = (counts ?? []).slice(1).map(Number);
  total.passed += passed ?? 0;
  total.skipped += skipped ?? 0;
  // A process that ended without its last line has failed, whatever it said before.
  total.failed += failed ?? 1;
  if (status !== 0 && (failed ?? 0) === 0) total.failed++;
}

function filesOf(patterns: string[]): string[] {
  const files = globSync(patterns, { cwd: root, exclude: path => path.includes('node_modules') });
  return files.filter(file => selected.length === 0 || selected.some(part => file.includes(part))).sort();
}

function isWanted(file: string): boolean {
  return !file.startsWith(REAL_CONTROL_PLANE) || selected.some(part => part.startsWith(REAL_CONTROL_PLANE));
}

function longestFirst(files: readonly string[]): string[] {
  const rank = (file: string) => (LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length);
  return files.toSorted((one, other) => rank(one) - rank(other));
}

async function runFiles(files: string[], options: Parameters<typeof run>[0]): Promise<void> {
  const counts = new Map<string, Counts>();
  for await (const { type, data } of run({ ...options, files: files.map(file => root + file) })) {
    if (type === 'test:stderr') process.stderr.write(data.message);
    const file = relative(root, ('file' in data ? data.file : undefined) ?? '');
    if (type === 'test:dequeue' && options?.isolation === 'process' && data.nesting === 0 && files.includes(file))
      running.add(file);
    if (type === 'test:summary' && file !== '') {
      tell(file, counts.get(file), data.duration_ms / 1000);
      counts.delete(file);
      running.delete(file);
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    // A suite that is skipped has no tests to speak for it.
    if (data.details.type === 'suite' && data.skip === undefined) continue;
    const count = counts.get(file) ?? { passed: 0, failed: 0, skipped: 0 };
    counts.set(file, count);
    if (type === 'test:fail') {
      count.failed++;
      console.log(`FAILED ${file}: ${data.name}\n${inspect(data.details.error.cause ?? data.details.error)}\n`);
    } else if (data.skip !== undefined) {
      count.skipped++;
      console.log(`skipped ${file}: ${data.name}: ${data.skip === true ? 'no reason given' : data.skip}`);
    } else {
      count.passed++;
    }
  }
  for (const [file, count] of counts) tell(file, count, undefined);
}

/** A file's line comes when the file is done: who watches sees how far it is, and what it was that did not end. */
function tell(file: string, count: Counts | undefined, seconds: number | undefined): void {
  const { passed, failed, skipped } = count ?? { passed: 0, failed: 0, skipped: 0 };
  const took = seconds === undefined ? '' : `, ${Math.round(seconds)} s`;
  console.log(`${failed > 0 ? 'FAILED' : 'ok'} ${file}: ${passed} passed, ${failed} failed, ${skipped} skipped${took}`);
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped;
}
