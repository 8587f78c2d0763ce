/**
 * Whoever works on a new CA is killed in each of its phases, and so is a static pod: the outcome is the same (spec 80, KA-12). The
 * cluster has one control-plane node, which is away each time, so that only the outcome is looked at, and that nobody is refused.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { rigProblem } from '../rig/rig.ts';
import { AdoptedCluster, ROTUNDA_IMAGE, tell } from './adopted-cluster.ts';

const LOOK_EVERY_MS = 200;
/** Of these one more in every phase, beside all programs of ours. */
const STATIC_PODS = ['kube-controller-manager', 'etcd', 'kube-apiserver', 'kube-scheduler'];
/** What runs agents and the operator. */
const OURS = 'node';
const problem = await rigProblem();

describe('a hand-over in which everybody is killed', { skip: problem ?? false }, () => {
  let cluster: AdoptedCluster;

  before(async () => {
    cluster = await AdoptedCluster.start({ controlPlanes: 1, workers: 1 });
    await cluster.rotunda('adopt', 'kubeadm', '--image', ROTUNDA_IMAGE, '--yes');
    await cluster.isQuiet();
  });

  after(() => cluster?.close());

  test('kill -9 of operator, agents and a static pod in each phase', async () => {
    const [old] = await cluster.casIn('ca.crt');
    const stop = new AbortController();
    const killing = killInEachPhase(cluster, stop.signal);
    try {
      await cluster.rotunda('rotate', 'ca', '--yes');
    } finally {
      stop.abort();
    }
    const killed = await killing;
    tell(`killed in ${[...killed.keys()].join(', ')}`);
    for (const phase of ['Separating', 'Distributing', 'Signing']) assert.ok((killed.get(phase) ?? 0) > 0, phase);
    await cluster.isQuiet();
    const both = await cluster.casIn('ca.crt');
    assert.equal(both.length, 2);
    assert.ok(both[1]?.der.equals(old?.der ?? Buffer.of()));
    await cluster.isKnownToKubeadm();
    const beside = await cluster.first.output(
      'sh',
      '-c',
      'find /etc/kubernetes /var/lib/kubelet/pki -name "*rotunda-next*"',
    );
    assert.equal(beside, '');
  });
});

/** How many processes were killed, by phase; whoever cannot be asked is asked again. */
async function killInEachPhase(cluster: AdoptedCluster, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const killed = new Map<string, number>();
  while (!signal.aborted) {
    const status = await cluster.status().catch(() => undefined);
    const phase = status?.families.ca?.phase;
    if (phase !== undefined && phase !== 'Steady' && !killed.has(phase)) {
      const staticPod = STATIC_PODS[killed.size % STATIC_PODS.length] as string;
      const counts = await Promise.all([
        ...cluster.rig.nodes.map(node => node.kill(OURS)),
        cluster.first.kill(staticPod),
      ]);
      killed.set(
        phase,
        counts.reduce((sum, count) => sum + count),
      );
      tell(`${phase}: killed ${staticPod} and ${OURS} on every node`);
    }
    await new Promise(resolve => setTimeout(resolve, LOOK_EVERY_MS));
  }
  return killed;
}
