import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { days, seconds } from '../kube/duration.ts';
import { recordingEvents } from '../kube/events.ts';
import { MemoryKube } from '../kube/memory.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import type { Certificate } from '../pki/certificate.ts';
import { issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { encodeCertificates, readCertificates } from '../pki/pem.ts';
import type { ObjectName } from './chains.ts';
import { CLIENT_CA, combineBundles, ensureCombinedBundle, SERVER_CA } from './combined-bundles.ts';
import { NOW } from './testing.ts';

describe('combined bundles (spec 20, 2.2)', () => {
  const certificates = new Map<string, Certificate>();
  before(async () => {
    for (const [name, end] of [
      ['A', days(10)],
      ['B', days(20)],
      ['C', days(30)],
      ['ends now', seconds(60)],
    ] as const) {
      const made = new Date(NOW.getTime() - seconds(60));
      const ca = await issueSigner({
        commonName: name,
        lifetimeMs: end,
        now: made,
        keys: systemKeys,
        algorithm: 'P-256',
      });
      certificates.set(name, ca.chain[0] as Certificate);
    }
  });
  const pem = (...names: string[]) => encodeCertificates(names.map(name => certificates.get(name)!));
  const world =
    (texts: Record<string, string>) =>
    (source: ObjectName): ConfigMap | undefined => {
      const text = texts[source.name];
      return text === undefined ? undefined : { data: { [BUNDLE_KEY]: text } };
    };
  const names = (text: string) => readCertificates(text).certificates.map(({ subject }) => subject.commonName);

  test('sources in their order, each certificate once, the first place counts, expired ones leave, nothing is sorted', () => {
    const sources = {
      'loadbalancer-serving-ca': pem('C', 'A', 'ends now'),
      'localhost-serving-ca': '',
      'service-network-serving-ca': pem('B', 'C'),
    };
    const decision = combineBundles(SERVER_CA, world(sources), NOW);
    assert.ok(decision.action === 'publish');
    assert.deepEqual(names(decision.text), ['C', 'A', 'B']);
    assert.equal(decision.until.getTime(), NOW.getTime() + days(10) - seconds(60));
  });

  test('a malformed source fails the whole and names itself', () => {
    for (const junk of ['garbage', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n']) {
      const decision = combineBundles(CLIENT_CA, world({ 'user-client-ca': junk, 'csr-controller-ca': pem('A') }), NOW);
      assert.ok(decision.action === 'fail');
      assert.match(decision.error, /^configmap\/user-client-ca in "openshift-kube-apiserver" is malformed: ./);
    }
  });

  test('nothing is ever published empty', () => {
    for (const sources of [{}, { 'csr-controller-ca': '' }, { 'csr-controller-ca': pem('ends now') }]) {
      const decision = combineBundles(CLIENT_CA, world(sources), NOW);
      assert.ok(decision.action === 'fail');
      assert.match(decision.error, /configmap\/client-ca would be empty/);
    }
  });

  test('writes once, keeps annotations of others, drops other keys, and leaves the stored one alone on failure', async () => {
    const kube = new MemoryKube();
    const events = recordingEvents();
    const context = { kube, events };
    const sources = { 'csr-controller-ca': pem('A') };
    const ensure = (texts: Record<string, string>) =>
      ensureCombinedBundle(CLIENT_CA, async source => world(texts)(source), context, NOW);
    await kube.create(CONFIG_MAPS, {
      metadata: { ...CLIENT_CA.destination, annotations: { 'example.com/mine': 'yes' } },
      data: { other: 'x' },
    });
    assert.equal((await ensure(sources)).changed, true);
    assert.equal((await ensure(sources)).changed, false);
    const stored = await kube.get(CONFIG_MAPS, CLIENT_CA.destination);
    assert.deepEqual(stored.data, { [BUNDLE_KEY]: pem('A') });
    assert.deepEqual(stored.metadata?.annotations, {
      'example.com/mine': 'yes',
      'openshift.io/owning-component': 'kube-apiserver',
    });
    await assert.rejects(ensure({ ...sources, 'user-client-ca': 'junk' }), /malformed/);
    await assert.rejects(ensure({}), /would be empty/);
    assert.deepEqual(await kube.get(CONFIG_MAPS, CLIENT_CA.destination), stored);
  });
});
