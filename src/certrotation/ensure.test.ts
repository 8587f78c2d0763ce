import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import { KubeError } from '../kube/error.ts';
import { MemoryKube } from '../kube/memory.ts';
import { SECRETS } from '../kube/resource.ts';
import { MANAGED_CERTIFICATE_TYPE, NOT_AFTER, roleOf } from './annotations.ts';
import { dataText, loadSecret, withTlsType } from './secret.ts';
import { ensureSigner } from './signer.ts';
import { ensureTarget } from './target.ts';
import { SIGNER, secretOf, TARGET, testCA, testRotation, timeAnnotations } from './testing.ts';

const OWNER: OwnerReference = {
  apiVersion: 'v1',
  kind: 'Operator',
  name: 'o',
  uid: '1',
  controller: true,
  blockOwnerDeletion: true,
};
const healthy = secretOf(await testCA('ns_signer@1'));

describe('metadata (spec 10, 2.4 and 2.5)', () => {
  test('M-2, O-1 and trap 14.2: missing metadata is written once, without new key material or an event of need', async () => {
    const { rotation, stored } = await seeded(healthy);
    const config = { ...SIGNER, owner: OWNER, additionalAnnotations: { jiraComponent: 'c', description: 'd' } };
    await ensureSigner(config, rotation);
    const after = await rotation.kube.get(SECRETS, SIGNER);
    assert.deepEqual(after.data, stored.data);
    assert.deepEqual(after.metadata?.ownerReferences, [OWNER]);
    assert.equal(after.metadata?.annotations?.['openshift.io/description'], 'd');
    assert.deepEqual(
      rotation.events.events.map(({ reason }) => reason),
      ['SecretUpdated'],
    );
    await ensureSigner(config, rotation);
    assert.deepEqual(
      await rotation.kube.get(SECRETS, SIGNER),
      after,
      'trap 14.6: the owner with pointer fields is recognised',
    );
  });

  test('M-2: never in recovery mode', async () => {
    const { rotation, stored } = await seeded(healthy);
    await ensureSigner(
      { ...SIGNER, owner: OWNER, additionalAnnotations: { description: 'd' }, refreshOnlyWhenExpired: true },
      rotation,
    );
    assert.deepEqual(await rotation.kube.get(SECRETS, SIGNER), stored);
  });

  test('M-3: time annotations are not repaired from the certificate', async () => {
    const secret = structuredClone(healthy);
    secret.metadata!.annotations![NOT_AFTER] = '2026-01-30T00:00:00Z';
    const { rotation, stored } = await seeded(secret);
    await ensureSigner(SIGNER, rotation);
    assert.deepEqual(await rotation.kube.get(SECRETS, SIGNER), stored);
  });

  test('O-1: the same owner with an old uid is replaced, others are kept', async () => {
    const others = { ...OWNER, name: 'other' };
    const secret = {
      ...healthy,
      metadata: { ...healthy.metadata, ownerReferences: [{ ...OWNER, uid: 'old' }, others] },
    };
    const { rotation } = await seeded(secret);
    await ensureSigner({ ...SIGNER, owner: OWNER }, rotation);
    assert.deepEqual((await rotation.kube.get(SECRETS, SIGNER)).metadata?.ownerReferences, [OWNER, others]);
  });

  test('L-1: a missing label alone is no reason to write', async () => {
    const { rotation, stored } = await seeded({ ...healthy, metadata: { ...healthy.metadata, labels: {} } });
    await ensureSigner(SIGNER, rotation);
    assert.deepEqual(await rotation.kube.get(SECRETS, SIGNER), stored);
  });

  test('L-2: an object says what it is; anything unexpected is unknown', () => {
    for (const role of ['signer', 'ca-bundle', 'target']) {
      assert.equal(roleOf({ [MANAGED_CERTIFICATE_TYPE]: role }), role);
    }
    for (const labels of [undefined, {}, { [MANAGED_CERTIFICATE_TYPE]: 'Signer' }]) {
      assert.equal(roleOf(labels), 'unknown');
    }
  });

  test('P-6, W-7 and 12.8: unknown labels, annotations and data survive a rotation', async () => {
    const metadata = { ...healthy.metadata, labels: { x: 'y' }, annotations: { z: '1' } };
    const { rotation } = await seeded({ ...healthy, metadata, data: { ...healthy.data, extra: 'eA==' } });
    await ensureSigner(SIGNER, rotation);
    const after = await rotation.kube.get(SECRETS, SIGNER);
    assert.notEqual(after.data?.['tls.key'], healthy.data?.['tls.key']);
    assert.equal(after.data?.extra, 'eA==');
    assert.equal(after.metadata?.annotations?.z, '1');
    assert.deepEqual(after.metadata?.labels, { x: 'y', [MANAGED_CERTIFICATE_TYPE]: 'signer' });
  });
});

describe('the type of a Secret (spec 10, Y-1 to Y-4 and 8.4)', () => {
  for (const type of ['SecretTypeTLS', 'Opaque']) {
    test(`Y-1, Y-2, Y-4: ${type} becomes kubernetes.io/tls with the same key, by delete and create where update is refused`, async () => {
      const { rotation, stored } = await seeded({ ...healthy, type });
      const result = await ensureSigner(SIGNER, rotation);
      assert.ok(result.outcome === 'ready' && !result.regenerated);
      const after = await rotation.kube.get(SECRETS, SIGNER);
      assert.equal(after.type, 'kubernetes.io/tls');
      assert.deepEqual(after.data, stored.data);
      assert.notEqual(after.metadata?.uid, stored.metadata?.uid);
      assert.deepEqual(
        rotation.events.events.map(({ reason }) => reason),
        ['SecretDeleted', 'SecretCreated'],
      );
    });
  }

  test('8.4: useSecretUpdateOnly reports the refusal and leaves the object', async () => {
    const { rotation, stored } = await seeded({ ...healthy, type: 'Opaque' });
    await assert.rejects(ensureSigner({ ...SIGNER, useSecretUpdateOnly: true }, rotation), /field is immutable/);
    assert.deepEqual(await rotation.kube.get(SECRETS, SIGNER), stored);
    assert.deepEqual(
      rotation.events.events.map(({ reason }) => reason),
      ['SecretUpdateFailed'],
    );
  });

  test('8.4: the create half is tried again within the pass', async () => {
    let failures = 3;
    const kube = new MemoryKube();
    const create = kube.create.bind(kube);
    const { rotation, stored } = await seeded({ ...healthy, type: 'Opaque' }, kube);
    kube.create = (resource, object) =>
      object.metadata?.name === 'signer' && failures-- > 0
        ? Promise.reject(new KubeError(500, 'InternalError', 'etcd is away'))
        : create(resource, object);
    const done = ensureSigner(SIGNER, rotation);
    for (let round = 0; round < 5; round++) await rotation.clock.advance(10_000);
    await done;
    assert.deepEqual((await kube.get(SECRETS, SIGNER)).data, stored.data);
  });

  test('8.4: a delete that is refused is not followed by a create', async () => {
    const kube = new MemoryKube();
    const { rotation, stored } = await seeded({ ...healthy, type: 'Opaque' }, kube);
    kube.delete = () => Promise.reject(new KubeError(403, 'Forbidden', 'no'));
    await assert.rejects(ensureSigner(SIGNER, rotation), /^KubeError: no$/);
    assert.deepEqual(await kube.get(SECRETS, SIGNER), stored);
    assert.deepEqual(
      rotation.events.events.map(({ reason }) => reason),
      ['SecretDeleteFailed'],
    );
  });

  test('Y-3 and trap 14.3: a wrong type without both keys is regenerated in the same pass', async () => {
    const { rotation } = await seeded({ ...healthy, type: 'Opaque', data: { foo: 'eA==' } });
    const result = await ensureSigner(SIGNER, rotation);
    assert.ok(result.outcome === 'ready' && result.regenerated);
    const after = await rotation.kube.get(SECRETS, SIGNER);
    assert.deepEqual(
      [after.type, Object.keys(after.data ?? {}).toSorted()],
      ['kubernetes.io/tls', ['tls.crt', 'tls.key']],
    );
  });

  for (const [kept, missing] of [
    ['tls.crt', 'tls.key'],
    ['tls.key', 'tls.crt'],
  ] as const) {
    test(`Y-3: nor does a wrong type keep ${kept} without ${missing}`, async () => {
      const data = { [kept]: healthy.data?.[kept] as string };
      const { rotation } = await seeded({ ...healthy, type: 'Opaque', data });
      const result = await ensureSigner(SIGNER, rotation);
      assert.ok(result.outcome === 'ready' && result.regenerated);
      assert.notEqual((await rotation.kube.get(SECRETS, SIGNER)).data?.[kept], data[kept]);
    });
  }

  test('Y-1: a signer that cannot be used gets its type all the same, with its content, and is an error', async () => {
    const data = { ...healthy.data, 'tls.key': Buffer.from('nonsense').toString('base64') };
    const { rotation } = await seeded({ ...healthy, type: 'Opaque', data });
    await assert.rejects(ensureSigner(SIGNER, rotation), { name: 'PkiError' });
    const after = await rotation.kube.get(SECRETS, SIGNER);
    assert.deepEqual([after.type, after.data], ['kubernetes.io/tls', data]);
  });

  const sooner: [string, Record<string, string>, string][] = [
    ['D-1', {}, 'missing notAfter'],
    ['S-2 and T-2', timeAnnotations(-20, -10), 'already expired'],
    ['Y-3', healthy.metadata!.annotations!, 'type was Opaque and the certificate or its key is missing'],
  ];
  for (const [rule, annotations, reason] of sooner) {
    test(`4: the first rule gives the reason, Y-3 is the last: ${rule}`, async () => {
      const metadata = { ...healthy.metadata, annotations };
      const { rotation } = await seeded({ metadata, type: 'Opaque', data: { foo: 'eA==' } });
      await ensureSigner(SIGNER, rotation);
      const message = `"signer" in "ns" requires a new signing cert/key pair: ${reason}`;
      assert.equal(rotation.events.events[0]?.message, message);
    });
  }

  test('4: the reason for a target of the wrong type without content is that of its annotations', async () => {
    const ca = await testCA('ca');
    const rotation = testRotation();
    await rotation.kube.create(SECRETS, { metadata: { namespace: 'ns', name: 'target' }, type: 'Opaque', data: {} });
    await ensureTarget(TARGET, ca, ca.chain, rotation);
    const message = '"target" in "ns" requires a new target cert/key pair: missing notAfter';
    assert.equal(rotation.events.events[0]?.message, message);
    assert.equal((await rotation.kube.get(SECRETS, TARGET)).type, 'kubernetes.io/tls');
  });

  test('Y-2: a key that Go wrote without bytes, as null, is present and empty', () => {
    const empty = { 'tls.crt': null, 'tls.key': null } as unknown as Record<string, string>;
    const { emptied, secret } = withTlsType({ type: 'Opaque', data: empty });
    assert.deepEqual([emptied, dataText(secret, 'tls.crt')], [false, '']);
    assert.throws(() => loadSecret(secret), /^PkiError: certFile missing$/);
  });

  test('Y-2: keys that are present but empty count as present', () => {
    const { emptied, secret } = withTlsType({ type: 'Opaque', data: { 'tls.crt': '', 'tls.key': '' } });
    assert.deepEqual([emptied, secret.data], [false, { 'tls.crt': '', 'tls.key': '' }]);
  });

  test('Y-1: recovery mode leaves the type alone', async () => {
    const { rotation, stored } = await seeded({ ...healthy, type: 'Opaque' });
    await ensureSigner({ ...SIGNER, refreshOnlyWhenExpired: true }, rotation);
    assert.deepEqual(await rotation.kube.get(SECRETS, SIGNER), stored);
  });
});

describe('writes (spec 10, 8.1)', () => {
  const due: Secret = { ...healthy, metadata: { ...healthy.metadata, annotations: {} } };
  const refusals: [string, 'create' | 'update', KubeError][] = [
    ['W-2: a conflict', 'update', new KubeError(409, 'Conflict', 'changed')],
    ['W-3: a create race', 'create', new KubeError(409, 'AlreadyExists', 'exists')],
    ['W-6: not found on update', 'update', new KubeError(404, 'NotFound', 'gone')],
  ];
  for (const [rule, verb, refusal] of refusals) {
    test(`${rule} is lost without an event, a retry or a returned key`, async () => {
      const kube = new MemoryKube();
      const { rotation } = verb === 'update' ? await seeded(due, kube) : { rotation: testRotation(kube) };
      let calls = 0;
      const refuse = () => {
        calls++;
        return Promise.reject(refusal);
      };
      Object.assign(kube, { [verb]: refuse });
      assert.deepEqual(await ensureSigner(SIGNER, rotation), { outcome: 'lost' });
      assert.equal(calls, 1);
      assert.deepEqual(
        rotation.events.events.map(({ reason }) => reason),
        ['SignerUpdateRequired'],
      );
    });
  }

  test('W-1 and trap 14.5: a decision on a stale copy does not overwrite a newer signer', async () => {
    const { rotation, stored } = await seeded(due);
    await ensureSigner(SIGNER, rotation);
    const fresh = await rotation.kube.get(SECRETS, SIGNER);
    const stale = { ...rotation, objects: { read: async () => stored as never, wrote: () => {} } };
    assert.deepEqual(await ensureSigner(SIGNER, stale), { outcome: 'lost' });
    assert.deepEqual(await rotation.kube.get(SECRETS, SIGNER), fresh);
  });

  test('W-4: what was written is handed to the cache', async () => {
    const { rotation } = await seeded(due);
    const wrote: unknown[] = [];
    await ensureSigner(SIGNER, {
      ...rotation,
      objects: { ...rotation.objects, wrote: (_, object) => void wrote.push(object) },
    });
    assert.deepEqual(wrote, [await rotation.kube.get(SECRETS, SIGNER)]);
  });

  test('W-8 and 12: a healthy object of another implementation is not touched', async () => {
    const { rotation, stored } = await seeded(healthy);
    const result = await ensureSigner(SIGNER, rotation);
    assert.ok(result.outcome === 'ready' && !result.regenerated);
    assert.deepEqual(await rotation.kube.get(SECRETS, SIGNER), stored);
    assert.deepEqual(rotation.events.events, []);
  });

  test('W-3: a create in a namespace that is not there is an error, not a race', async () => {
    const kube = new MemoryKube();
    kube.create = () => Promise.reject(new KubeError(404, 'NotFound', 'namespaces "ns" not found'));
    await assert.rejects(ensureSigner(SIGNER, testRotation(kube)), /namespaces "ns" not found/);
  });

  test('W-3: a target that somebody else created meanwhile is lost', async () => {
    const kube = new MemoryKube();
    kube.create = () => Promise.reject(new KubeError(409, 'AlreadyExists', 'exists'));
    const ca = await testCA('ca');
    assert.deepEqual(await ensureTarget(TARGET, ca, ca.chain, testRotation(kube)), { outcome: 'lost' });
  });

  test('10: a failing update is reported and thrown', async () => {
    const kube = new MemoryKube();
    const { rotation } = await seeded(due, kube);
    kube.update = () => Promise.reject(new KubeError(500, 'InternalError', '100%s bad %d'));
    await assert.rejects(ensureSigner(SIGNER, rotation));
    assert.equal(rotation.events.events.at(-1)?.message, 'Failed to update Secret/signer -n ns: 100%s bad %d');
  });
});

async function seeded(secret: Secret, kube = new MemoryKube()) {
  const rotation = testRotation(kube);
  const stored = await kube.create(SECRETS, secret);
  return { rotation, stored };
}
