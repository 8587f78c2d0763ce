/**
 * A cluster that serves itself, with real etcd and kube-apiserver: three members and three servers, whose certificates the operators
 * rotate through the very servers they belong to. Under constant load with certificates and tokens, through every name, every leaf is
 * replaced three times and every signer at least once, and one component after the other is killed. Nobody may notice.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { seconds } from '../../src/kube/duration.ts';
import type { Prober } from '../../src/trust/prober.ts';
import { type Binaries, findBinaries, kubernetesVersion } from './binaries.ts';
import { type NodeName, eventually, RealCluster } from './real-cluster.ts';
import { realProber } from './real-edges.ts';
import { ApiLoad } from './real-load.ts';
import { artefactsOf, etcdFollows, RotationCount, signersHaveSpread } from './real-rotation.ts';
import { LOAD_NAMESPACE, loadUsers } from './real-users.ts';

/**
 * A tenth of a leaf's life passes between a new signer and the first leaf of it: a minute, in which a server that is being
 * restarted on a busy machine is back and has the new bundle.
 */
const DAY_MS = seconds(20);
const LEAF_ROTATIONS = 3;
const RECOVERY_LEAF = 'localhost-recovery-serving-certkey';
const ROUNDS = 3;
const LIMIT_MS = seconds(1500);

const binaries = findBinaries(['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']);
const skip = 'missing' in binaries ? binaries.missing : false;

describe('a cluster that serves itself', { skip, timeout: LIMIT_MS }, () => {
  let cluster: RealCluster;
  before(async () => {
    cluster = new RealCluster(binaries as Binaries, `${DAY_MS / 1000}s`);
    await timed('bootstrapped and ready', () => cluster.start());
  });
  after(() => cluster.stop());

  test('every leaf three times, every signer once, under load, and kill -9 of any one component', async t => {
    const { leaves, signers } = artefactsOf(DAY_MS);
    const count = new RotationCount(cluster, [...leaves, ...signers]);
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
      await cluster.start();
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
      await someRounds(prober);
    });

    const report = await load.stop();
    await prober.stop();
    const { edges, rounds } = prober.snapshot();
    const sum = (pick: (edge: (typeof edges)[number]) => number) => edges.reduce((n, edge) => n + pick(edge), 0);
    const total = (list: typeof leaves) => list.reduce((n, artefact) => n + count.rotations(artefact), 0);
    const least = (list: typeof leaves) => Math.min(...list.map(artefact => count.rotations(artefact)));
    say(
      `Kubernetes ${kubernetesVersion()}: ${leaves.length} leaves rotated ${total(leaves)} times (least ${least(leaves)}), ` +
        `${signers.length} signers ${total(signers)} times (least ${least(signers)})`,
    );
    say(
      `${report.users} users: ${report.lists} lists, ${report.updates} updates, ${report.failures.length} failed, ` +
        `${report.refusals.length} refused, ${report.retries} repeated; ` +
        `watches: ${report.events} events, ${report.resumed} resumed, ${report.lost.length} lost`,
    );
    say(
      `${edges.length} edges, ${rounds} rounds: ${sum(edge => edge.accepted)} handshakes accepted, ` +
        `${sum(edge => edge.refused)} refused, ${sum(edge => edge.unreachable)} while a server was away`,
    );
    assert.deepEqual(report.failures, []);
    assert.deepEqual(report.refusals, []);
    assert.deepEqual(report.lost, []);
    for (const { edge, refusals, accepted, skipped } of edges) {
      assert.deepEqual([edge, refusals], [edge, []]);
      assert.ok(accepted >= ROUNDS || skipped !== undefined, `${edge}: ${accepted} handshakes`);
    }
    for (const leaf of leaves) assert.ok(count.rotations(leaf) >= LEAF_ROTATIONS, leaf.name);
    for (const signer of signers) assert.ok(count.rotations(signer) >= 1, signer.name);
    assert.deepEqual(
      [...leaves, ...signers].flatMap(artefact => count.unpredicted(artefact) ?? []),
      [],
    );
  });

  test('stopped and started with the same folder it goes on', async () => {
    await timed('stopped', () => cluster.kill('SIGTERM'));
    await timed('started', () => cluster.start());
    await settled();
  });

  async function settled(): Promise<void> {
    await eventually('every part to be ready', () => cluster.isReady(), () => `${cluster.unready()}\n${cluster.said}`);
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
