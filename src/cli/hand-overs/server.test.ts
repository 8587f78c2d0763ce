import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { NOT_AFTER } from '../../certrotation/annotations.ts';
import { nextKey } from '../../hand-over/family.ts';
import { FORCED } from '../../inventory/forced.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { NAMESPACES, SECRETS } from '../../kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES } from '../../kube-apiserver/resources.ts';
import { applyDefinitions } from '../../local/definitions.ts';
import { type Keys, systemKeys } from '../../pki/keys.ts';
import { JOIN_SIGNER } from '../certificates/join-ca.ts';
import { whatBegins } from '../certificates/new-signer.ts';
import { handServerOver, serverNames, serverUnit } from '../certificates/server-hand-over.ts';
import { handOverEntries } from './describe.ts';
import { readHandOvers } from './items.ts';
import { takeBack, wayBack } from './take-back.ts';
import { whatEndsTheWait } from './words.ts';

const MACHINES = 'openshift-machine-api';
const keys: Keys = { ...systemKeys, generate: () => systemKeys.generate('P-256') };

/** A cluster in which a server and its machines trust each other. */
async function cluster(t: TestContext) {
  const engine = await startEngine();
  t.after(() => engine.close());
  const { kube } = engine;
  await applyDefinitions(kube);
  await engine.idle();
  for (const name of [JOIN_SIGNER.namespace, MACHINES]) await kube.create(NAMESPACES, { metadata: { name } });
  await kube.create(INFRASTRUCTURES, { metadata: CLUSTER, spec: {} });
  const status = { apiServerInternalURI: 'https://api-int.example.com:6443' };
  await kube.patch(INFRASTRUCTURES, CLUSTER, { type: 'merge', body: { status } }, { subresource: 'status' });
  const ignition = { security: { tls: { certificateAuthorities: [{ source: 'data:,' }] } } };
  const userData = Buffer.from(JSON.stringify({ ignition })).toString('base64');
  await kube.create(SECRETS, { metadata: { namespace: MACHINES, name: 'worker-user-data' }, data: { userData } });
  await handOver(kube, true);
  return kube;
}

async function handOver(kube: Kube, updateIgnition: boolean): Promise<void> {
  await handServerOver(kube, { unit: serverUnit(await serverNames(kube)), updateIgnition, keys }, []);
}

async function force(kube: Kube): Promise<void> {
  const body = { metadata: { annotations: { [NOT_AFTER]: FORCED } } };
  await kube.patch(SECRETS, JOIN_SIGNER, { type: 'merge', body });
}

async function item(kube: Kube) {
  const items = await readHandOvers(kube, new Date());
  return items.find(({ operator }) => operator === 'machine-config-server') ?? assert.fail('it is not shown');
}

test('the hand-over of the machine-config server is shown, with those it waits for, and taken back', async t => {
  const kube = await cluster(t);
  const steady = await item(kube);
  assert.deepEqual([steady.phase, steady.metadata.name], ['Steady', 'machine-config-server-ca']);
  assert.match(whatBegins(steady).join(), /regenerate-machine-config-server-serving-cert carries it out/);
  await force(kube);
  const wanted = await item(kube);
  assert.deepEqual([wanted.phase, wanted.write], ['Steady', 'nothing'], 'nobody acts by himself');
  assert.match(wanted.because, /when somebody runs rotunda regenerate-machine-config-server-serving-cert$/);
  await handOver(kube, false);
  const waiting = await item(kube);
  assert.deepEqual([waiting.phase, waiting.waitingFor], ['Distributing', ['machines of secret/worker-user-data']]);
  assert.match(whatEndsTheWait(waiting).join(), /serving-cert is run again/);
  assert.match(JSON.stringify(handOverEntries(waiting, new Date())), /MISSING {2}machines of secret\/worker-user-data/);
  const way = await wayBack(kube, waiting, false, new Date());
  assert.ok(!('refusal' in way), JSON.stringify(way));
  await takeBack(kube, way, true, new Date());
  assert.notEqual(await getIfPresent(kube, SECRETS, nextKey(JOIN_SIGNER)), undefined, 'a dry run');
  await takeBack(kube, way, false, new Date());
  assert.equal(await getIfPresent(kube, SECRETS, nextKey(JOIN_SIGNER)), undefined);
  const after = await item(kube);
  assert.deepEqual([after.phase, after.current], ['Steady', steady.current]);
});

test('once it signs it can be turned round', async t => {
  const kube = await cluster(t);
  const before = await item(kube);
  await force(kube);
  await handOver(kube, true);
  const signing = await item(kube);
  assert.equal(signing.phase, 'Retiring');
  assert.notEqual(signing.current, before.current);
  const way = await wayBack(kube, signing, false, new Date());
  assert.ok(!('refusal' in way), JSON.stringify(way));
  await takeBack(kube, way, false, new Date());
  assert.equal((await item(kube)).current, before.current);
});
