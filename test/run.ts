/**
 * The test command. `node test/run.ts` runs everything but what needs a real control plane, `node test/run.ts test/cluster/ test/kubeadm/`
 * that, and `node test/run.ts unit` only the tests beside the code. Further arguments select files by a part of their path. Ends with a
 * line `N passed, N failed, N skipped`.
 */
import { globSync } from 'node:fs';
import { cpus } from 'node:os';
import { resolve } from 'node:path';
import { type Counts, sum, writeCounts } from './runner/counts.ts';
import { runApart } from './runner/run-apart.ts';
import { allowEnoughWatchers } from './tools/watchers.ts';

/** Longest time one test file may take, in milliseconds; with a real control plane there is more to wait for. */
const FILE_TIMEOUT_MS = 20 * 60_000;
const REAL_FILE_TIMEOUT_MS = 45 * 60_000;

/** Longest time all of them may take: who waits for the last line gets it, with the names of the files that are to blame for its late coming. */
const WHOLE_TIMEOUT_MS = 40 * 60_000;
const REAL_WHOLE_TIMEOUT_MS = 90 * 60_000;

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
  'test/hand-over/away.test.ts',
  'test/informer/exact.test.ts',
  'test/quality/quality.test.ts',
  'test/console/console.test.ts',
  'test/daemon/apply/crash.test.ts',
  'test/api/durability.test.ts',
  'test/daemon/systemd/node.test.ts',
  'test/cli/cockpit.test.ts',
  'test/etcd/rotation.test.ts',
  'test/cli/plan.test.ts',
  'test/cluster/real.test.ts',
  'test/cluster/library-go-hand-over.test.ts',
  'test/cluster/reload.test.ts',
  'test/cluster/rbac.test.ts',
  'test/cluster/leader.test.ts',
];

/** Takes many minutes and programs that are built first: only asked for by name, so that `npm test` is the same with and without them. */
const CLUSTERS_OF_KUBEADM = 'test/kubeadm/';
/** Nodes without processes: they need nothing. One of these files lives through hundreds of lives of a node, and is asked for by name. */
const NODES_IN_MEMORY = 'test/kubeadm/node/';
const HUNDREDS_OF_LIVES = 'test/kubeadm/node/any-operation.test.ts';
const REAL_CONTROL_PLANE: readonly string[] = ['test/cluster/', CLUSTERS_OF_KUBEADM];

process.chdir(new URL('..', import.meta.url).pathname);
// What is compiled for one of the many processes is compiled for all of them, also for the next run.
process.env.NODE_COMPILE_CACHE ??= resolve('node_modules/.cache/compiled');
const [mode, ...rest] = process.argv.slice(2);
const onlyUnit = mode === 'unit';
const selected = onlyUnit || mode === undefined ? rest : [mode, ...rest];
const results: Counts[] = [];
const isReal = selected.some(part => needsControlPlane(part));
const whole = AbortSignal.timeout(isReal ? REAL_WHOLE_TIMEOUT_MS : WHOLE_TIMEOUT_MS);

const unit = filesOf(['src/**/*.test.ts', 'test/structure/*.test.ts', 'test/vectors/*.test.ts']);
const crossing = onlyUnit
  ? []
  : longestFirst(filesOf(['test/*/**/*.test.ts']).filter(file => !unit.includes(file) && isWanted(file)));
const rigs = crossing.filter(file => file.startsWith(CLUSTERS_OF_KUBEADM) && !file.startsWith(NODES_IN_MEMORY));
crossing.splice(0, crossing.length, ...crossing.filter(file => !rigs.includes(file)));
if (!onlyUnit) allowEnoughWatchers();
// Tests beside the code share one process, which is fast; those that cross rooms get a process each. Most of what those do is to wait.
const lanes = Array.from({ length: FILES_PER_CORE * cpus().length }, async (_, lane) => {
  // A cluster of kubeadm is a machine room: one at a time.
  if (lane === 0) await runInTurn(rigs);
  await runInTurn(crossing);
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
// Alone they use all cores; beside the others every core has enough to do.
const shares = onlyUnit ? Math.min(cpus().length, unit.length) : Math.min(1, unit.length);
const unitRuns = Array.from({ length: shares }, (_, share) =>
  runAndTell(
    'unit tests',
    unit.filter((_file, index) => index % shares === share),
  ),
);
await Promise.all([...unitRuns, ...lanes]);
const total = sum(results);
// Whoever reads from a socket gets the last line only if it is waited for.
await new Promise(resolve => process.stdout.write(`${writeCounts(total)}\n`, resolve));
process.exit(total.failed > 0 || total.passed + total.skipped === 0 ? 1 : 0);

async function runInTurn(files: string[]): Promise<void> {
  for (let file = files.shift(); file !== undefined; file = files.shift()) await runAndTell(file, [file]);
}

async function runAndTell(name: string, files: readonly string[]): Promise<void> {
  const limitMs = needsControlPlane(name) ? REAL_FILE_TIMEOUT_MS : FILE_TIMEOUT_MS;
  const signal = AbortSignal.any([whole, AbortSignal.timeout(limitMs)]);
  const outcome = await runApart(name, files, signal);
  results.push(outcome);
  console.log(outcome.text);
}

function filesOf(patterns: string[]): string[] {
  const files = globSync(patterns, { exclude: path => path.includes('node_modules') });
  return files.filter(file => selected.length === 0 || selected.some(part => file.includes(part))).sort();
}

function isWanted(file: string): boolean {
  const home = REAL_CONTROL_PLANE.find(folder => file.startsWith(folder));
  return home === undefined || !needsControlPlane(file) || selected.some(part => part.startsWith(home));
}

function needsControlPlane(path: string): boolean {
  if (path.startsWith(NODES_IN_MEMORY)) return path === HUNDREDS_OF_LIVES;
  return REAL_CONTROL_PLANE.some(folder => path.startsWith(folder));
}

function longestFirst(files: readonly string[]): string[] {
  const rank = (file: string) => (LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length);
  return files.toSorted((one, other) => rank(one) - rank(other));
}
