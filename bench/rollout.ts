/**
 * How long does a changed Secret take to all three nodes, and where does the time go? How long does a changed certificate take
 * to all handshakes? What does an operator cost that has nothing to do? Everything runs as real processes on local nodes; the
 * server is the stand-in, which is ready at once, and neither the installer nor the operator is asked to wait.
 */
import { readFileSync } from 'node:fs';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { Informer } from '../src/kube/informer.ts';
import { PODS } from '../src/kube/resource.ts';
import { Cluster, fingerprint } from '../test/rollout/cluster.ts';
import { OPERATOR_USER } from '../test/rollout/layout.ts';
import { NAMESPACE, newPair, OPERATORS, pairData, SERVING_SECRET } from '../test/rollout/operand.ts';

const ROLLOUTS = 5;
const CERTIFICATES = 10;
const IDLE_MS = 60_000;
/** What a roll-out leaves to be done, pruning above all, is over by then. */
const SETTLE_MS = 10_000;
const HOUR_MS = 3_600_000;
/** Informers end and reopen their watches after 5 to 10 minutes; a short look may miss that. */
const WATCHES_AN_HOUR = 8;
const OPERATOR_WATCHES = 8;
const SYNCER_WATCHES = 2;
const LOOK_MS = 5;
/** Linux counts the time of processes in these. */
const TICK_MS = 10;

export async function bench(): Promise<void> {
  const cluster = await Cluster.start();
  try {
    await rollouts(cluster);
    await certificates(cluster);
    await idle(cluster);
  } finally {
    await cluster.stop();
  }
}

/** Milliseconds since the change; each phase of a node begins where the one before ended. */
interface Phases {
  readonly revisionMs: number;
  readonly nodes: readonly { readonly podMs: number; readonly filesMs: number; readonly readyMs: number }[];
  readonly totalMs: number;
}

async function rollouts(cluster: Cluster): Promise<void> {
  const runs: Phases[] = [];
  for (let run = 0; run < ROLLOUTS; run++) {
    runs.push(await rollout(cluster));
    await pause(SETTLE_MS / 5);
  }
  const totals = runs.map(({ totalMs }) => totalMs);
  console.log(
    `\nSecret changed to all three nodes ready and reported: median ${seconds(median(totals))} of ${ROLLOUTS}`,
  );
  console.log(`  (${totals.map(seconds).join(', ')})`);
  console.log(`  revision cut and published   ${seconds(median(runs.map(({ revisionMs }) => revisionMs)))}`);
  for (const [index, node] of cluster.nodes.entries()) {
    const phase = (name: 'podMs' | 'filesMs' | 'readyMs') =>
      seconds(median(runs.map(({ nodes }) => nodes[index]?.[name] ?? 0)));
    console.log(
      `  ${node}: installer pod runs ${phase('podMs')}, files and manifest written ${phase('filesMs')}, new process ready ${phase('readyMs')}`,
    );
  }
}

async function rollout(cluster: Cluster): Promise<Phases> {
  const revision = (await cluster.converged(1)) + 1;
  const moments = new Map<string, number>();
  const note = (what: string) => moments.has(what) || moments.set(what, performance.now());
  const operator = new Informer(cluster.kube, OPERATORS);
  const pods = new Informer<Pod>(cluster.kube, PODS, { selection: { namespace: NAMESPACE } });
  const seePod = (pod: Pod) => {
    const { name = '', labels } = pod.metadata ?? {};
    const node = pod.spec?.nodeName ?? '';
    const { phase, conditions = [] } = pod.status ?? {};
    if (name.startsWith(`installer-${revision}-`) && phase !== 'Pending') note(`${node} pod`);
    const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
    if (labels?.apiserver === 'true' && labels.revision === String(revision) && isReady) note(`${node} ready`);
  };
  operator.subscribe({
    add: () => {},
    delete: () => {},
    update: (_, { status }) => void (status?.latestAvailableRevision === revision && note('revision')),
  });
  pods.subscribe({ add: seePod, delete: () => {}, update: (_, pod) => seePod(pod) });
  operator.start();
  pods.start();
  await Promise.all([operator.synced, pods.synced]);
  const looking = setInterval(() => {
    for (const node of cluster.nodes) {
      if (readFileSync(cluster.manifestPath(node), 'utf8').includes(`"revision": "${revision}"`)) note(`${node} files`);
    }
  }, LOOK_MS);
  try {
    const begun = performance.now();
    await cluster.changeRevisioned();
    await cluster.converged(revision);
    const totalMs = performance.now() - begun;
    const at = (what: string) => (moments.get(what) ?? Number.NaN) - begun;
    let since = at('revision');
    const nodes = cluster.nodes.map(node => {
      const times = {
        podMs: at(`${node} pod`) - since,
        filesMs: at(`${node} files`) - at(`${node} pod`),
        readyMs: at(`${node} ready`) - at(`${node} files`),
      };
      since = at(`${node} ready`);
      return times;
    });
    return { revisionMs: at('revision'), nodes, totalMs };
  } finally {
    clearInterval(looking);
    await Promise.all([operator.stop(), pods.stop()]);
  }
}

async function certificates(cluster: Cluster): Promise<void> {
  await pause(SETTLE_MS);
  const pids = await cluster.pids();
  const times: number[] = [];
  for (let run = 0; run < CERTIFICATES; run++) {
    const next = await newPair(cluster.signer);
    const begun = performance.now();
    await cluster.setSecret(SERVING_SECRET, pairData(next));
    await Promise.all(
      cluster.nodes.map(async node => {
        while ((await cluster.ask(node)).peer !== fingerprint(next)) await pause(LOOK_MS);
      }),
    );
    times.push(performance.now() - begun);
  }
  const isSame = String(await cluster.pids()) === String(pids);
  console.log(
    `\ncertificate changed to shown in handshakes on all three nodes: median ${seconds(median(times))}, slowest ${seconds(Math.max(...times))} of ${CERTIFICATES} (goal: 2 s); ${isSame ? 'no process restarted' : 'PROCESSES WERE RESTARTED'}`,
  );
}

async function idle(cluster: Cluster): Promise<void> {
  await pause(SETTLE_MS);
  const processes = [
    ['operator', cluster.pid('operator')],
    ...cluster.processes().map(({ pid, mark }) => [mark.split('/').at(-1) ?? '', pid] as const),
    ['API and three nodes', cluster.pid('supervisor')],
  ] as const;
  const look = async () => ({ requests: await cluster.requests(), cpuMs: processes.map(([, pid]) => cpuMs(pid)) });
  const before = await look();
  await pause(IDLE_MS);
  const after = await look();
  const factor = HOUR_MS / IDLE_MS;
  const requests = (user: string) => ((after.requests[user] ?? 0) - (before.requests[user] ?? 0)) * factor;
  console.log(`\nnothing to do, ${IDLE_MS / 1000} s measured, as of one hour:`);
  const reopened = (watches: number) => `about ${watches * WATCHES_AN_HOUR} for its ${watches} watches`;
  console.log(`  operator: ${requests(OPERATOR_USER)} API requests; a whole hour has ${reopened(OPERATOR_WATCHES)}`);
  console.log(
    `  three syncers: ${requests('system:admin')} API requests; a whole hour has ${reopened(SYNCER_WATCHES)} each`,
  );
  for (const name of new Set(processes.map(([name]) => name))) {
    const spent = processes.map(([other], index) =>
      other === name ? (after.cpuMs[index] ?? 0) - (before.cpuMs[index] ?? 0) : 0,
    );
    const count = processes.filter(([other]) => other === name).length;
    const total = spent.reduce((sum, ms) => sum + ms, 0) * factor;
    console.log(`  ${name}${count > 1 ? ` (${count})` : ''}: ${seconds(total)} CPU`);
  }
}

/** What a process has used of the processors so far, in user and kernel mode. */
function cpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));
