import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MemoryKube } from '../kube/memory.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import type { Certificate } from '../pki/certificate.ts';
import { encodeCertificates, readCertificates } from '../pki/pem.ts';
import { MANAGED_CERTIFICATE_TYPE } from './annotations.ts';
import { BUNDLE_KEY, type BundleDecision, decideBundle, ensureBundle } from './bundle.ts';
import { at, NOW, testCA, testRotation } from './testing.ts';

const CONFIG = { namespace: 'ns', name: 'bundle' };
const [current, older, expired] = (
  await Promise.all([testCA('current'), testCA('older', -1000, 1000), testCA('expired', -1000, 0)])
).map(ca => ca.chain[0] as Certificate) as [Certificate, Certificate, Certificate];
const signer = { namespace: 'ns', name: 'signer', certificate: current };
const sorted = (...certificates: Certificate[]) => certificates.toSorted((a, b) => Buffer.compare(a.der, b.der));
const bundle = (text: string) => ({ metadata: CONFIG, data: { [BUNDLE_KEY]: text } });

describe('bundle decisions (spec 10, 4.4)', () => {
  test('B-1: unreadable text fails, an empty text is an empty list', () => {
    assert.deepEqual(decideBundle(bundle('garbage'), signer, NOW), {
      action: 'fail',
      rule: 'B-1',
      error: 'data does not contain any valid RSA or ECDSA certificates',
    });
    assert.equal(textOf(decideBundle(bundle(''), signer, NOW)), encodeCertificates([current]));
  });

  test('B-2 and B-5: the signer joins, the order is by DER and not by who is current', () => {
    const decision = decideBundle(bundle(encodeCertificates([older])), signer, NOW);
    assert.equal(textOf(decision), encodeCertificates(sorted(older, current)));
    assert.equal((decision as { reason: string }).reason, 'signer update ns/signer');
    const other = decideBundle(bundle(encodeCertificates([current])), { ...signer, certificate: older }, NOW);
    assert.equal(textOf(other), textOf(decision));
  });

  test('B-3: a certificate leaves at its notAfter; one that is not valid yet stays', async () => {
    const future = (await testCA('future', 100, 200)).chain[0] as Certificate;
    const decision = decideBundle(bundle(encodeCertificates(sorted(current, expired, future))), signer, NOW);
    assert.deepEqual(namesIn(decision), ['current', 'future']);
  });

  test('B-3: a kept bundle says when its first certificate leaves', () => {
    const stored = bundle(encodeCertificates(sorted(current, older)));
    const decision = decideBundle(stored, signer, NOW);
    assert.ok(decision.action === 'keep');
    assert.deepEqual(decision.until, at(1000));
    assert.equal(decideBundle(stored, signer, new Date(decision.until.getTime() - 1)).action, 'keep');
    assert.equal(decideBundle(stored, signer, decision.until).action, 'rewrite');
  });

  test('B-4: the same DER once; the same name with another DER twice', async () => {
    const twin = (await testCA('current')).chain[0] as Certificate;
    const decision = decideBundle(bundle(encodeCertificates([current, current, twin])), signer, NOW);
    assert.deepEqual(namesIn(decision), ['current', 'current']);
  });

  test('B-6 and 12.4: what was canonical stays byte for byte', () => {
    const text = encodeCertificates(sorted(current, older));
    assert.equal(decideBundle(bundle(text), signer, NOW).action, 'keep');
    for (const other of [
      `${text}\n`,
      `# comment\n${text}`,
      text.replaceAll('\n', '\r\n'),
      encodeCertificates(sorted(current, older).toReversed()),
    ]) {
      const decision = decideBundle(bundle(other), signer, NOW);
      assert.equal(textOf(decision), text);
      assert.equal((decision as { reason: string }).reason, 'the text is not in canonical form');
    }
  });

  test('B-8 and trap 14.10: an empty bundle is never wanted', () => {
    const decision = decideBundle(bundle(encodeCertificates([expired])), { ...signer, certificate: expired }, NOW);
    assert.ok(decision.action === 'fail' && decision.rule === 'B-8');
  });

  test('trap 14.20: a block that is passed over is named', () => {
    const text = `-----BEGIN TRUSTED CERTIFICATE-----\nAAAA\n-----END TRUSTED CERTIFICATE-----\n${encodeCertificates([current])}`;
    const decision = decideBundle(bundle(text), signer, NOW);
    assert.ok(decision.action === 'rewrite' && decision.warnings.length === 1);
  });

  test('canonicalisation is idempotent and does not depend on order', async () => {
    const pool = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async name => (await testCA(name)).chain[0] as Certificate),
    );
    const expected = textOf(decideBundle(bundle(encodeCertificates(pool)), signer, NOW));
    fc.assert(
      fc.property(
        fc.shuffledSubarray(pool, { minLength: pool.length }),
        fc.array(fc.constantFrom(...pool), { maxLength: 4 }),
        (order, extra) => {
          const text = textOf(decideBundle(bundle(encodeCertificates([...order, ...extra])), signer, NOW));
          assert.equal(text, expected);
          assert.equal(decideBundle(bundle(text), signer, NOW).action, 'keep');
        },
      ),
    );
  });
});

describe('ensuring the bundle (spec 10, 7.2)', () => {
  test('B-1 and B-8: what cannot be read or would be empty is an error that names it, and stays', async () => {
    const cases = [
      [bundle('garbage'), signer, 'BUNDLE_UNREADABLE'],
      [bundle(encodeCertificates([expired])), { ...signer, certificate: expired }, 'BUNDLE_WOULD_BE_EMPTY'],
    ] as const;
    for (const [configMap, by, code] of cases) {
      const rotation = testRotation();
      const stored = await rotation.kube.create(CONFIG_MAPS, configMap);
      await assert.rejects(ensureBundle(CONFIG, by, rotation), { code, message: /^configmap\/bundle -n ns: / });
      assert.deepEqual(await rotation.kube.get(CONFIG_MAPS, CONFIG), stored);
    }
  });

  test('7.2: an API that stores no bundle is an error', async () => {
    const kube = new MemoryKube();
    const create = kube.create.bind(kube);
    kube.create = (resource, object) => create(resource, { ...object, data: {} });
    await assert.rejects(ensureBundle(CONFIG, signer, testRotation(kube)), { code: 'BUNDLE_MISSING' });
  });

  test('10: the event of need says why', async () => {
    const cases = [
      [{ metadata: CONFIG }, 'configmap is empty'],
      [bundle(encodeCertificates([older])), 'signer update ns/signer'],
      [bundle(encodeCertificates(sorted(current, expired))), 'expired certificates leave'],
    ] as const;
    for (const [configMap, reason] of cases) {
      const rotation = testRotation();
      await rotation.kube.create(CONFIG_MAPS, configMap);
      await ensureBundle(CONFIG, signer, rotation);
      assert.equal(rotation.events.events[0]?.message, `"bundle" in "ns" requires a new cert: ${reason}`);
    }
  });

  test('B-7: created with label and event, then left alone', async () => {
    const rotation = testRotation();
    const result = await ensureBundle(CONFIG, signer, rotation);
    assert.ok(result.outcome === 'ready' && result.rewritten);
    assert.deepEqual(
      rotation.events.events.map(({ reason, message }) => `${reason}: ${message}`),
      [
        `CABundleUpdateRequired: "bundle" in "ns" requires a new cert: configmap doesn't exist`,
        'ConfigMapCreated: Created ConfigMap/bundle -n ns because it was missing',
      ],
    );
    const stored = await rotation.kube.get(CONFIG_MAPS, CONFIG);
    assert.equal(stored.metadata?.labels?.[MANAGED_CERTIFICATE_TYPE], 'ca-bundle');
    const again = await ensureBundle(CONFIG, signer, rotation);
    assert.ok(again.outcome === 'ready' && !again.rewritten);
    assert.deepEqual(await rotation.kube.get(CONFIG_MAPS, CONFIG), stored);
  });

  test('L-1: a missing label alone is no reason to write', async () => {
    const rotation = testRotation();
    const stored = await rotation.kube.create(CONFIG_MAPS, bundle(encodeCertificates([current])));
    await ensureBundle(CONFIG, signer, rotation);
    assert.deepEqual(await rotation.kube.get(CONFIG_MAPS, CONFIG), stored);
  });

  test('P-6: other keys stay', async () => {
    const rotation = testRotation();
    await rotation.kube.create(CONFIG_MAPS, {
      ...bundle(encodeCertificates([older])),
      data: { other: 'x', [BUNDLE_KEY]: '' },
    });
    await ensureBundle(CONFIG, signer, rotation);
    assert.equal((await rotation.kube.get(CONFIG_MAPS, CONFIG)).data?.other, 'x');
  });

  test('M-2: metadata is added without an event of need, and not at all in recovery mode', async () => {
    const rotation = testRotation();
    await rotation.kube.create(CONFIG_MAPS, bundle(encodeCertificates([current])));
    const config = { ...CONFIG, additionalAnnotations: { description: 'd' } };
    await ensureBundle({ ...config, refreshOnlyWhenExpired: true }, signer, rotation);
    assert.deepEqual(rotation.events.events, []);
    await ensureBundle(config, signer, rotation);
    assert.deepEqual(
      rotation.events.events.map(({ reason }) => reason),
      ['ConfigMapUpdated'],
    );
  });

  test('M-2: a bundle that is missing gets its metadata, also in recovery mode', async () => {
    const rotation = testRotation();
    const config = { ...CONFIG, additionalAnnotations: { description: 'd' }, refreshOnlyWhenExpired: true };
    await ensureBundle(config, signer, rotation);
    assert.deepEqual((await rotation.kube.get(CONFIG_MAPS, CONFIG)).metadata?.annotations, {
      'openshift.io/description': 'd',
    });
  });
});

function textOf(decision: BundleDecision): string {
  assert.ok(decision.action === 'rewrite');
  return decision.text;
}

function namesIn(decision: BundleDecision): string[] {
  return readCertificates(textOf(decision))
    .certificates.map(({ subject }) => subject.commonName)
    .toSorted();
}
