/**
 * A cluster in which everything goes wrong while signers are handed over, and a prober that reads nothing but the files of nodes:
 *
 *     node test/hand-over/chaos.ts --day 2s --minutes 10 [--real] [--away [--waive]] [--seed N] [--calm]
 *
 * Processes are killed and stopped, single ones and all of them, and signers are forced in quick succession. `--away` switches one worker
 * off for the whole time, and on at the end; `--waive` lets hand-overs go on without it. Ends with a table of what was accepted and refused
 * over every edge, when and why, and with 1 where anything was refused but for leaves that ended while everything stood still.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import { readHandOvers } from '../../src/cli/hand-overs/items.ts';
import { waiveNode } from '../../src/cli/hand-overs/waive.ts';
import { FAMILY_TABLE } from '../../src/etcd/cert-table.ts';
import { ETCD_NAMESPACE } from '../../src/etcd/names.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { parseGoDuration } from '../../src/kube/duration.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { NODES, SECRETS } from '../../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS, signersOf } from '../../src/kube-apiserver/chains.ts';
import { Power } from '../../src/local/power.ts';
import { addressesOf, nodeFilesSight, proberOf } from './prober.ts';
import { commandOf, descendants, signal } from './processes.ts';
import { RunningUp } from './running-up.ts';
import { endedDuring, leavesShown, type Refused, type ShownLeaf, type Standstill, standstillOf } from './standstill.ts';

const { values: flags } = parseArgs({
  options: {
    day: { type: 'string', default: '2s' },
    minutes: { type: 'string', default: '10' },
    real: { type: 'boolean', default: false },
    calm: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    away: { type: 'boolean', default: false },
    waive: { type: 'boolean', default: false },
    'control-plane': { type: 'string', default: '3' },
    workers: { type: 'string', default: '2' },
  },
});
if (flags.waive && !flags.away) throw new Error('--waive goes with --away');

/** How long a cluster may take until it is ready, at the beginning and after everything was killed; then the run goes on without it. */
const READY_MS = flags.real ? 900_000 : 300_000;
const READY_AGAIN_MS = flags.real ? 180_000 : 90_000;
/** How long a node that was away may take to be one of the others again. */
const BACK_MS = 180_000;
const LOOK_EVERY_MS = 200;
const PROBE_PAUSE_MS = 200;

const dir = mkdtempSync(join(tmpdir(), 'rotunda-chaos-'));
const random = randomFrom(Number(flags.seed));
const say = (text: string) => console.log(`${time(new Date())} ${text}`);
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));
const dayMs = parseGoDuration(flags.day) ?? 2000;

say(`seed ${flags.seed}, days of ${flags.day}, ${flags.minutes} minutes, in ${dir}`);
const size = ['--control-plane', flags['control-plane'], '--workers', flags.workers];
const up = new RunningUp(['up', '--dir', dir, '--rotation-day', flags.day, ...size, ...(flags.real ? ['--real'] : [])]);
if (!(await up.isReady(READY_MS))) {
  await up.end();
  throw new Error(`rotunda up was not ready within ${READY_MS / 1000} s; see ${dir}/rotunda.log`);
}
say('ready');

const kube = new HttpKube(await loadAccess({ path: join(dir, 'kubeconfig') }));
const sight = await nodeFilesSight(kube, dir);
const nodeAt = addressesOf(sight.nodes);
const away = flags.away ? `worker-${Number(flags.workers) - 1}` : undefined;
/** Whether the node that is switched off counts: its files are old, and nobody is there to show them. */
let isBack = away === undefined;
const prober = proberOf(sight, node => isBack || node !== away, PROBE_PAUSE_MS);
const refusals: Refused[] = [];
const standstills: Standstill[] = [];
const seen = new Map<string, number>();
const done = new AbortController();

if (away !== undefined) await switchOff(away);
prober.start();
const endMs = Date.now() + Number(flags.minutes) * 60_000;
const work = [force(), ...(flags.calm ? [] : [harm()])];
const watching = watchRefusals();
while (Date.now() < endMs && !up.hasEnded) await pause(1000);
const endedByItself = up.hasEnded;
if (endedByItself) say('rotunda up has ended by itself');
done.abort();
await Promise.all(work);
if (away !== undefined) await switchOn(away);
await prober.stop();
noteRefusals();
await watching;
await report();
await kube.close();
await up.end();
const isClean = refusals.every(refused => standstillOf(refused, standstills) !== undefined) && !endedByItself;
if (isClean) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
process.exit(isClean ? 0 : 1);

async function watchRefusals(): Promise<void> {
  while (!done.signal.aborted) {
    noteRefusals();
    await pause(LOOK_EVERY_MS);
  }
}

/** What is new among the counters of the prober. */
function noteRefusals(): void {
  for (const { edge, refusals: found } of prober.snapshot().edges) {
    for (const { by, reason, from, to, count } of found) {
      const id = `${edge} ${by} ${reason}`;
      const before = seen.get(id) ?? 0;
      if (before === count) continue;
      seen.set(id, count);
      const toNode = nodeAt.get(to.replace(/:\d+$/, '')) ?? to;
      refusals.push({ at: new Date(), edge, by, fromNode: from, toNode, reason, count: count - before });
      say(`REFUSED ${edge}: the ${by} refuses, from ${from} to ${toNode}: ${reason}`);
    }
  }
}

/** All signers twice within six seconds, then three times within thirty-five, then again and again. */
async function force(): Promise<void> {
  const signers = [
    ...signersOf(KUBE_APISERVER_CHAINS).map(({ signer }) => signer),
    ...Object.values(FAMILY_TABLE).map(({ signer: name }) => ({ namespace: ETCD_NAMESPACE, name })),
  ];
  const all = async () => {
    const body = { metadata: { annotations: { [NOT_AFTER]: 'force-regeneration' } } };
    const forced = await Promise.all(
      signers.map(({ namespace, name }) =>
        kube.patch(SECRETS, { namespace, name }, { type: 'merge', body }).then(
          () => true,
          () => false,
        ),
      ),
    );
    say(`forced ${forced.filter(Boolean).length} of ${signers.length} signers`);
  };
  await until(dayMs * 5);
  for (const waits of [
    [0, 5000],
    [40_000, 15_000, 15_000],
  ]) {
    for (const ms of waits) {
      await until(ms);
      if (done.signal.aborted) return;
      await all();
    }
  }
  while (!done.signal.aborted) {
    await until(60_000 + random(60_000));
    if (!done.signal.aborted) await all();
  }
}

/** Kills one process, stops one for a while, stops all of them, or kills all of them. */
async function harm(): Promise<void> {
  await until(5000);
  while (!done.signal.aborted) {
    await until(3000 + random(6000));
    if (done.signal.aborted) return;
    const pids = descendants(up.pid);
    const pid = pids[random(pids.length)];
    if (pid === undefined) continue;
    const what = random(20);
    if (what < 10) {
      say(`kill -9 ${pid} ${shortCommand(pid)}`);
      signal(pid, 'SIGKILL');
    } else if (what < 17) {
      const ms = 500 + random(3000);
      say(`stop ${pid} for ${ms} ms ${shortCommand(pid)}`);
      signal(pid, 'SIGSTOP');
      await pause(ms);
      signal(pid, 'SIGCONT');
    } else if (what < 19) await stopEverything(1000 + random(4000));
    else await killEverything();
  }
}

async function stopEverything(ms: number): Promise<void> {
  await standingStill(`everything stopped for ${ms} ms`, async () => {
    const all = up.all();
    for (const each of all) signal(each, 'SIGSTOP');
    await pause(ms);
    for (const each of all) signal(each, 'SIGCONT');
  });
}

async function killEverything(): Promise<void> {
  await standingStill('everything killed, and started again', async () => {
    await up.killAndStart();
    const isReady = await up.isReady(READY_AGAIN_MS);
    say(isReady ? 'ready again' : `not ready again within ${READY_AGAIN_MS / 1000} s; going on all the same`);
  });
}

/** What is shown when it begins is read before: afterwards nobody could say what has ended meanwhile. */
async function standingStill(what: string, stand: () => Promise<void>): Promise<void> {
  const leaves: ShownLeaf[] = await leavesShown(sight);
  say(what);
  const from = new Date();
  await stand();
  const standstill = { what, from, to: new Date(), leaves };
  standstills.push(standstill);
  for (const { edge, side, node } of endedDuring(standstill)) say(`ended meanwhile: ${side} of ${edge} on ${node}`);
}

async function switchOff(node: string): Promise<void> {
  new Power(join(dir, 'nodes', node)).turn('off');
  // A waiver is for a node as it is: it ends when that changes.
  while (await isNodeReady(node)) await pause(LOOK_EVERY_MS);
  say(`${node} is switched off`);
  if (!flags.waive) return;
  await waiveNode(kube, node, { isWanted: true, dryRun: false }, new Date());
  say(`${node} is waived`);
}

/** Says who waits for it, switches it on, and sees whether it becomes one of the others by itself. */
async function switchOn(node: string): Promise<void> {
  const items = await readHandOvers(kube, new Date()).catch(() => []);
  for (const { metadata, phase, waitingFor } of items.filter(item => item.waitingFor.length > 0))
    say(`${metadata.name}: ${phase}, waiting for ${waitingFor.join(', ')}`);
  new Power(join(dir, 'nodes', node)).turn('on');
  const giveUpMs = Date.now() + BACK_MS;
  for (let isAccepted = false; !isAccepted; ) {
    if (Date.now() > giveUpMs) {
      say(`${node} did not come back within ${BACK_MS / 1000} s`);
      break;
    }
    await pause(1000);
    if (!(await isNodeReady(node).catch(() => false))) continue;
    // What it had before is refused, and refuses, until its agent has looked: that is not counted, but it has to end.
    const own = proberOf(sight, () => true, PROBE_PAUSE_MS);
    await own.probe();
    isAccepted = own.snapshot().edges.every(({ refusals: found }) => found.every(({ from }) => from !== node));
  }
  isBack = true;
  say(`${node} is counted again`);
  const rounds = prober.snapshot().rounds + 3;
  while (prober.snapshot().rounds < rounds && Date.now() < giveUpMs) await pause(LOOK_EVERY_MS);
}

async function isNodeReady(name: string): Promise<boolean> {
  const { status } = await kube.get(NODES, { name });
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}

async function report(): Promise<void> {
  const { edges, rounds } = prober.snapshot();
  const width = Math.max(...edges.map(({ edge }) => edge.length));
  console.log(`\n${'EDGE'.padEnd(width)}  ACCEPTED  REFUSED  UNANSWERED`);
  for (const { edge, accepted, refused, unreachable } of edges) {
    const [a, r, u] = [String(accepted).padStart(8), String(refused).padStart(7), String(unreachable).padStart(10)];
    console.log(`${edge.padEnd(width)}  ${a}  ${r}  ${u}`);
  }
  const explained = refusals.filter(refused => standstillOf(refused, standstills) !== undefined);
  for (const refused of refusals) {
    const { at, edge, by, fromNode, toNode, reason, count } = refused;
    const stood = standstillOf(refused, standstills);
    const because = stood === undefined ? '' : `; its leaf ended while everything stood still (${spanOf(stood)})`;
    const what = `${edge}, from ${fromNode} to ${toNode}: the ${by} refuses: ${reason} (${count})${because}`;
    console.log(`${stood === undefined ? 'REFUSED' : 'STOOD STILL'} ${time(at)} ${what}`);
  }
  for (const standstill of standstills) {
    const ended = new Set(endedDuring(standstill).map(({ edge, side, node }) => `${side} of ${edge} on ${node}`));
    console.log(`${spanOf(standstill)} ${standstill.what}: ${ended.size} leaves ended meanwhile`);
  }
  const { items } = await kube
    .list(SECRETS, { namespace: 'openshift-kube-apiserver-operator' })
    .catch(() => ({ items: [] }));
  for (const { metadata } of items.filter(({ metadata: found }) => found?.name?.endsWith('-signer')))
    console.log(`${metadata?.name}: ${metadata?.annotations?.['rotunda.dev/hand-over-took'] ?? 'was not handed over'}`);
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
  const [accepted, stood] = [sum(edges.map(edge => edge.accepted)), sum(explained.map(({ count }) => count))];
  const refused = sum(refusals.map(({ count }) => count)) - stood;
  say(
    `${accepted} accepted, ${refused} refused, ${stood} refused because everything had stood still, ${rounds} rounds, ` +
      `${standstills.length} standstills, seed ${flags.seed}, log ${dir}/rotunda.log`,
  );
}

function spanOf({ from, to }: Standstill): string {
  return `${time(from)} to ${time(to)}`;
}

function time(at: Date): string {
  return at.toISOString().slice(11, 23);
}

async function until(ms: number): Promise<void> {
  for (const end = Date.now() + ms; Date.now() < end && !done.signal.aborted; )
    await pause(Math.min(500, end - Date.now()));
}

function shortCommand(pid: number): string {
  return commandOf(pid).replaceAll(dir, '').slice(-160);
}

/** Whole numbers below a bound, the same for the same seed. */
function randomFrom(seed: number): (bound: number) => number {
  let state = seed >>> 0;
  return bound => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}
