/**
 * Whoever works on a new CA is killed in each of its phases, and so is a static pod: the outcome is the same (spec 80, KA-12). The
 * cluster has one control-plane node, which is away each time, so that only the outcome is looked at, and that nobody is refused. Its
 * keys are ECDSA, and before it was adopted one of them was that of somebody else.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { SECRETS } from '../../../src/kube/resource.ts';
import type { ClusterStatus } from '../../../src/kubeadm/cluster-record.ts';
import { PKI_NAMESPACE } from '../../../src/kubeadm/names.ts';
import { keyAlgorithmOf, systemKeys } from '../../../src/pki/keys.ts';
import { encodePrivateKey } from '../../../src/pki/pem.ts';
import { rigProblem } from '../rig/rig.ts';
import { AdoptedCluster, ROTUNDA_IMAGE, tell } from './adopted-cluster.ts';

const LOOK_EVERY_MS = 200;
/** Of these one more in every phase, beside all programs of ours. */
const STATIC_PODS = ['kube-controller-manager', 'etcd', 'kube-apiserver', 'kube-scheduler'];
/** What runs agents and the operator. */
const OURS = 'node';
const KEY = '/etc/kubernetes/pki/etcd/ca.key';
const problem =
  process.env.ROTUNDA_RIGS === 'all'
    ? await rigProblem()
    : 'it takes a quarter of an hour, most of it until a dead leader is given up: ROTUNDA_RIGS=all runs it';

describe('a hand-over in which everybody is killed', { skip: problem ?? false }, () => {
  let cluster: AdoptedCluster;
  /** How many were killed, by stage. */
  const killed = new Map<string, number>();

  before(async () => {
    const kind = { encryptionAlgorithm: 'ECDSA-P256' };
    cluster = await AdoptedCluster.start({ controlPlanes: 1, workers: 1, cluster: kind });
  });

  after(() => cluster?.close());

  test('the key of somebody else keeps the cluster from being adopted, and nothing is written', async () => {
    const path = join(cluster.first.root, KEY);
    const own = readFileSync(path);
    writeFileSync(path, encodePrivateKey(await systemKeys.generate('P-256')));
    const files = await cluster.files();
    await assert.rejects(
      cluster.rotunda('adopt', 'kubeadm', '--image', ROTUNDA_IMAGE, '--yes'),
      /the nodes do not agree; nothing was copied.*\n- cp-0 has a key in etcd\/ca\.key that is not that of etcd\/ca\.crt: /,
    );
    assert.equal(await cluster.files(), files);
    assert.deepEqual((await cluster.kube.list(SECRETS, { namespace: PKI_NAMESPACE })).items, []);
    writeFileSync(path, own);
    const mended = await cluster.files();
    await cluster.rotunda('adopt', 'kubeadm', '--yes');
    await cluster.isQuiet();
    assert.equal(await cluster.files(), mended);
    await cluster.isKnownToKubeadm();
  });

  test('kill -9 of operator, agents and a static pod in each phase until the next CA signs', async () => {
    const [old] = await cluster.casIn('ca.crt');
    await killing(() => cluster.rotunda('rotate', 'ca', '--yes'));
    for (const stage of ['Separating', 'Distributing', 'Signing']) assert.ok((killed.get(stage) ?? 0) > 0, stage);
    await cluster.isQuiet();
    const both = await cluster.casIn('ca.crt');
    assert.equal(both.length, 2);
    assert.ok(both[1]?.der.equals(old?.der ?? Buffer.of()));
    await isWhole();
  });

  test('and until the CA before has left', async () => {
    const [next] = await cluster.casIn('ca.crt');
    await cluster.endJoins();
    await killing(() => cluster.rotunda('rotate', 'ca', '--retire', '--yes'));
    for (const stage of ['Retiring', 'Leaving', 'Joining']) assert.ok((killed.get(stage) ?? 0) > 0, stage);
    await cluster.isQuiet();
    const left = await cluster.casIn('ca.crt');
    assert.deepEqual(
      left.map(({ der }) => der),
      [next?.der],
    );
    await isWhole();
  });

  /** Kubeadm knows all there is, nothing lies beside it, and every key is what kubeadm was told to make. */
  async function isWhole(): Promise<void> {
    await cluster.isKnownToKubeadm();
    const find = 'find /etc/kubernetes /var/lib/kubelet/pki -name "*rotunda-next*"';
    for (const node of cluster.rig.nodes) assert.equal(await node.output('sh', '-c', find), '');
    for (const base of ['ca', 'apiserver', 'apiserver-kubelet-client', 'etcd/server']) {
      const [certificate] = await cluster.casIn(`${base}.crt`);
      assert.equal(certificate && keyAlgorithmOf(certificate.publicKey), 'P-256', base);
    }
  }

  async function killing(work: () => Promise<unknown>): Promise<void> {
    const stop = new AbortController();
    const over = killInEachStage(cluster, killed, stop.signal);
    try {
      await work();
    } finally {
      stop.abort();
      await over;
    }
    tell(`killed in ${[...killed.keys()].join(', ')}`);
  }
});

/** Once in each; whoever cannot be asked is asked again. */
async function killInEachStage(
  cluster: AdoptedCluster,
  killed: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const status = await cluster.status().catch(() => undefined);
    const stage = status && stageOf(status);
    if (stage !== undefined && !killed.has(stage)) {
      const staticPod = STATIC_PODS[killed.size % STATIC_PODS.length] as string;
      const counts = await Promise.all([
        ...cluster.rig.nodes.map(node => node.kill(OURS)),
        cluster.first.kill(staticPod),
      ]);
      killed.set(
        stage,
        counts.reduce((sum, count) => sum + count),
      );
      tell(`${stage}: killed ${staticPod} and ${OURS} on every node`);
    }
    await new Promise(resolve => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

/** The phase; after the last one it leaves files, node by node, and then the roles are put together again. */
function stageOf({ families, round }: ClusterStatus): string | undefined {
  const phase = families.ca?.phase;
  if (phase !== 'Steady') return phase;
  if (round === undefined) return undefined;
  return /signs with ca\.crt again/.test(round.because) ? 'Joining' : 'Leaving';
}
