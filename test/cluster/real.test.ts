/**
 * A cluster that serves itself, with real etcd and kube-apiserver: three members and three servers, whose certificates the operators
 * rotate through the very servers they belong to. Under constant load with certificates and tokens, through every name, every leaf is
 * replaced three times and every signer at least once, and one component after the other is killed. Nobody may notice.
 */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, type TestContext, test } from 'node:test';
import { seconds } from '../../src/kube/duration.ts';
import { KUBERNETES_VERSION } from '../../src/local/real/built-programs.ts';
import type { Prober } from '../../src/trust/prober.ts';
import { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
import { findBinaries } from './binaries.ts';
import { type NodeName, RealCluster } from './real-cluster.ts';
import { realProber } from './real-edges.ts';
import { ApiLoad, type LoadReport } from './real-load.ts';
import { type Artefact, artefactsOf, etcdFollows, RotationCount, signersHaveSpread } from './real-rotation.ts';
import { LOAD_NAMESPACE, loadUsers } from './real-users.ts';

/**
 * A day and a half pass between a new signer and the first leaf of it. Whoever reads the bundle only when it starts has to be
 * restarted in that time, on all nodes, one after the other, on a machine that may be busy with other things.
 */
const LONG_DAY_MS = seconds(120);
/** Here only those rotate that are taken while running: a second or two are enough for them, and this gives them more than seven. */
const SHORT_DAY_MS = seconds(5);
const LEAF_ROTATIONS = 3;
const ETCD_MANIFEST = 'etc/kubernetes/manifests/etcd-pod.yaml';
const RECOVERY_LEAF = 'localhost-recovery-serving-certkey';
/** Those with a life of a month, and how often they rotate in the second part. */
const QUICK_DAYS = 15;
const OWN_ROTATIONS = 1;
const ROUNDS = 3;

const binaries = findBinaries(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']);
const skip = 'missing' in binaries ? binaries.missing : false;

describe('a cluster that serves itself', { skip }, () => {
  let cluster: RealCluster;
  before(async () => {
    cluster = new RealCluster();
    await timed('bootstrapped and ready, with a kill -9 in the middle', async () => {
      cluster.launch(LONG_DAY_MS);
      await eventually('the first static pod', () => existsSync(cluster.pathOn('master-0', ETCD_MANIFEST)));
      await cluster.kill('SIGKILL');
      await cluster.start(LONG_DAY_MS);
    });
  });
  after(() => cluster.stop());

  test('every leaf three times, every signer once, under load, and kill -9 of any one component', async t => {
    const { leaves, signers } = artefactsOf(LONG_DAY_MS);
    const { count, end } = await begin(t, [...leaves, ...signers]);
    await timed('every signer; kill -9 of a kube-apiserver and of a cert-syncer', async () => {
      // First those leaves whose files come with a revision, by their old signers: one rollout does for both.
      await count.force(leaves.filter(({ name }) => name === RECOVERY_LEAF));
      const forced = count.force(signers);
      await killed('master-1', 'kube-apiserver');
      await killed('master-2', 'kube-apiserver-cert-syncer');
      await forced;
      await eventually('etcd to use its new signers', () => etcdFollows(cluster));
      await settled();
      await signersHaveSpread(cluster);
    });
    await timed('every leaf; kill -9 of an etcd member', async () => {
      const forced = count.force(leaves);
      await killed('master-0', 'etcd');
      await forced;
      await settled();
    });
    await timed('every leaf; kill -9 of the process of operators and nodes', async () => {
      await signersHaveSpread(cluster);
      const forced = count.force(leaves);
      await cluster.kill('SIGKILL');
      await cluster.start(LONG_DAY_MS);
      await forced;
      await settled();
    });
    await timed('what is left', async () => {
      const rest = () => leaves.filter(leaf => count.rotations(leaf) < LEAF_ROTATIONS);
      while (rest().length > 0) {
        await signersHaveSpread(cluster);
        await count.force(rest());
        await settled();
      }
    });
    await end(leaves, signers);
    for (const leaf of leaves) assert.ok(count.rotations(leaf) >= LEAF_ROTATIONS, leaf.name);
    for (const signer of signers) assert.ok(count.rotations(signer) >= 1, signer.name);
  });

  test('stopped, and started again with short days: leaves and signers rotate by themselves', async t => {
    await timed('stopped', () => cluster.kill('SIGTERM'));
    await timed('started', () => cluster.start(SHORT_DAY_MS));
    const all = artefactsOf(SHORT_DAY_MS);
    const isQuick = ({ refreshMs = Number.POSITIVE_INFINITY }) => refreshMs <= QUICK_DAYS * SHORT_DAY_MS;
    const [leaves, signers] = [all.leaves.filter(isQuick), all.signers.filter(isQuick)];
    // The others are handed over too, and their leaves follow.
    const run = await begin(t, [...all.leaves, ...all.signers]);
    await timed('by themselves', () =>
      eventually(
        'rotations',
        () => [...leaves, ...signers].every(artefact => run.count.rotations(artefact) >= OWN_ROTATIONS),
        () => [...leaves, ...signers].map(artefact => `${artefact.name} ${run.count.rotations(artefact)}`).join(', '),
      ),
    );
    await run.end(leaves, signers);
  });

  /** Load and handshakes from now on, and a count of what rotates. */
  async function begin(t: TestContext, artefacts: readonly Artefact[]) {
    const count = new RotationCount(cluster, artefacts);
    t.after(() => count.stop());
    await count.start();
    const users = await loadUsers(cluster);
    await signersHaveSpread(cluster);
    const load = new ApiLoad(LOAD_NAMESPACE, users);
    t.after(() => load.stop());
    const prober = realProber(cluster);
    prober.start();
    t.after(() => prober.stop());
    await someRounds(prober);
    /** Says the numbers, and fails where somebody would have noticed something. */
    const end = async (leaves: readonly Artefact[], signers: readonly Artefact[]) => {
      await someRounds(prober);
      const report = await load.stop();
      await prober.stop();
      tell(count, leaves, signers);
      tellLoad(report);
      tellEdges(prober);
      assert.deepEqual(report.failures, []);
      assert.deepEqual(report.refusals, []);
      assert.deepEqual(report.lost, []);
      for (const { edge, refusals, accepted, skipped } of prober.snapshot().edges) {
        assert.deepEqual([edge, refusals], [edge, []]);
        assert.ok(accepted >= ROUNDS || skipped !== undefined, `${edge}: ${accepted} handshakes`);
      }
      assert.deepEqual(
        artefacts.flatMap(artefact => count.unpredicted(artefact) ?? []),
        [],
      );
    };
    return { count, end };
  }

  async function settled(): Promise<void> {
    await eventually(
      'every part to be ready',
      () => cluster.isReady(),
      () => `${cluster.unready()}\n${cluster.said}`,
    );
  }

  /** Kills a container's process and waits until another one has taken its place. */
  async function killed(node: NodeName, container: string): Promise<void> {
    const pid = await eventually(`${container} on ${node}`, () => cluster.processOf(node, container));
    process.kill(pid, 'SIGKILL');
    await eventually(`another ${container} on ${node}`, () => {
      const now = cluster.processOf(node, container);
      return now !== undefined && now !== pid;
    });
  }
});

function tell(count: RotationCount, leaves: readonly Artefact[], signers: readonly Artefact[]): void {
  const times = (list: readonly Artefact[]) => {
    const rotations = list.map(artefact => count.rotations(artefact));
    return `${rotations.reduce((sum, n) => sum + n, 0)} times, each ${Math.min(...rotations)} to ${Math.max(...rotations)}`;
  };
  say(
    `Kubernetes ${KUBERNETES_VERSION}: ${leaves.length} leaves rotated ${times(leaves)}; ` +
      `${signers.length} signers ${times(signers)}`,
  );
}

function tellLoad({ users, lists, updates, failures, refusals, retries, events, resumed, lost }: LoadReport): void {
  say(
    `${users} users: ${lists} lists, ${updates} updates, ${failures.length} failed, ${refusals.length} refused, ` +
      `${retries} repeated; watches: ${events} events, ${resumed} resumed, ${lost.length} lost`,
  );
  for (const text of [...failures, ...refusals, ...lost]) say(text);
}

function tellEdges(prober: Prober): void {
  const { edges, rounds } = prober.snapshot();
  const sum = (pick: (edge: (typeof edges)[number]) => number) => edges.reduce((n, edge) => n + pick(edge), 0);
  say(
    `${edges.length} edges, ${rounds} rounds: ${sum(edge => edge.accepted)} handshakes accepted, ` +
      `${sum(edge => edge.refused)} refused, ${sum(edge => edge.unreachable)} while a server was away`,
  );
  for (const { edge, refusals } of edges) if (refusals.length > 0) say(`${edge}: ${JSON.stringify(refusals)}`);
}

async function someRounds(prober: Prober): Promise<void> {
  const { rounds } = prober.snapshot();
  await eventually('some rounds of handshakes', () => prober.snapshot().rounds >= rounds + ROUNDS);
}

async function timed(what: string, work: () => Promise<unknown>): Promise<void> {
  const started = Date.now();
  await work();
  say(`${what}: ${((Date.now() - started) / 1000).toFixed(0)} s`);
}

function say(text: string): void {
  process.stderr.write(`# ${text}\n`);
}
