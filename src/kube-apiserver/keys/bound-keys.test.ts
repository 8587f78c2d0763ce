import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { silentLog } from '../../controller/log.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { recordingEvents } from '../../kube/events.ts';
import { getIfPresent } from '../../kube/get.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { type Keys, systemKeys } from '../../pki/keys.ts';
import { StaticPodOperator } from '../../staticpod/operator.ts';
import { CLUSTER, KUBE_API_SERVERS } from '../resources.ts';
import { NOW } from '../testing.ts';
import { boundKeyReconcile } from './bound-key-controller.ts';
import {
  ACTIVE_SIGNING_KEY,
  NEXT_SIGNING_KEY,
  newSigningKey,
  PRIVATE_KEY,
  PUBLIC_KEY,
  PUBLIC_KEYS,
  withPublicKey,
} from './bound-keys.ts';
import { DEFAULT_ISSUER, decideIssuers } from './issuer.ts';

test('a new pair is RSA 2048; the public half carries its bytes as PKIX under the old label', async () => {
  const { data = {} } = await newSigningKey(systemKeys);
  const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
  assert.match(text(PRIVATE_KEY), /^-----BEGIN RSA PRIVATE KEY-----/);
  assert.match(text(PUBLIC_KEY), /^-----BEGIN RSA PUBLIC KEY-----/);
  const spki = Buffer.from(text(PUBLIC_KEY).split('\n').slice(1, -2).join(''), 'base64');
  const publicKey = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  assert.ok(publicKey.equals(createPublicKey(createPrivateKey(text(PRIVATE_KEY)))));
  assert.equal(publicKey.asymmetricKeyDetails?.modulusLength, 2048);
});

test('public keys are never lost or doubled, whatever their names', () => {
  const names = fc.integer({ min: 1, max: 12 }).map(index => `service-account-${String(index).padStart(3, '0')}.pub`);
  fc.assert(
    fc.property(fc.dictionary(names, fc.constantFrom('A', 'B', 'C')), fc.constantFrom('A', 'B', 'D'), (data, key) => {
      const result = withPublicKey(data, key);
      for (const [name, value] of Object.entries(data)) assert.equal(result[name], value);
      assert.ok(Object.values(result).includes(key));
      assert.equal(withPublicKey(result, key), result);
    }),
  );
});

describe('rotation of the signing key (spec 20, 8.2.5)', () => {
  const fastKeys: Keys = { ...systemKeys, generate: () => systemKeys.generate('P-256') };

  test('deleted, made anew, published, waited for, promoted', async () => {
    const kube = new MemoryKube();
    const clock = new VirtualClock(NOW);
    const operator = new StaticPodOperator({ kube, resource: KUBE_API_SERVERS, clock });
    await kube.create(KUBE_API_SERVERS, { metadata: CLUSTER, spec: {}, status: {} });
    const reconcile = boundKeyReconcile({ kube, operator, keys: fastKeys });
    const context = {
      signal: new AbortController().signal,
      clock,
      events: recordingEvents(),
      log: silentLog,
      enqueue: () => {},
    };
    const run = () => reconcile('key', context);
    const active = () => kube.get(SECRETS, ACTIVE_SIGNING_KEY);
    const publicKeys = async () => (await kube.get(CONFIG_MAPS, PUBLIC_KEYS)).data ?? {};
    const publish = async (revision: number) => {
      const name = `${PUBLIC_KEYS.name}-${revision}`;
      await kube.create(CONFIG_MAPS, { metadata: { ...PUBLIC_KEYS, name }, data: await publicKeys() });
    };
    const nodesAt = async (...revisions: number[]) => {
      const nodeStatuses = revisions.map((currentRevision, index) => ({ nodeName: `m${index}`, currentRevision }));
      await operator.update(status => ({ ...status, nodeStatuses }));
    };

    await run();
    const first = await active();
    assert.deepEqual(Object.keys(await publicKeys()), ['service-account-001.pub']);
    await publish(1);
    await nodesAt(1, 1, 1);
    await run();
    assert.deepEqual((await active()).data, first.data);

    await kube.delete(SECRETS, NEXT_SIGNING_KEY);
    await run();
    assert.deepEqual(Object.keys(await publicKeys()).sort(), ['service-account-001.pub', 'service-account-002.pub']);
    assert.deepEqual((await active()).data, first.data, 'not while servers do not know the public key');
    await publish(2);
    await nodesAt(2, 1, 2);
    await run();
    assert.deepEqual((await active()).data, first.data, 'not while one server does not know it');
    await nodesAt(2, 2, 3);
    await assert.rejects(run(), /bound-sa-token-signing-certs-3 not found/);
    await nodesAt(2, 2, 2);
    await run();
    const next = (await getIfPresent(kube, SECRETS, NEXT_SIGNING_KEY)) as Secret;
    assert.deepEqual((await active()).data, next.data);
  });
});

describe('issuers', () => {
  test('an issuer that was replaced is trusted for a day, then forgotten', () => {
    const change = decideIssuers('https://new', [{ name: DEFAULT_ISSUER }], NOW);
    assert.ok(change.action === 'set');
    assert.deepEqual(change.issuers, [
      { name: 'https://new' },
      { name: DEFAULT_ISSUER, expirationTime: '2026-01-02T00:00:00Z' },
    ]);
    const kept = decideIssuers('https://new', change.issuers, NOW);
    assert.deepEqual(kept, { action: 'keep', until: new Date('2026-01-02T00:00:00Z') });
    const later = decideIssuers('https://new', change.issuers, new Date('2026-01-02T00:00:00Z'));
    assert.ok(later.action === 'set');
    assert.deepEqual(later.issuers, [{ name: 'https://new' }]);
  });
});
