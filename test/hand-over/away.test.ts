/**
 * A worker that is switched off while signers are handed over: the hand-overs wait for it by name, nobody else is refused, and it comes back
 * into a cluster that it can reach; also when somebody has waived it (spec 90, section 4).
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import { annotationsOf, loadSecret } from '../../src/certrotation/secret.ts';
import { PRESENTERS, RECEIPTS, SHOWN, WAIVED } from '../../src/hand-over/names.ts';
import type { Receipt } from '../../src/hand-over/receipt.ts';
import { getIfPresent } from '../../src/kube/get.ts';
import { NODES, SECRETS } from '../../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../../src/kube-apiserver/chains.ts';
import { type LocalCluster, startLocalCluster } from '../../src/local/cluster.ts';
import { kubeApiserverPart } from '../../src/local/kube-apiserver-part.ts';
import { kubeletPart } from '../../src/local/kubelet-part.ts';
import { machineConfigPart } from '../../src/local/machine-config-part.ts';
import type { LocalNode } from '../../src/local/node.ts';
import type { Prober } from '../../src/trust/prober.ts';
import { caDigest } from '../../src/trust/receipts.ts';
import { eventually } from '../tools/eventually.ts';
import { nodeFilesProber } from './prober.ts';

const NAMESPACE = 'openshift-kube-apiserver-operator';
/** Checked by kubelets as servers, and by kubelets as clients. */
const SIGNERS = ['kube-apiserver-to-kubelet-signer', 'loadbalancer-serving-signer'];
/** Rounds of the prober that begin and end after a change. */
const ROUNDS = 3;

const dir = mkdtempSync(join(tmpdir(), 'rotunda-away-'));
let cluster: LocalCluster;
let prober: Prober;
let away: LocalNode;

before(async () => {
  cluster = await startLocalCluster({
    dir,
    controlPlane: 1,
    workers: 2,
    keyAlgorithm: 'P-256',
    programs: { useRealBinaries: false },
    parts: [kubeApiserverPart, machineConfigPart, kubeletPart],
  });
  await cluster.ready();
  away = cluster.nodes.find(({ name }) => name === 'worker-1') as LocalNode;
  prober = await nodeFilesProber(cluster.kube, dir, 100);
  prober.start();
});

after(async () => {
  await prober?.stop();
  await cluster?.close();
  rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
});

test('everybody comes to show what is signed anew, whatever the family, and that is noted (HO-3)', async () => {
  const names = [...new Set(KUBE_APISERVER_CHAINS.map(({ signer }) => signer.name))];
  const signed = new Map<string, string>();
  for (const name of names) signed.set(name, caDigest(await certificateOf(NAMESPACE, name)));
  for (const name of names) await force(name);
  for (const name of names) {
    let found = '';
    await eventually(
      `everybody shows leaves of ${name}`,
      async () => {
        const secret = await cluster.kube.get(SECRETS, { namespace: NAMESPACE, name });
        const { [SHOWN]: shown, [PRESENTERS]: presenters } = annotationsOf(secret);
        found = presenters ?? '';
        const [current] = loadSecret(secret).chain;
        return current !== undefined && shown === caDigest(current) && shown !== signed.get(name);
      },
      () => found,
    );
  }
  assert.deepEqual(refusals(), []);
});

test('it is waited for by name; switched on again, everything goes on by itself', async () => {
  const signed = await signers();
  await switchOff();
  for (const name of SIGNERS) await force(name);
  for (const name of SIGNERS) {
    await eventually(`${name} waits for nobody but worker-1`, async () => {
      const waiting = (await receiptsOf(name)).filter(({ isLoaded }) => !isLoaded).map(({ verifier }) => verifier);
      return waiting.length > 0 && waiting.every(verifier => verifier === 'kubelet on worker-1');
    });
  }
  await someRounds();
  assert.deepEqual(await signers(), signed, 'nothing is signed by what it has not loaded');
  away.power.turn('on');
  await eventually('both are handed over', async () => (await signers()).every((name, i) => name !== signed[i]));
  await leavesFollow();
  await someRounds();
  assert.deepEqual(refusals(), []);
});

test('waived, it is left behind, and comes back into a cluster that it can reach', async () => {
  const signed = await signers();
  await switchOff();
  for (const name of SIGNERS) await force(name);
  await eventually('they wait', async () => {
    const receipts = await Promise.all(SIGNERS.map(receiptsOf));
    return receipts.every(some =>
      some.some(({ verifier, isLoaded }) => verifier === 'kubelet on worker-1' && !isLoaded),
    );
  });
  const annotations = { [WAIVED]: new Date().toISOString() };
  await cluster.kube.patch(NODES, { name: away.name }, { type: 'merge', body: { metadata: { annotations } } });
  await eventually('both are handed over', async () => (await signers()).every((name, i) => name !== signed[i]));
  await leavesFollow();
  await someRounds();
  const isOfOthers = (text: string) => !text.includes(`from ${away.name} `);
  assert.deepEqual(refusals().filter(isOfOthers), [], 'nobody who is there');
  // What it had before is refused, and refuses, until its agent has looked.
  await prober.stop();
  away.power.turn('on');
  await eventually('it is ready again', isReady);
  await eventually('nobody refuses it, and it refuses nobody', async () => {
    prober = await nodeFilesProber(cluster.kube, dir, 100);
    await prober.probe();
    return refusals().length === 0;
  });
  // From now on it is counted again.
  await switchOff();
  await force(SIGNERS[0] as string);
  await eventually('it is waited for', async () =>
    (await receiptsOf(SIGNERS[0] as string)).some(
      ({ verifier, isLoaded, isWaived }) => verifier === 'kubelet on worker-1' && !isLoaded && !isWaived,
    ),
  );
  away.power.turn('on');
});

async function switchOff(): Promise<void> {
  away.power.turn('off');
  await eventually('it is not ready', async () => !(await isReady()));
}

async function isReady(): Promise<boolean> {
  const { status } = await cluster.kube.get(NODES, { name: away.name });
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}

async function force(name: string): Promise<void> {
  const body = { metadata: { annotations: { [NOT_AFTER]: 'force-regeneration' } } };
  await cluster.kube.patch(SECRETS, { namespace: NAMESPACE, name }, { type: 'merge', body });
}

async function signers(): Promise<string[]> {
  return Promise.all(SIGNERS.map(name => certificateOf(NAMESPACE, name).then(({ subject }) => subject.commonName)));
}

async function certificateOf(namespace: string, name: string) {
  const [certificate] = loadSecret(await cluster.kube.get(SECRETS, { namespace, name })).chain;
  assert.ok(certificate);
  return certificate;
}

async function leavesFollow(): Promise<void> {
  const chains = KUBE_APISERVER_CHAINS.filter(({ signer }) => SIGNERS.includes(signer.name));
  await eventually('leaves of the new signers', async () => {
    const found = await Promise.all(
      chains.map(async ({ signer, target }) => {
        const current = await certificateOf(signer.namespace, signer.name);
        const leaf = await certificateOf(target.namespace, target.name);
        return leaf.issuer.commonName === current.subject.commonName;
      }),
    );
    return found.every(Boolean);
  });
}

async function receiptsOf(name: string): Promise<Receipt[]> {
  const next = await getIfPresent(cluster.kube, SECRETS, { namespace: NAMESPACE, name: `${name}-next` });
  return next === undefined ? [] : (JSON.parse(annotationsOf(next)[RECEIPTS] ?? '[]') as Receipt[]);
}

async function someRounds(): Promise<void> {
  const enough = prober.snapshot().rounds + ROUNDS;
  await eventually('some rounds of the prober', async () => prober.snapshot().rounds >= enough);
}

/** Everybody who is refused, or refuses, by name. There is no etcd here. */
function refusals(): string[] {
  return prober
    .snapshot()
    .edges.filter(({ edge }) => !edge.endsWith('to etcd'))
    .flatMap(({ edge, refusals: found }) =>
      found.map(({ by, from, to, reason }) => `${edge}: the ${by} refuses, from ${from} to ${to}: ${reason}`),
    );
}
