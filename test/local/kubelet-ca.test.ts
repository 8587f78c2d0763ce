/**
 * The second scenario of the whole: a signer rotates, its bundle grows, ControllerConfig changes, and every node trusts both
 * generations, without a drain, a reboot or a new config, also in a paused pool.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { clusterProber } from '../../src/cli/console/prober.ts';
import { SERVICE_LOG } from '../../src/host/local.ts';
import { NODES, SECRETS } from '../../src/kube/resource.ts';
import { startLocalCluster } from '../../src/local/cluster.ts';
import { kubeApiserverPart } from '../../src/local/kube-apiserver-part.ts';
import { kubeletPart } from '../../src/local/kubelet-part.ts';
import { machineConfigPart } from '../../src/local/machine-config-part.ts';
import { MACHINE_CONFIG_POOLS } from '../../src/machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DAEMON_STATE } from '../../src/machine-config-api/names.ts';
import { readCertificates } from '../../src/pki/pem.ts';
import { eventually, PATIENCE_MS } from '../tools/eventually.ts';

const SIGNER = { namespace: 'openshift-kube-apiserver-operator', name: 'kube-apiserver-to-kubelet-signer' };
const LEAF = { namespace: 'openshift-kube-apiserver', name: 'kubelet-client' };
const EDGE = 'kube-apiserver to kubelets';
/** Rounds of the prober that must have begun and ended after a change. */
const ROUNDS = 3;

test('a new signer reaches the file of every kubelet, which accepts both generations throughout', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-kubelet-ca-'));
  const cluster = await startLocalCluster({
    dir,
    controlPlane: 1,
    workers: 2,
    keyAlgorithm: 'P-256',
    programs: { useRealBinaries: false },
    parts: [kubeApiserverPart, machineConfigPart, kubeletPart],
  });
  const { kube, nodes } = cluster;
  const prober = await clusterProber(kube, { pauseMs: 50, timeoutMs: PATIENCE_MS, edges: [EDGE] });
  t.after(async () => {
    await prober.stop();
    await cluster.close();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  });
  await cluster.ready();
  await kube.patch(MACHINE_CONFIG_POOLS, { name: 'worker' }, { type: 'merge', body: { spec: { paused: true } } });
  const before = await statesOf();
  prober.start();
  const accepted = () => prober.snapshot().edges.find(({ edge }) => edge === EDGE)?.accepted ?? 0;
  const someRounds = async () => {
    const enough = accepted() + ROUNDS * nodes.length;
    await eventually('more handshakes', async () => accepted() >= enough);
  };
  await someRounds();

  const old = namesIn(nodes[0]?.root ?? '').filter(isOfSigner);
  assert.equal(old.length, 1);
  await force(SIGNER);
  await eventually('both generations in the file of every node', async () =>
    nodes.every(({ root }) => namesIn(root).filter(isOfSigner).length === 2),
  );
  for (const { root } of nodes) assert.ok(namesIn(root).includes(old[0] as string), 'the old one stays trusted');
  await someRounds();
  const leaf = await certificateOf();
  await force(LEAF);
  await eventually('a leaf of the new signer', async () => (await certificateOf()) !== leaf);
  await someRounds();

  const [edge] = prober.snapshot().edges;
  assert.deepEqual([edge?.refused, edge?.unreachable], [0, 0], JSON.stringify(edge));
  t.diagnostic(`${edge?.accepted} handshakes with kubelets, none refused`);
  assert.deepEqual(await statesOf(), before, 'no node has another state, config, or is cordoned');
  for (const { root } of nodes)
    assert.equal(existsSync(`${root}${SERVICE_LOG}`), false, 'nothing was asked of systemd');

  async function force(secret: typeof SIGNER): Promise<void> {
    const annotations = { 'auth.openshift.io/certificate-not-after': null };
    await kube.patch(SECRETS, secret, { type: 'merge', body: { metadata: { annotations } } });
  }

  async function certificateOf(): Promise<string | undefined> {
    return (await kube.get(SECRETS, LEAF)).data?.['tls.crt'];
  }

  async function statesOf(): Promise<unknown[]> {
    const { items } = await kube.list(NODES);
    return items.map(({ metadata, spec }) => [
      metadata?.name,
      metadata?.annotations?.[DAEMON_STATE],
      metadata?.annotations?.[CURRENT_CONFIG],
      spec?.unschedulable ?? false,
    ]);
  }
});

function namesIn(root: string): string[] {
  const { certificates } = readCertificates(readFileSync(join(root, 'etc/kubernetes/kubelet-ca.crt'), 'utf8'));
  return certificates.map(({ subject }) => subject.commonName ?? '');
}

function isOfSigner(name: string): boolean {
  return name.includes(SIGNER.name);
}
