/**
 * A day of half a second: leaves are replaced every few seconds while real handshakes go on over every name the server has, with
 * the bundles and the client certificates as they are published. Nothing may fail, and nothing may restart.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../src/certrotation/bundle.ts';
import { dataText } from '../../src/certrotation/secret.ts';
import { Informer } from '../../src/kube/informer.ts';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../../src/kube-apiserver/chains.ts';
import { MANAGED_NAMESPACE } from '../../src/kube-apiserver/namespaces.ts';
import { EXTERNAL_NAME, INTERNAL_NAME } from '../../src/local/cluster-inputs.ts';
import type { LocalNode } from '../../src/local/node.ts';
import { ask, loadedOn, startTestCluster, statusOf } from './cluster.ts';

const DAY_MS = 500;
const ROTATIONS = 4;
const NAMES = ['localhost', 'kubernetes.default.svc', EXTERNAL_NAME, INTERNAL_NAME, 'localhost-recovery'];
/** Leaves that live for a month; the others outlast any test. */
const leaves = KUBE_APISERVER_CHAINS.filter(({ target }) => target.refreshDays === 15).map(({ target }) => target);
/** Signers that rotate in the same time, at least once. */
const signers = KUBE_APISERVER_CHAINS.filter(({ signer }) => signer.refreshDays <= 30).map(({ signer }) => signer);
/** Whom kube-apiserver knows by its client CA. */
const clients = KUBE_APISERVER_CHAINS.filter(
  ({ target, controller }) => target.creator.kind === 'client' && controller !== 'AggregatorProxyClientCert',
).map(({ target }) => target);

let cluster: Awaited<ReturnType<typeof startTestCluster>>;
before(async () => {
  cluster = await startTestCluster({ controlPlane: 1, dayMs: DAY_MS });
  await cluster.ready();
});
after(() => cluster.stop());

test(`every short leaf rotates ${ROTATIONS} times under handshakes that never fail`, { timeout: 90_000 }, async t => {
  const [node] = cluster.controlPlane as [LocalNode];
  const versions = new Map([...leaves, ...signers].map(({ name }) => [name, new Set<string>()]));
  const secrets = new Informer<Secret>(cluster.kube, SECRETS);
  const note = (secret: Secret) => versions.get(secret.metadata?.name ?? '')?.add(secret.data?.['tls.crt'] ?? '');
  secrets.subscribe({ add: note, update: (_, secret) => note(secret) });
  secrets.start();
  t.after(() => secrets.stop());
  await secrets.synced;
  const { pid } = await loadedOn(node);
  const { latestAvailableRevision } = await statusOf(cluster);

  let handshakes = 0;
  const failures: string[] = [];
  const rotations = ({ name }: { name: string }) => (versions.get(name)?.size ?? 0) - 1;
  const rotated = () =>
    leaves.every(leaf => rotations(leaf) >= ROTATIONS) && signers.every(signer => rotations(signer) > 0);
  for (let round = 0; !rotated(); round++) {
    const published = { namespace: MANAGED_NAMESPACE, name: 'kube-apiserver-server-ca' };
    const ca = (await cluster.kube.get(CONFIG_MAPS, published)).data?.[BUNDLE_KEY] ?? '';
    const client = clients[round % clients.length] as (typeof clients)[number];
    const pair = await cluster.kube.get(SECRETS, { namespace: client.namespace, name: client.name });
    const [cert = '', key = ''] = [dataText(pair, 'tls.crt'), dataText(pair, 'tls.key')];
    for (const servername of NAMES) {
      handshakes++;
      try {
        const { answer } = await ask(node, '/rotunda.dev/client', { servername, ca, cert, key });
        if ((answer as { trusted?: boolean }).trusted !== true) failures.push(`${client.name} is not trusted`);
      } catch (error) {
        failures.push(`${servername}: ${(error as Error).message}`);
      }
    }
  }
  t.diagnostic(`${handshakes} handshakes, ${failures.length} failures`);
  assert.deepEqual([...new Set(failures)], [], `${failures.length} of ${handshakes} handshakes failed`);
  assert.ok(handshakes > 100);
  assert.equal((await loadedOn(node)).pid, pid);
  assert.equal((await statusOf(cluster)).latestAvailableRevision, latestAvailableRevision);
});
