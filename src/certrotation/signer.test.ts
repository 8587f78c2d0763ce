import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { days, seconds } from '../kube/duration.ts';
import { SECRETS } from '../kube/resource.ts';
import type { Certificate } from '../pki/certificate.ts';
import { PkiError } from '../pki/error.ts';
import { type Annotations, NAME_FREE_AT, NOT_AFTER, NOT_BEFORE } from './annotations.ts';
import { rotationUnit } from './config.ts';
import { CertRotationError } from './error.ts';
import { decideSigner, decideSignerByAnnotations, ensureSigner } from './signer.ts';
import { at, NOW, SIGNER, secretOf, testCA, testRotation, timeAnnotations, UNIT } from './testing.ts';

const POLICY = { validityMs: seconds(1000), refreshMs: seconds(500) };

test('recovery leaves a request alone as long as the certificate is good: who answers it may have to wait for others', async () => {
  const secret = secretOf(await testCA('ca', -100, 900));
  const forced = { ...secret, metadata: { ...secret.metadata, annotations: { [NOT_AFTER]: 'force-regeneration' } } };
  const policy = { ...POLICY, refreshOnlyWhenExpired: true };
  assert.equal(decideSigner(forced, POLICY, NOW).action, 'regenerate');
  assert.deepEqual(decideSigner(forced, policy, NOW), {
    action: 'keep',
    until: new Date(at(900).getTime() + 1),
    nextRule: 'X-1',
    nextReason: 'already expired',
  });
  assert.equal(decideSigner(forced, policy, at(901)).action, 'regenerate');
  assert.equal(decideSigner({ ...forced, data: {} }, policy, NOW).action, 'regenerate');
});

test('no two signers have one name, also when they are made within a second', async () => {
  const rotation = testRotation();
  const names: string[] = [];
  const made: Certificate[] = [];
  for (let round = 0; round < 3; round++) {
    const result = await ensureSigner(SIGNER, rotation, undefined, async () => made);
    assert.ok(result.outcome === 'ready' && result.regenerated);
    const [ca] = result.signer.chain as [Certificate];
    made.push(ca);
    names.push(ca.subject.commonName);
    await rotation.kube.delete(SECRETS, { namespace: SIGNER.namespace, name: SIGNER.name });
  }
  const [first] = names.map(name => Number(name.split('@')[1]));
  assert.equal(first, Math.floor(NOW.getTime() / 1000));
  assert.deepEqual(
    names.map(name => Number(name.split('@')[1])),
    [first, (first ?? 0) + 1, (first ?? 0) + 2],
  );
  const noted = { ...secretOf(await testCA('ca', -1000, -10)) };
  const metadata = { namespace: SIGNER.namespace, name: SIGNER.name, annotations: { [NAME_FREE_AT]: '1' } };
  await rotation.kube.create(SECRETS, { ...noted, metadata });
  const later = await ensureSigner(SIGNER, rotation);
  assert.ok(
    later.outcome === 'ready' && later.signer.chain[0]?.subject.commonName.endsWith(`@${first}`),
    'no name of the past',
  );
});

describe('signer decisions (spec 10, 4.1 and 4.2)', () => {
  interface Row {
    rule: string;
    when: string;
    annotations: Annotations | undefined;
    recovery?: boolean;
    refreshSeconds?: number;
    reason: string | undefined;
  }
  const fine = timeAnnotations(-100, 900);
  const rows: Row[] = [
    { rule: 'D-0', when: 'the object does not exist', annotations: undefined, reason: "secret doesn't exist" },
    { rule: 'D-1', when: 'not-after is missing', annotations: without(fine, NOT_AFTER), reason: 'missing notAfter' },
    { rule: 'D-1', when: 'not-after is empty', annotations: { ...fine, [NOT_AFTER]: '' }, reason: 'missing notAfter' },
    {
      rule: 'D-2',
      when: 'not-after is malformed',
      annotations: { ...fine, [NOT_AFTER]: '2026-02-30T00:00:00Z' },
      reason: 'bad expiry: "2026-02-30T00:00:00Z"',
    },
    {
      rule: 'D-3 and trap 14.1',
      when: 'not-before is missing',
      annotations: without(fine, NOT_BEFORE),
      reason: 'missing notBefore',
    },
    {
      rule: 'D-4',
      when: 'not-before is malformed',
      annotations: { ...fine, [NOT_BEFORE]: 'x"y' },
      reason: 'bad expiry: "x\\"y"',
    },
    {
      rule: 'S-1',
      when: 'any of them, in recovery mode too',
      annotations: {},
      recovery: true,
      reason: 'missing notAfter',
    },
    {
      rule: 'S-2',
      when: 'one second past notAfter',
      annotations: timeAnnotations(-1001, -1),
      reason: 'already expired',
    },
    {
      rule: 'S-2',
      when: 'in recovery mode too',
      annotations: timeAnnotations(-1001, -1),
      recovery: true,
      reason: 'already expired',
    },
    {
      rule: 'S-2',
      when: 'exactly at notAfter is not yet expired',
      annotations: timeAnnotations(-1000, 0),
      recovery: true,
      reason: undefined,
    },
    {
      rule: 'S-3',
      when: 'recovery mode ignores 80 % and refresh',
      annotations: timeAnnotations(-999, 1),
      recovery: true,
      reason: undefined,
    },
    {
      rule: 'S-4',
      when: 'past 80 %',
      annotations: timeAnnotations(-801, 199),
      refreshSeconds: 900,
      reason: 'past its latest possible time 2025-12-31 23:59:59 +0000 UTC',
    },
    {
      rule: 'S-4',
      when: 'exactly at 80 % is kept',
      annotations: timeAnnotations(-800, 200),
      refreshSeconds: 900,
      reason: undefined,
    },
    {
      rule: 'S-4',
      when: 'comes before S-5',
      annotations: timeAnnotations(-801, 199),
      reason: 'past its latest possible time 2025-12-31 23:59:59 +0000 UTC',
    },
    {
      rule: 'S-5',
      when: 'past refresh',
      annotations: timeAnnotations(-501, 499),
      reason: 'past its refresh time 2025-12-31 23:59:59 +0000 UTC',
    },
    { rule: 'S-5', when: 'exactly at refresh is kept', annotations: timeAnnotations(-500, 500), reason: undefined },
    { rule: 'S-6', when: 'young', annotations: fine, reason: undefined },
    {
      rule: '4.5',
      when: 'not-before after not-after, not expired',
      annotations: timeAnnotations(300, 100),
      reason: undefined,
    },
    { rule: '4.5', when: 'not-before in the future', annotations: timeAnnotations(10, 1000), reason: undefined },
  ];
  for (const { rule, when, annotations, recovery = false, refreshSeconds = 500, reason } of rows) {
    test(`${rule}: ${when}`, () => {
      const policy = { ...POLICY, refreshMs: seconds(refreshSeconds), refreshOnlyWhenExpired: recovery };
      const decision = decideSignerByAnnotations(annotations, policy, NOW);
      assert.equal(decision.action === 'regenerate' ? decision.reason : undefined, reason);
    });
  }

  test('S-4: 80 % of a validity with a second more than 30 days is exact to 0.2 s (3.2)', () => {
    const annotations = { [NOT_BEFORE]: '2024-01-01T00:00:00Z', [NOT_AFTER]: '2024-01-31T00:00:01Z' };
    const decide = (now: string) =>
      decideSignerByAnnotations(annotations, { ...POLICY, refreshMs: days(29) }, new Date(now));
    assert.equal(decide('2024-01-25T00:00:00.800Z').action, 'keep');
    const after = decide('2024-01-25T00:00:00.801Z');
    assert.ok(after.action === 'regenerate');
    assert.equal(after.reason, 'past its latest possible time 2024-01-25 00:00:00.8 +0000 UTC');
  });

  test('a "keep" says the first millisecond at which the answer is another one', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -2000, max: 0 }),
        fc.integer({ min: 1, max: 3000 }),
        fc.integer({ min: 1, max: 4000 }),
        fc.boolean(),
        (notBefore, life, refreshSeconds, refreshOnlyWhenExpired) => {
          const policy = { ...POLICY, refreshMs: seconds(refreshSeconds), refreshOnlyWhenExpired };
          const annotations = timeAnnotations(notBefore, notBefore + life);
          const decide = (now: Date) => decideSignerByAnnotations(annotations, policy, now);
          const decision = decide(NOW);
          if (decision.action !== 'keep') return;
          assert.equal(decide(new Date(decision.until.getTime() - 1)).action, 'keep');
          const then = decide(decision.until);
          assert.ok(then.action === 'regenerate');
          assert.equal(then.rule, decision.nextRule);
          assert.equal(then.reason, decision.nextReason);
        },
      ),
    );
  });

  test('a 10 MB annotation is malformed, and the reason does not repeat it', () => {
    const decision = decideSignerByAnnotations({ ...fine, [NOT_AFTER]: 'x'.repeat(10_000_000) }, POLICY, NOW);
    assert.ok(decision.action === 'regenerate');
    assert.match(decision.reason, /^bad expiry: "x+" \(cut from 10000000 characters\)$/);
    assert.ok(decision.reason.length < 5000);
  });
});

describe('signer content (spec 10, 4.5 and 4.6)', () => {
  test('X-1: an expired certificate with healthy annotations is "already expired"', async () => {
    const secret = secretOf(await testCA('ca', -1000, -1));
    secret.metadata!.annotations = timeAnnotations(-1000, 10_000);
    const decision = decideSigner(secret, { ...POLICY, refreshMs: days(15) }, NOW);
    assert.deepEqual(decision, { action: 'regenerate', rule: 'X-1', reason: 'already expired' });
  });

  test('X-1: a certificate that ends before its annotation shortens the "keep"', async () => {
    const secret = secretOf(await testCA('ca', -10, 20));
    secret.metadata!.annotations = timeAnnotations(-10, 10_000);
    const decision = decideSigner(secret, { ...POLICY, refreshMs: days(15) }, NOW);
    assert.ok(decision.action === 'keep');
    assert.deepEqual([decision.until, decision.nextRule], [new Date(at(20).getTime() + 1), 'X-1']);
  });

  test('X-2: a signer that is not a CA fails instead of signing', async () => {
    const rotation = testRotation();
    const { issueClient } = await import('../pki/issue.ts');
    const leaf = await issueClient({
      signer: await testCA('ca'),
      user: { name: 'u' },
      lifetimeMs: days(20),
      now: NOW,
      keys: rotation.keys,
      algorithm: 'P-256',
    });
    const stored = await rotation.kube.create(SECRETS, secretOf(leaf));
    const config = { ...SIGNER, additionalAnnotations: { description: 'not there yet' } };
    await assert.rejects(ensureSigner(config, rotation), (error: PkiError) => error.code === 'NOT_A_CA');
    assert.deepEqual(rotation.events.events, []);
    assert.deepEqual(await rotation.kube.get(SECRETS, SIGNER), stored);
  });

  for (const [field, name] of [
    ['validityMs', 'Validity'],
    ['refreshMs', 'Refresh'],
  ] as const) {
    test(`X-4 and trap 14.8: ${field} 0 is refused before anything is read or written`, async () => {
      const error = await ensureSigner({ ...SIGNER, [field]: 0 }, testRotation()).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof CertRotationError && error.code === 'INVALID_CONFIG');
      assert.equal(error.message, `${name} of ns/signer must be more than 0s, found 0s`);
    });
  }

  test('X-4: a unit is refused for its signer as for its target', () => {
    for (const role of ['signer', 'target'] as const) {
      for (const refreshMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
        const unit = { ...UNIT, [role]: { ...UNIT[role], refreshMs } };
        assert.throws(() => rotationUnit(unit), { code: 'INVALID_CONFIG' }, `${role} ${refreshMs}`);
      }
    }
    assert.equal(rotationUnit(UNIT), UNIT);
  });

  const broken: [string, Record<string, string>, RegExp][] = [
    ['tls.crt is empty', { 'tls.crt': '' }, /^certFile missing$/],
    ['tls.key is empty', { 'tls.key': '' }, /^keyFile missing$/],
    [
      'tls.crt is truncated',
      { 'tls.crt': Buffer.from('-----BEGIN CERTIFICATE-----\nMIIB').toString('base64') },
      /^Error reading cert: /,
    ],
    ['tls.key is not a key', { 'tls.key': Buffer.from('nonsense').toString('base64') }, /./],
  ];
  for (const [what, data, message] of broken) {
    test(`4.5: annotations fine, ${what}: an error, no write, no new CA, also where metadata is missing`, async () => {
      const rotation = testRotation();
      const secret = secretOf(await testCA('ca'));
      const stored = await rotation.kube.create(SECRETS, { ...secret, data: { ...secret.data, ...data } });
      const config = { ...SIGNER, additionalAnnotations: { description: 'not there yet' } };
      await assert.rejects(ensureSigner(config, rotation), (error: Error) => message.test(error.message));
      assert.deepEqual(await rotation.kube.get(SECRETS, SIGNER), stored);
      assert.deepEqual(rotation.events.events, []);
    });
  }

  test('4.5: a key that belongs to another certificate: an error that shows no key, no write', async () => {
    const rotation = testRotation();
    const [mine, other] = [secretOf(await testCA('ca')), secretOf(await testCA('other'))];
    const data = { ...mine.data, 'tls.key': other.data!['tls.key'] as string };
    const stored = await rotation.kube.create(SECRETS, { ...mine, data });
    const error = await ensureSigner(SIGNER, rotation).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof PkiError && error.code === 'KEY_MISMATCH');
    assert.doesNotMatch(error.message, /PRIVATE KEY|MI[EI]/);
    assert.deepEqual(await rotation.kube.get(SECRETS, SIGNER), stored);
  });
});

function without(annotations: Annotations, key: string): Annotations {
  const { [key]: _removed, ...rest } = annotations;
  return rest;
}
