import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER, NOT_BEFORE, REFRESH_PERIOD } from '../../certrotation/annotations.ts';
import { FORCED } from '../../inventory/forced.ts';
import { daysFromNow, NOW, secretOf, testClient, testSigner } from '../../inventory/testing.ts';
import { days } from '../../kube/duration.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { type CertificateAndKey, ownCertificate } from '../../pki/authority.ts';
import { type CertificateHook, issueServing } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, readCertificates } from '../../pki/pem.ts';
import { UsageError } from '../usage-error.ts';
import { gateOf } from './gate.ts';
import { ignitionWithCa } from './ignition-ca.ts';
import { platformVerdict } from './platform.ts';
import { decidePrune } from './remove-old-trust.ts';
import { readLocal, selectedFrom } from './selection.ts';

describe('what the regenerate verbs act on (spec 70, 1.2)', async () => {
  const signer = await testSigner('signer');
  const leaf = secretOf('leaf', await testClient(signer, 'user'), 'target');
  const root = secretOf('signer', signer, 'signer');
  const without = (secret: Secret, key: string): Secret => {
    const { [key]: _gone, ...annotations } = secret.metadata?.annotations ?? {};
    return { ...secret, metadata: { ...secret.metadata, annotations } };
  };

  test('leaves and root signers, each by its own verb', () => {
    assert.deepEqual(platformVerdict(leaf, 'leaf', undefined), { act: true });
    assert.deepEqual(platformVerdict(root, 'top-level', undefined), { act: true });
    assert.deepEqual(platformVerdict(root, 'leaf', undefined), { act: false, because: 'it is a signer' });
    assert.deepEqual(platformVerdict(leaf, 'top-level', undefined), { act: false, because: 'it is no signer' });
  });

  test('foreign Secrets and copies of revisions are passed over, broken ones are errors', () => {
    assert.equal(platformVerdict(without(leaf, NOT_BEFORE), 'leaf', undefined).act, false);
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'revision-status-1', uid: 'u' }];
    assert.equal(
      platformVerdict({ ...leaf, metadata: { ...leaf.metadata, ownerReferences } }, 'leaf', undefined).act,
      false,
    );
    assert.equal(platformVerdict({ ...leaf, data: { 'tls.crt': 'bm90IGEgY2VydA==' } }, 'leaf', undefined).act, 'error');
  });

  test('--valid-before: equal or earlier is taken, later is not', () => {
    const notBefore = new Date(leaf.metadata?.annotations?.[NOT_BEFORE] ?? '');
    assert.deepEqual(platformVerdict(leaf, 'leaf', notBefore), { act: true });
    assert.equal(platformVerdict(leaf, 'leaf', new Date(notBefore.getTime() - 1)).act, false);
  });

  const gate = (secret: Secret, now: Date) => gateOf(leaf, { secrets: [secret], handOvers: [] }, now);

  test('a leaf of a signer that is not ours waits while it is younger than a tenth of its refresh time (9.2)', () => {
    assert.match(gate(root, NOW)?.because ?? '', /its signer ns\/signer is only 24h0m1s old/);
    assert.equal(gate(root, daysFromNow(1)), undefined);
    assert.equal(gateOf(leaf, { secrets: [], handOvers: [] }, NOW), undefined, 'a signer that is not here');
  });

  const annotated = (secret: Secret, annotations: Record<string, string>): Secret => ({
    ...secret,
    metadata: { ...secret.metadata, annotations: { ...secret.metadata?.annotations, ...annotations } },
  });
  const later = daysFromNow(5);
  for (const [why, secret, now] of [
    ['is marked for regeneration', annotated(root, { [NOT_AFTER]: FORCED }), later],
    ['has no date', without(root, NOT_AFTER), later],
    ['is past its refresh time', root, daysFromNow(16)],
    ['is over', annotated(root, { [NOT_AFTER]: '2035-01-01T00:00:00Z', [REFRESH_PERIOD]: '80000h' }), daysFromNow(70)],
  ] as const) {
    test(`a leaf waits while its signer ${why}: the next one would sign it (9.2)`, () => {
      assert.equal(gate(root, later), undefined);
      assert.match(gate(secret, now)?.because ?? '', /its signer ns\/signer is about to be replaced \(/);
    });
  }

  test('what may sign is a signer, whatever its basic constraints; names are common names (1.2)', async () => {
    const made = (hook: CertificateHook) =>
      issueServing({
        signer,
        hostnames: ['x'],
        lifetimeMs: days(30),
        now: NOW,
        keys: systemKeys,
        algorithm: 'P-256',
        hooks: [hook],
      });
    const signing = await made(template => {
      template.keyUsages = ['keyCertSign'];
    });
    const verdict = (pair: CertificateAndKey, verb: 'leaf' | 'top-level') =>
      platformVerdict(secretOf('x', pair, 'target'), verb, undefined);
    assert.deepEqual(verdict(signing, 'leaf'), { act: false, because: 'it is a signer' });
    assert.deepEqual(verdict(signing, 'top-level'), { act: false, because: 'it is an intermediate signer' });
    const { commonName } = ownCertificate(signer).subject;
    const namesake = await made(template => {
      template.subject = { commonName, organizations: ['another'] };
    });
    assert.deepEqual(verdict(namesake, 'leaf'), { act: false, because: 'it is signed by itself' });
  });
});

describe('removing old trust (spec 70, 2.3 and 9.6)', async () => {
  const [old, current] = [await testSigner('signer', 20), await testSigner('signer', 2)];
  const text = encodeCertificates([...old.chain, ...current.chain]);
  const cut = daysFromNow(-10);
  const used = async (signer: typeof old) => [
    { where: 'secret/leaf in ns', certificate: ownCertificate(await testClient(signer, 'user', 1)) },
  ];

  test('takes out what is old and not needed', async () => {
    const decision = decidePrune(text, cut, await used(current), NOW);
    assert.equal(decision.do, 'prune');
    if (decision.do !== 'prune') return;
    assert.deepEqual(
      decision.removed.map(({ subject }) => subject.commonName),
      [ownCertificate(old).subject.commonName],
    );
    assert.equal(readCertificates(decision.text).certificates.length, 1);
  });

  test('refuses while a certificate in use needs it, and names both', async () => {
    const decision = decidePrune(text, cut, await used(old), NOW);
    assert.deepEqual(decision, {
      do: 'refuse',
      because: 'certificates in use would no longer be accepted',
      needed: [`secret/leaf in ns still needs "${ownCertificate(old).subject.commonName}"`],
    });
  });

  test('never leaves a bundle empty, keeps what is strictly newer, says why nothing is done', () => {
    assert.match(
      (decidePrune(text, daysFromNow(1), [], NOW) as { because: string }).because,
      /an empty bundle trusts nobody/,
    );
    const exact = ownCertificate(current).notBefore;
    assert.equal(decidePrune(text, exact, [], NOW).do, 'refuse', 'equal is old');
    assert.equal(decidePrune(text, daysFromNow(-40), [], NOW).do, 'nothing');
    assert.equal(decidePrune('garbage', cut, [], NOW).do, 'refuse');
  });
});

test('user data of machines: one authority is replaced, anything else is left alone (spec 70, 2.5)', () => {
  const userData = (...sources: string[]) =>
    JSON.stringify({
      ignition: {
        version: '3.2.0',
        security: { tls: { certificateAuthorities: sources.map(source => ({ source })) } },
      },
    });
  const update = ignitionWithCa(userData('data:,old'), () => 'PEM');
  assert.equal(update.do, 'update');
  assert.match(update.do === 'update' ? update.text : '', /"source":"data:text\/plain;charset=utf-8;base64,UEVN"/);
  assert.equal(ignitionWithCa(update.do === 'update' ? update.text : '', () => 'PEM').do, 'keep');
  assert.equal(ignitionWithCa(userData('data:,a', 'data:,b'), () => 'PEM').do, 'refuse');
  assert.equal(ignitionWithCa(userData(), () => 'PEM').do, 'refuse');
  assert.equal(ignitionWithCa('{"cloud":"init"}', () => 'PEM').do, 'skip');
  assert.equal(ignitionWithCa('#!/bin/sh', () => 'PEM').do, 'refuse');
});

describe('objects of files, for --local (spec 70, 2.1)', async () => {
  const signer = await testSigner('signer');
  const items = [
    secretOf('a', await testClient(signer, 'a'), 'target'),
    { ...secretOf('b', await testClient(signer, 'b'), 'target'), type: 'SecretTypeTLS' },
    secretOf('signer', signer, 'signer'),
  ];
  const read = (t: TestContext, words: string[], more: object) => {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-local-'));
    t.after(() => rmSync(dir, { recursive: true }));
    writeFileSync(join(dir, 'list.json'), JSON.stringify({ kind: 'List', items }));
    const flags = { output: 'table', local: true, filename: [dir], ...more };
    const { objects, missing } = readLocal(SECRETS, flags, selectedFrom(SECRETS, words, flags, ''));
    return [objects.map(({ metadata }) => metadata?.name), missing];
  };

  test('are selected as the API would, by labels and by fields', t => {
    const selector = 'auth.openshift.io/managed-certificate-type=target';
    assert.deepEqual(read(t, [], { selector }), [['a', 'b'], []]);
    assert.deepEqual(read(t, [], { fieldSelector: 'type=SecretTypeTLS' }), [['b'], []]);
    assert.deepEqual(read(t, [], { fieldSelector: 'metadata.name!=a', selector }), [['b'], []]);
    assert.throws(() => read(t, [], { selector: 'a b' }), UsageError);
    assert.throws(() => read(t, [], { fieldSelector: 'colour=red' }), UsageError);
  });

  test('a name that is not there is told', t => {
    assert.deepEqual(read(t, ['secret/a', 'secret/nope'], {}), [['a'], ['secrets "nope" not found in the files']]);
  });
});

describe('which objects a verb is told', () => {
  const flags = { output: 'table' };
  test('TYPE/NAME, TYPE NAME..., TYPE --all', () => {
    assert.deepEqual(selectedFrom(SECRETS, ['secret/a', 'secrets/b'], { ...flags, namespace: 'ns' }, 'x').names, [
      'a',
      'b',
    ]);
    assert.deepEqual(selectedFrom(SECRETS, ['secrets', 'a', 'b'], flags, 'x').namespace, 'x');
    assert.deepEqual(
      selectedFrom(CONFIG_MAPS, ['cm'], { ...flags, all: true, allNamespaces: true }, 'x').namespace,
      undefined,
    );
  });
  for (const [why, words, more] of [
    ['another kind', ['pod/a'], {}],
    ['nothing', [], {}],
    ['a kind alone', ['secrets'], {}],
    ['names and --all', ['secret/a'], { all: true }],
    ['a name in all namespaces', ['secret/a'], { allNamespaces: true }],
    ['-n and -A', ['secrets'], { all: true, namespace: 'a', allNamespaces: true }],
    ['--local without files', ['secrets'], { local: true }],
    ['files without --local', ['secrets'], { all: true, filename: ['x'] }],
    ['too many slashes', ['secret/a/b'], {}],
  ] as const) {
    test(`${why} is refused`, () => {
      assert.throws(() => selectedFrom(SECRETS, words, { ...flags, ...more }, 'x'), UsageError);
    });
  }
});
