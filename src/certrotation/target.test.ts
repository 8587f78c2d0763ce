import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { days, seconds } from '../kube/duration.ts';
import { SECRETS } from '../kube/resource.ts';
import type { Certificate } from '../pki/certificate.ts';
import { readCertificates } from '../pki/pem.ts';
import { HOSTNAMES, ISSUER } from './annotations.ts';
import { type CertCreator, clientCreator, peerCreator, servingCreator, signerCreator } from './creator.ts';
import { HostnameSource } from './hostname-source.ts';
import { hostnameDifference } from './hostnames.ts';
import { dataText, TLS_CERT } from './secret.ts';
import { followSigner, signerChanged } from './signer-change.ts';
import { decideTarget, ensureTarget } from './target.ts';
import { NOW, secretOf, TARGET, testCA, testRotation, timeAnnotations } from './testing.ts';

const client = clientCreator({ name: 'user' });
const young = await testCA('ca', -1);
const old = await testCA('ca', -86_400);

describe('target decisions (spec 10, 4.3)', () => {
  interface Row {
    rule: string;
    when: string;
    annotations: Record<string, string> | undefined;
    recovery?: boolean;
    signer?: Certificate;
    bundle?: Certificate[];
    creator?: CertCreator;
    reason: string | RegExp | undefined;
  }
  const fine = timeAnnotations(-100, 900);
  const { [ISSUER]: _issuer, ...noIssuer } = fine;
  const serving = (...hostnames: string[]) => servingCreator({ hostnames });
  const rows: Row[] = [
    { rule: 'T-1', when: 'the object does not exist', annotations: undefined, reason: "secret doesn't exist" },
    { rule: 'T-1', when: 'no annotations', annotations: {}, reason: 'missing notAfter' },
    { rule: 'T-2', when: 'expired', annotations: timeAnnotations(-1001, -1), reason: 'already expired' },
    {
      rule: 'T-2',
      when: 'expired, recovery mode',
      annotations: timeAnnotations(-1001, -1),
      recovery: true,
      reason: 'already expired',
    },
    {
      rule: 'T-3',
      when: 'recovery mode skips the time rules',
      annotations: timeAnnotations(-999, 1),
      recovery: true,
      reason: undefined,
    },
    {
      rule: 'T-3 and trap 14.4',
      when: 'recovery mode asks for no issuer',
      annotations: noIssuer,
      recovery: true,
      reason: undefined,
    },
    {
      rule: 'T-3 and trap 14.4',
      when: 'recovery mode with an empty bundle',
      annotations: fine,
      recovery: true,
      bundle: [],
      reason: undefined,
    },
    {
      rule: 'T-4',
      when: 'past 80 %, whatever the age of the signer',
      annotations: timeAnnotations(-801, 199),
      signer: young.chain[0] as Certificate,
      reason: /^past its latest possible time /,
    },
    {
      rule: 'T-4',
      when: 'exactly at 80 % is decided by T-5',
      annotations: timeAnnotations(-800, 200),
      signer: young.chain[0] as Certificate,
      reason: undefined,
    },
    {
      rule: 'T-5',
      when: 'past refresh, signer old enough',
      annotations: timeAnnotations(-501, 499),
      reason: 'past its refresh time 2025-12-31 23:59:59 +0000 UTC',
    },
    { rule: 'T-5', when: 'exactly at refresh', annotations: timeAnnotations(-500, 500), reason: undefined },
    {
      rule: 'T-8',
      when: 'past refresh, signer too young',
      annotations: timeAnnotations(-501, 499),
      signer: young.chain[0] as Certificate,
      reason: undefined,
    },
    { rule: 'T-6', when: 'issuer missing', annotations: noIssuer, reason: 'missing issuer name' },
    { rule: 'T-6', when: 'issuer empty', annotations: { ...fine, [ISSUER]: '' }, reason: 'missing issuer name' },
    {
      rule: 'T-7',
      when: 'issuer not in the bundle',
      annotations: { ...fine, [ISSUER]: 'gone' },
      reason: /^issuer "gone", not in ca bundle:\n\[#0\]: "ca" \[\] issuer="<self-signed>" \(/,
    },
    { rule: 'T-7', when: 'bundle empty', annotations: fine, bundle: [], reason: 'issuer "ca", not in ca bundle:\n' },
    {
      rule: '4.3',
      when: 'time reasons come before issuer reasons',
      annotations: timeAnnotations(-501, 499, 'gone'),
      reason: /^past its refresh time/,
    },
    {
      rule: 'T-9 and H-1',
      when: 'host names differ',
      annotations: { ...fine, [HOSTNAMES]: 'a,b' },
      creator: serving('b', 'c'),
      reason: '"a" are existing and not required, "c" are required and not existing',
    },
    {
      rule: 'T-9 and H-1',
      when: 'host names differ in recovery mode',
      annotations: { ...fine, [HOSTNAMES]: 'a' },
      creator: serving('b'),
      recovery: true,
      reason: /required and not existing$/,
    },
    {
      rule: 'T-10',
      when: 'same host names in another order',
      annotations: { ...fine, [HOSTNAMES]: 'b,a,a' },
      creator: serving('a', 'b'),
      reason: undefined,
    },
    { rule: 'T-10', when: 'young client certificate', annotations: fine, reason: undefined },
  ];
  for (const {
    rule,
    when,
    annotations,
    recovery = false,
    signer = old.chain[0],
    bundle = old.chain,
    creator = client,
    reason,
  } of rows) {
    test(`${rule}: ${when}`, () => {
      const secret = annotations && { metadata: { name: 't', annotations } };
      const decision = creator.decide({
        secret,
        signer: [signer as Certificate],
        bundle,
        refreshMs: seconds(500),
        refreshOnlyWhenExpired: recovery,
        now: NOW,
      });
      const found = decision.action === 'regenerate' ? decision.reason : undefined;
      if (reason instanceof RegExp) assert.match(found ?? '', reason);
      else assert.equal(found, reason);
    });
  }

  test('T-8: the boundary is signer notBefore + a tenth of the refresh of the target, strictly', async () => {
    const signer = (await testCA('ca', -50)).chain;
    const secret = { metadata: { annotations: timeAnnotations(-501, 499) } };
    const decide = (now: Date) =>
      client.decide({ secret, signer, bundle: signer, refreshMs: seconds(500), refreshOnlyWhenExpired: false, now });
    assert.deepEqual(decide(NOW).action, 'keep');
    assert.deepEqual(decide(new Date(NOW.getTime() + 1)).action, 'regenerate');
  });

  test('a "keep" says the first millisecond at which the answer is another one', () => {
    const times = fc.integer({ min: -2000, max: 2000 });
    fc.assert(
      fc.property(
        times,
        fc.integer({ min: 1, max: 4000 }),
        fc.integer({ min: 1, max: 4000 }),
        fc.boolean(),
        (notBefore, life, refresh, isYoung) => {
          const signer = (isYoung ? young : old).chain;
          const secret = { metadata: { annotations: timeAnnotations(notBefore, notBefore + life) } };
          const decide = (now: Date) =>
            client.decide({
              secret,
              signer,
              bundle: signer,
              refreshMs: seconds(refresh),
              refreshOnlyWhenExpired: false,
              now,
            });
          const decision = decide(NOW);
          if (decision.action !== 'keep') return;
          assert.equal(decide(new Date(decision.until.getTime() - 1)).action, 'keep');
          const then = decide(decision.until);
          assert.ok(then.action === 'regenerate' && then.rule === decision.nextRule);
        },
      ),
    );
  });
});

describe('host names (spec 10, H-1 and 6)', () => {
  test('trap 14.7: other spellings of the same address are no difference', () => {
    const required = ['LOCALHOST'.toLowerCase(), '0:0:0:0:0:0:0:1', '::FFFF:127.0.0.1', '2001:DB8::A'];
    assert.equal(hostnameDifference('127.0.0.1,2001:db8::a,::1,localhost', required), undefined);
  });

  test('H-1: one name too many is a difference, and so is one too few', () => {
    const told = (surplus: string, missing: string) =>
      `"${surplus}" are existing and not required, "${missing}" are required and not existing`;
    assert.equal(hostnameDifference('a,b', ['a']), told('b', ''));
    assert.equal(hostnameDifference('a', ['a', 'b']), told('', 'b'));
  });

  test('H-1: a long list is told in full', () => {
    const hosts = Array.from({ length: 1000 }, (_, index) => `host-${String(index).padStart(4, '0')}`);
    assert.equal(
      hostnameDifference(hosts.join(','), ['x']),
      `"${hosts.join(',')}" are existing and not required, "x" are required and not existing`,
    );
  });

  test('12.7: names are in the order of their bytes', () => {
    const [low, high] = ['\uff21', '\u{1f600}'];
    assert.match(hostnameDifference('', [high, low]) ?? '', new RegExp(`"${low},${high}" are required`));
    assert.deepEqual(new HostnameSource([high, low]).get(), [low, high]);
  });

  test('C-1: a source stores first, then gives notice, and an equal set is no notice', async () => {
    const source = new HostnameSource(['b', 'a']);
    const stop = new AbortController();
    const seen: string[][] = [];
    const reading = (async () => {
      for await (const _ of source.changes(stop.signal)) seen.push(source.get());
    })();
    source.set(['a', 'b']);
    source.set(['c']);
    await new Promise(setImmediate);
    source.set(['c']);
    await new Promise(setImmediate);
    source.set(['d']);
    source.set(['e']);
    await new Promise(setImmediate);
    stop.abort();
    await reading;
    assert.deepEqual(seen, [['c'], ['e']]);
  });

  test('C-1 and trap 14.11: a stream that has ended does not spin', async () => {
    const stop = AbortSignal.abort();
    let turns = 0;
    for await (const _ of new HostnameSource().changes(stop)) turns++;
    assert.equal(turns, 0);
  });

  test('C-2: no host names: the error, the event before it, and no write', async () => {
    const rotation = testRotation();
    const creator = servingCreator({ hostnames: () => [] });
    await assert.rejects(
      ensureTarget({ ...TARGET, creator }, old, old.chain, rotation),
      /^PkiError: no hostnames set$/,
    );
    assert.deepEqual(
      rotation.events.events.map(({ reason }) => reason),
      ['TargetUpdateRequired'],
    );
    await assert.rejects(rotation.kube.get(SECRETS, TARGET), /not found/);
  });

  test('trap 14.19: the host name function is asked once a generation', async () => {
    let asked = 0;
    const hostnames = () => [`host-${++asked}`];
    const { secret } = ready(
      await ensureTarget({ ...TARGET, creator: servingCreator({ hostnames }) }, old, old.chain, testRotation()),
    );
    const [leaf] = chainOf(secret);
    const cn = leaf!.subject.commonName;
    assert.deepEqual([leaf!.dnsNames, secret.metadata?.annotations?.[HOSTNAMES]], [[cn], cn]);
  });
});

describe('making targets (spec 10, 5.2, 6 and 7.3)', () => {
  test('P-3: chains by creator', async () => {
    const made = async (creator: CertCreator) =>
      chainOf(ready(await ensureTarget({ ...TARGET, creator }, old, old.chain, testRotation())).secret);
    const [leaf, ...others] = await made(client);
    assert.deepEqual([leaf!.extKeyUsages, others.length], [['clientAuth'], 0]);
    const serving = await made(servingCreator({ hostnames: ['a'] }));
    assert.ok(serving.length === 2 && serving[1]!.der.equals(old.chain[0]!.der));
    const intermediate = await made(signerCreator('lower'));
    assert.ok(intermediate.length === 2 && intermediate[0]!.isCA);
    assert.equal(intermediate[0]!.subject.commonName, `lower_@${NOW.getTime() / 1000}`);
    const [peer] = await made(peerCreator({ hostnames: ['a'] }));
    assert.deepEqual(peer!.extKeyUsages.toSorted(), ['clientAuth', 'serverAuth']);
    assert.deepEqual([peer!.subject.commonName, peer!.subject.organizations], ['a', []]);
    const user = { name: 'system:etcd-peer:a', groups: ['system:etcd-peers'] };
    const [named] = await made(peerCreator({ hostnames: ['a'], user }));
    assert.deepEqual([named!.subject.commonName, named!.subject.organizations], [user.name, user.groups]);
  });

  test('V-3: a target never outlives its signer, whatever validity is asked for', async () => {
    const lifetimes = fc.tuple(fc.integer({ min: 2, max: 1_000_000 }), fc.integer({ min: 1, max: 2_000_000 }));
    await fc.assert(
      fc.asyncProperty(lifetimes, async ([signerLife, validity]) => {
        const signer = await testCA('ca', -1, signerLife);
        const config = { ...TARGET, validityMs: seconds(validity), refreshMs: seconds(1) };
        const { secret } = ready(await ensureTarget(config, signer, signer.chain, testRotation()));
        const [leaf] = chainOf(secret);
        assert.equal(leaf!.notAfter.getTime(), NOW.getTime() + seconds(Math.min(validity, signerLife)));
      }),
      { numRuns: 30 },
    );
  });

  test('V-3: nor does one of a creator that does not keep to that: it is not stored', async () => {
    const [short, long] = [await testCA('ca', -1, 1000), await testCA('ca', -1, 2000)];
    const creator: CertCreator = { ...client, make: request => client.make({ ...request, signer: long }) };
    const rotation = testRotation();
    await assert.rejects(ensureTarget({ ...TARGET, creator }, short, short.chain, rotation), { code: 'INVARIANT' });
    await assert.rejects(rotation.kube.get(SECRETS, TARGET), /not found/);
  });

  test('X-4: a target that would rotate on every sync is refused', async () => {
    const config = { ...TARGET, refreshMs: 0 };
    await assert.rejects(ensureTarget(config, old, old.chain, testRotation()), { code: 'INVALID_CONFIG' });
  });

  test('V-4: an expired signer signs nothing', async () => {
    const signer = await testCA('ca', -100, -1);
    const rotation = testRotation();
    await assert.rejects(
      ensureTarget(TARGET, signer, signer.chain, rotation),
      (error: { code?: string }) => error.code === 'SIGNER_EXPIRED',
    );
    await assert.rejects(rotation.kube.get(SECRETS, TARGET), /not found/);
  });

  test('T-7 and T-8: where bundle and signer are not known yet, neither is a reason', async () => {
    const { secret } = ready(await ensureTarget(TARGET, old, old.chain, testRotation()));
    assert.equal(decideTarget(secret, [], undefined, TARGET, NOW).action, 'keep');
  });

  test('H-1: of two reasons the time is the one that is told', () => {
    const secret: Secret = { metadata: { annotations: timeAnnotations(-1001, -1) } };
    const policy = { ...TARGET, creator: servingCreator({ hostnames: ['x'] }) };
    const decision = decideTarget(secret, old.chain, old.chain, policy, NOW);
    assert.equal((decision as { reason: string }).reason, 'already expired');
  });

  test('X-3: unusable content is replaced, but not in recovery mode', async () => {
    const good = ready(await ensureTarget(TARGET, old, old.chain, testRotation())).secret;
    const broken: Secret = { ...good, data: { ...good.data, [TLS_CERT]: Buffer.from('broken').toString('base64') } };
    const decide = (refreshOnlyWhenExpired: boolean) =>
      decideTarget(broken, old.chain, old.chain, { ...TARGET, refreshOnlyWhenExpired }, NOW);
    assert.match((decide(false) as { reason: string }).reason, /^unusable content: /);
    assert.equal(decide(true).action, 'keep');
  });

  test('12.2: another key type, no label and unknown annotations are no reason to rotate', async () => {
    const { secret } = ready(
      await ensureTarget({ ...TARGET, keyAlgorithm: 'RSA-3072' }, old, old.chain, testRotation()),
    );
    const foreign = {
      ...secret,
      metadata: { ...secret.metadata, labels: {}, annotations: { ...secret.metadata!.annotations, x: 'y' } },
    };
    assert.equal(decideTarget(foreign, old.chain, old.chain, TARGET, NOW).action, 'keep');
  });
});

describe('signer change (spec 10, 6.5)', () => {
  const question = (secret: Secret) => ({
    secret,
    signer: old.chain,
    bundle: old.chain,
    refreshMs: days(15),
    refreshOnlyWhenExpired: false,
    now: NOW,
  });

  test('a reason of the wrapped creator wins', () => {
    const decision = followSigner(client).decide(question({ metadata: { name: 't' } }));
    assert.equal((decision as { reason: string }).reason, 'missing notAfter');
  });

  test('a target of the current signer stays', async () => {
    const { secret } = ready(await ensureTarget(TARGET, old, old.chain, testRotation()));
    assert.equal(followSigner(client).decide(question(secret)).action, 'keep');
  });

  test('signed by another key under the same name', async () => {
    const other = await testCA('ca', -86_400);
    const secret = ready(await ensureTarget(TARGET, other, other.chain, testRotation())).secret;
    const decision = followSigner(client).decide(question(secret));
    assert.equal(
      (decision as { reason: string }).reason,
      'signer subject key for secret target does not match cert authority key anymore',
    );
  });

  test('content missing or broken', async () => {
    const secret = secretOf(await testCA('x'), 'target');
    secret.metadata!.annotations![ISSUER] = 'ca';
    const reason = (data: Record<string, string>) =>
      (followSigner(client).decide(question({ ...secret, data })) as { reason: string }).reason;
    assert.equal(reason({}), 'missing current certificate in secret: target');
    assert.match(
      reason({ [TLS_CERT]: Buffer.from('x').toString('base64') }),
      /^could not parse pem x509 tls.crt in secret target: /,
    );
    assert.equal(
      reason({ [TLS_CERT]: '' }),
      'could not parse pem x509 tls.crt in secret target: data does not contain any valid RSA or ECDSA certificates',
    );
  });

  test('a certificate that does not name the key of its signer: the signature decides', async () => {
    const [certificate] = old.chain as [Certificate];
    const silent = { ...old, chain: [{ ...certificate, subjectKeyId: undefined }] };
    const { secret } = ready(await ensureTarget(TARGET, silent, old.chain, testRotation()));
    assert.equal(chainOf(secret)[0]?.authorityKeyId, undefined);
    assert.equal(signerChanged(secret, old.chain, NOW), undefined);
    assert.match(signerChanged(secret, young.chain, NOW) ?? '', /^cert isn't signed by most recent signer anymore: /);
  });

  test('a key identifier without bytes is none: the signature decides', async () => {
    const { secret } = ready(await ensureTarget(TARGET, old, old.chain, testRotation()));
    const [certificate] = old.chain as [Certificate];
    const unnamed = { ...certificate, subjectKeyId: Buffer.alloc(0) };
    assert.equal(signerChanged(secret, [unnamed], NOW), undefined);
  });
});

function ready(result: Awaited<ReturnType<typeof ensureTarget>>) {
  assert.ok(result.outcome === 'ready');
  return result;
}

function chainOf(secret: Secret): Certificate[] {
  return readCertificates(dataText(secret, TLS_CERT) ?? '').certificates;
}
