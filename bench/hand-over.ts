/**
 * How long does it take until a new signer has signed everything, with everybody ready? Three control-plane nodes and five kubelets, real
 * processes on local nodes, days of 24 hours: each signer of kube-apiserver is asked for anew by itself, once by receipts. Beside it what the clock
 * takes, by its rule: a leaf of a new signer is made a tenth of the leaf's refresh time after the signer at the earliest (spec 10, T-8).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NOT_AFTER } from '../src/certrotation/annotations.ts';
import { loadSecret } from '../src/certrotation/secret.ts';
import { days, formatGoDuration } from '../src/kube/duration.ts';
import { SECRETS } from '../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS, type ObjectName, signersOf } from '../src/kube-apiserver/chains.ts';
import { type LocalCluster, startLocalCluster } from '../src/local/cluster.ts';
import { kubeApiserverPart } from '../src/local/kube-apiserver-part.ts';
import { kubeletPart } from '../src/local/kubelet-part.ts';
import { machineConfigPart } from '../src/local/machine-config-part.ts';

const LOOK_MS = 50;
/** What one hand-over leaves to be done is over by then. */
const SETTLE_MS = 15_000;
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));

export async function bench(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-bench-'));
  const cluster = await startLocalCluster({
    dir,
    controlPlane: 3,
    workers: 2,
    keyAlgorithm: 'P-256',
    programs: { useRealBinaries: false },
    parts: [kubeApiserverPart, machineConfigPart, kubeletPart],
  });
  try {
    await cluster.ready();
    await pause(SETTLE_MS);
    console.log('signer                               distributed   all signed      by the clock   ratio');
    for (const { signer, chains } of signersOf(KUBE_APISERVER_CHAINS)) {
      const { distributedMs, signedMs } = await handOver(
        cluster,
        signer,
        chains.map(({ target }) => target),
      );
      const clockMs = Math.min(...chains.map(({ target }) => (target.refreshDays * days(1)) / 10));
      const ratio = Math.round(clockMs / signedMs);
      console.log(
        [
          signer.name.padEnd(36),
          seconds(distributedMs).padStart(11),
          seconds(signedMs).padStart(12),
          formatGoDuration(clockMs).padStart(17),
          `${ratio}x`.padStart(7),
        ].join(' '),
      );
      await pause(SETTLE_MS);
    }
  } finally {
    await cluster.close();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function handOver({ kube }: LocalCluster, signer: ObjectName, leaves: readonly ObjectName[]) {
  const key = { namespace: signer.namespace, name: signer.name };
  const certificateOf = async ({ namespace, name }: ObjectName) =>
    loadSecret(await kube.get(SECRETS, { namespace, name })).chain[0];
  const before = (await certificateOf(signer))?.subject.commonName;
  const body = { metadata: { annotations: { [NOT_AFTER]: 'force-regeneration' } } };
  const begin = performance.now();
  await kube.patch(SECRETS, key, { type: 'merge', body });
  let current = before;
  while (current === before) {
    await pause(LOOK_MS);
    current = (await certificateOf(signer))?.subject.commonName;
  }
  const distributedMs = performance.now() - begin;
  for (;;) {
    const issuers = await Promise.all(leaves.map(async leaf => (await certificateOf(leaf))?.issuer.commonName));
    if (issuers.every(issuer => issuer === current)) return { distributedMs, signedMs: performance.now() - begin };
    await pause(LOOK_MS);
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
