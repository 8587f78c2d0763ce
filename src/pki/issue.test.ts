import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { before, describe, it } from 'node:test';
import type { CertificateAndKey } from './authority.ts';
import type { Certificate } from './certificate.ts';
import { element, oid, sequence, setOf, TAG, time } from './der-write.ts';
import { isPkiError, type PkiErrorCode } from './error.ts';
import { hostnamesOf } from './hosts.ts';
import {
  type CertificateHook,
  issueClient,
  issueForPublicKey,
  issueIntermediate,
  issuePeer,
  issueServing,
  issueSigner,
} from './issue.ts';
import { subjectKeyIdFor } from './key-id.ts';
import { type KeyAlgorithm, type Keys, seededKeys, systemKeys } from './keys.ts';
import { MAX_HOSTNAME_CHARACTERS, MAX_HOSTNAMES } from './limits.ts';
import { encodeCertificates } from './pem.ts';
import { isSignedBy } from './signature.ts';
import { at, DAY_MS, fixture, handmade, ISSUE, KINDS, own, sampleSigner } from './test-data.ts';

const { keys } = ISSUE;
const rejects = (promise: Promise<unknown>, code: PkiErrorCode, message = /./) =>
  assert.rejects(promise, error => isPkiError(error, code) && message.test(error.message));

let signer: CertificateAndKey;
before(async () => {
  signer = await sampleSigner();
});

describe('5.1 common to all kinds', () => {
  for (const [kind, issue] of Object.entries(KINDS)) {
    it(`${kind}: version 3, serial, dates, order of extensions, signature`, async () => {
      const certificate = own(await issue(signer));
      const authority = kind === 'signer' ? certificate : own(signer);
      assert.equal(certificate.version, 3);
      assert.ok(certificate.serial > 0n && certificate.serial < 1n << 63n);
      assert.deepEqual(certificate.issuer.der, authority.subject.der);
      assert.ok(isSignedBy(certificate, authority.publicKey));
      const order = ['2.5.29.15', '2.5.29.37', '2.5.29.19', '2.5.29.14', '2.5.29.35', '2.5.29.17'];
      const found = certificate.extensions.map(extension => extension.oid);
      assert.deepEqual(
        found,
        order.filter(oid => found.includes(oid)),
      );
      const critical = certificate.extensions.filter(extension => extension.critical).map(extension => extension.oid);
      assert.deepEqual(critical, ['2.5.29.15', '2.5.29.19']);
    });
    it(`${kind}: a new key each time, the default is RSA-2048 with exponent 65537`, async () => {
      const pool = rsaPool();
      const [first, second] = [
        await issue(signer, { keys: pool, algorithm: undefined }),
        await issue(signer, { keys: pool, algorithm: undefined }),
      ];
      assert.equal(pool.asked.join(), 'RSA-2048,RSA-2048');
      assert.ok(!first.key.equals(second.key));
      assert.deepEqual(own(first).publicKey.asymmetricKeyDetails, { modulusLength: 2048, publicExponent: 65537n });
      assert.notEqual(own(first).serial, own(second).serial);
    });
  }
  it('14.18 serial: 63 random bits, never 0', async () => {
    const drawn = [Buffer.alloc(8), Buffer.from('0000000000000001', 'hex'), Buffer.alloc(8, 0xff)];
    const odd: Keys = { ...keys, random: () => drawn.shift()! };
    assert.equal(own(await KINDS['signer']!(signer, { keys: odd })).serial, (1n << 63n) - 1n);
    assert.equal(drawn.length, 0);
  });
  it('signature algorithm follows the key of the signer', async () => {
    const expected: Record<string, string> = {
      'P-256': 'ecdsa-with-SHA256',
      'P-384': 'ecdsa-with-SHA384',
      Ed25519: 'Ed25519',
    };
    for (const algorithm of ['P-256', 'P-384', 'Ed25519'] as const) {
      const ca = await issueSigner({ ...ISSUE, algorithm, commonName: 'ca' });
      assert.equal(own(ca).signatureAlgorithm, expected[algorithm]);
      const leaf = await issueServing({ ...ISSUE, signer: ca, hostnames: ['x'] });
      assert.equal(own(leaf).signatureAlgorithm, expected[algorithm]);
      assert.ok(isSignedBy(own(leaf), own(ca).publicKey));
    }
    const rsa = await issueSigner({ ...ISSUE, keys: rsaPool(), algorithm: 'RSA-2048', commonName: 'ca' });
    assert.equal(
      own(await issueServing({ ...ISSUE, signer: rsa, hostnames: ['x'] })).signatureAlgorithm,
      'sha256WithRSAEncryption',
    );
  });
  it('issuer DN: the bytes of the signer, whatever they are', async () => {
    const odd = sequence(
      setOf([sequence(oid('2.5.4.11'), element(TAG.printableString, Buffer.from('openshift')))]),
      setOf([sequence(oid('2.5.4.3'), element(TAG.teletexString, Buffer.from('kube-apiserver-lb-signer')))]),
    );
    const ca = await handmade({ subject: odd, extensions: [CA_CONSTRAINTS] });
    assert.deepEqual(own(await issueServing({ ...ISSUE, signer: ca, hostnames: ['x'] })).issuer.der, odd);
  });
  it('a subject of more than 64 characters', async () => {
    const commonName = fixture('recovery-signer').subject.commonName;
    assert.equal(own(await issueSigner({ ...ISSUE, commonName })).subject.commonName, commonName);
  });
  it('a CA needs a name', () => rejects(issueSigner({ ...ISSUE, commonName: '' }), 'SUBJECT_INVALID'));
  it('the same input gives the same bytes with seeded keys', async () => {
    const make = () => issueServing({ ...ISSUE, keys: seededKeys('same'), signer, hostnames: ['a', 'b'] });
    assert.equal(encodeCertificates((await make()).chain), encodeCertificates((await make()).chain));
  });
});

/** SEQUENCE { basicConstraints, critical, CA }. */
const CA_CONSTRAINTS = Buffer.from('300f0603551d130101ff040530030101ff', 'hex');

describe('5.3 by kind', () => {
  type Row = Pick<Certificate, 'isCA' | 'keyUsages' | 'extKeyUsages'> & {
    cn: string;
    chain: number;
    ski: boolean;
    aki: 'own' | 'signer';
  };
  const table: Record<string, Row> = {
    signer: {
      cn: 'ns_name@1705276800',
      isCA: true,
      keyUsages: ['digitalSignature', 'keyCertSign'],
      extKeyUsages: [],
      chain: 1,
      ski: true,
      aki: 'own',
    },
    intermediate: {
      cn: 'inner_@1705276800',
      isCA: true,
      keyUsages: ['digitalSignature', 'keyCertSign'],
      extKeyUsages: [],
      chain: 2,
      ski: true,
      aki: 'signer',
    },
    serving: {
      cn: '127.0.0.1',
      isCA: false,
      keyUsages: ['digitalSignature'],
      extKeyUsages: ['serverAuth'],
      chain: 2,
      ski: true,
      aki: 'signer',
    },
    client: {
      cn: 'system:admin',
      isCA: false,
      keyUsages: ['digitalSignature'],
      extKeyUsages: ['clientAuth'],
      chain: 1,
      ski: false,
      aki: 'signer',
    },
    peer: {
      cn: '10.0.0.1',
      isCA: false,
      keyUsages: ['digitalSignature'],
      extKeyUsages: ['clientAuth', 'serverAuth'],
      chain: 2,
      ski: true,
      aki: 'signer',
    },
  };
  for (const [kind, row] of Object.entries(table)) {
    it(`${kind}: subject, usages, constraints, key ids, chain (P-2, P-3)`, async () => {
      const issued = await KINDS[kind]!(signer);
      const certificate = own(issued);
      assert.equal(certificate.subject.commonName, row.cn);
      assert.equal(certificate.isCA, row.isCA);
      assert.equal(certificate.hasBasicConstraints, true);
      assert.equal(certificate.pathLength, undefined);
      assert.deepEqual(certificate.keyUsages, row.keyUsages);
      assert.deepEqual(certificate.extKeyUsages, row.extKeyUsages);
      const ownId = subjectKeyIdFor(createPublicKey(issued.key));
      assert.deepEqual(certificate.subjectKeyId, row.ski ? ownId : undefined);
      assert.deepEqual(certificate.authorityKeyId, row.aki === 'own' ? ownId : own(signer).subjectKeyId);
      assert.deepEqual(issued.chain.slice(1), row.chain === 2 ? signer.chain : []);
    });
    it(`${kind}: RSA keys also encipher`, async () => {
      const certificate = own(await KINDS[kind]!(signer, { keys: rsaPool(), algorithm: 'RSA-2048' }));
      assert.deepEqual(certificate.keyUsages, row.keyUsages.toSpliced(1, 0, 'keyEncipherment'));
    });
  }
  it('P-3 the whole chain of the signer follows, in order', async () => {
    const inner = await issueIntermediate({ ...ISSUE, signer, commonName: 'inner' });
    const leaf = await issueServing({ ...ISSUE, signer: inner, hostnames: ['x'] });
    assert.deepEqual(leaf.chain.slice(1), [inner.chain[0], signer.chain[0]]);
  });
  it('peer: the subject of a user where one is given (6.4)', async () => {
    const peer = await issuePeer({
      ...ISSUE,
      signer,
      hostnames: ['etcd-0'],
      user: { name: 'system:etcd-peer:etcd-0', groups: ['system:etcd-peers'] },
    });
    assert.equal(own(peer).subject.commonName, 'system:etcd-peer:etcd-0');
    assert.deepEqual(own(peer).subject.organizations, ['system:etcd-peers']);
    assert.deepEqual(own(peer).dnsNames, ['etcd-0']);
  });
});

describe('5.4 key identifiers', () => {
  it('K-1 RSA: SHA-1 over the modulus', async () => {
    const issued = await issueSigner({ ...ISSUE, keys: rsaPool(), algorithm: 'RSA-2048', commonName: 'x' });
    assert.deepEqual(own(issued).subjectKeyId, subjectKeyIdFor(own(issued).publicKey));
    assert.equal(own(issued).subjectKeyId?.length, 20);
  });
  it("K-2 copied from the signer's extension, never computed", async () => {
    const ski = Buffer.from('300d0603551d0e0406040401020304', 'hex');
    const ca = await handmade({ extensions: [CA_CONSTRAINTS, ski] });
    assert.deepEqual(
      own(await issueServing({ ...ISSUE, signer: ca, hostnames: ['x'] })).authorityKeyId,
      Buffer.of(1, 2, 3, 4),
    );
  });
  it('K-2 absent where the signer has none', async () => {
    const ca = await handmade({ extensions: [CA_CONSTRAINTS] });
    assert.equal(own(await issueClient({ ...ISSUE, signer: ca, user: { name: 'x' } })).authorityKeyId, undefined);
  });
});

describe('5.6 host names of a serving certificate', () => {
  it('SAN: DNS first, then IP; addresses in both; not critical', async () => {
    const certificate = own(await KINDS['serving']!(signer));
    assert.deepEqual(certificate.dnsNames, ['localhost', '127.0.0.1', '::1']);
    assert.deepEqual(certificate.ipAddresses, ['127.0.0.1', '::1']);
    assert.equal(hostnamesOf(certificate).join(','), '127.0.0.1,::1,localhost');
    const san = certificate.extensions.at(-1)!;
    const expected = `303382096c6f63616c686f737482093132372e302e302e3182033a3a3187047f0000018710${'00'.repeat(15)}01`;
    assert.equal(san.value.toString('hex'), expected);
  });
  it('IPv4-mapped addresses are encoded as IPv4', async () => {
    const certificate = own(await issueServing({ ...ISSUE, signer, hostnames: ['::ffff:10.0.0.1'] }));
    assert.deepEqual(certificate.ipAddresses, ['10.0.0.1']);
    assert.ok(certificate.extensions.at(-1)!.value.includes(Buffer.from('87040a000001', 'hex')));
  });
  it('zone ids make a DNS name', async () => {
    assert.deepEqual(own(await issueServing({ ...ISSUE, signer, hostnames: ['fe80::1%eth0'] })).dnsNames, [
      'fe80::1%eth0',
    ]);
  });
  it('C-2 no hostnames set', () =>
    rejects(issueServing({ ...ISSUE, signer, hostnames: [] }), 'NO_HOSTNAMES', /^no hostnames set$/));
  for (const host of ['', 'a,b', 'a b', 'zürich.example', 'a\nb', '\u0000']) {
    it(`refuses the host ${JSON.stringify(host)}`, () =>
      rejects(issueServing({ ...ISSUE, signer, hostnames: ['ok', host] }), 'HOSTNAME_INVALID'));
  }
  it('limits: number, length, size of the certificate', async () => {
    const long = (i: number) => `${i}.${'x'.repeat(MAX_HOSTNAME_CHARACTERS - 10)}`;
    await rejects(
      issueServing({ ...ISSUE, signer, hostnames: ['x'.repeat(MAX_HOSTNAME_CHARACTERS + 1)] }),
      'TOO_LARGE',
    );
    await rejects(
      issueServing({ ...ISSUE, signer, hostnames: Array.from({ length: MAX_HOSTNAMES + 1 }, (_, i) => `h${i}`) }),
      'TOO_LARGE',
    );
    await rejects(
      issueServing({ ...ISSUE, signer, hostnames: Array.from({ length: MAX_HOSTNAMES }, (_, i) => long(i)) }),
      'TOO_LARGE',
    );
  });
});

describe('5.7 extension hooks', () => {
  const serving = (...hooks: CertificateHook[]) => issueServing({ ...ISSUE, signer, hostnames: ['localhost'], hooks });
  it('run in order and may change usages, names, subject, extensions', async () => {
    const calls: string[] = [];
    const certificate = own(
      await serving(
        template => {
          calls.push('first');
          template.extKeyUsages = ['clientAuth', 'serverAuth', '1.2.3.4'];
          template.dnsNames.push('added');
        },
        async template => {
          await Promise.resolve();
          calls.push('second');
          assert.deepEqual(template.dnsNames, ['localhost', 'added']);
          template.subject = { commonName: 'changed', organizations: ['o'] };
          template.keyUsages = ['digitalSignature'];
          template.extraExtensions.push({ oid: '1.2.3.4.5', critical: false, value: Buffer.of(5, 0) });
        },
      ),
    );
    assert.deepEqual(calls, ['first', 'second']);
    assert.deepEqual(certificate.extKeyUsages, ['clientAuth', 'serverAuth', '1.2.3.4']);
    assert.deepEqual(certificate.dnsNames, ['localhost', 'added']);
    assert.equal(certificate.subject.commonName, 'changed');
    assert.equal(certificate.extensions.at(-1)?.oid, '1.2.3.4.5');
  });
  it("a hook's error aborts the generation", async () => {
    const cause = new Error('no such node');
    await assert.rejects(
      serving(() => {
        throw cause;
      }),
      error => isPkiError(error, 'HOOK_FAILED') && error.cause === cause && error.message.includes('no such node'),
    );
    await rejects(
      serving(() => Promise.reject(cause)),
      'HOOK_FAILED',
    );
  });
  it('what a hook gets wrong is refused', async () => {
    await rejects(
      serving(template => void template.dnsNames.push('a,b')),
      'HOSTNAME_INVALID',
    );
    await rejects(
      serving(template => void template.ipAddresses.push('010.0.0.1')),
      'TEMPLATE_INVALID',
    );
    await rejects(
      serving(template => void template.extKeyUsages.push('anything')),
      'TEMPLATE_INVALID',
    );
    await rejects(
      serving(template => void Object.assign(template, { keyUsages: ['anything'] })),
      'TEMPLATE_INVALID',
    );
    await rejects(
      serving(template => void Object.assign(template, { notAfter: at(86_400 * 365) })),
      'OUTLIVES_SIGNER',
    );
  });
});

describe('a signer whose key is not its own', () => {
  it('signs nothing that gets out', async () => {
    const mixed = { chain: signer.chain, key: await keys.generate('P-256') };
    await rejects(issueServing({ ...ISSUE, signer: mixed, hostnames: ['x'] }), 'KEY_MISMATCH');
    await rejects(issueServing({ ...ISSUE, signer: mixed, hostnames: ['x'] }), 'KEY_MISMATCH');
  });
  it('a key proven for one certificate is not proven for another', async () => {
    await issueServing({ ...ISSUE, signer, hostnames: ['x'] });
    const other = await sampleSigner({ keys: seededKeys('another') });
    await rejects(
      issueServing({ ...ISSUE, signer: { chain: other.chain, key: signer.key }, hostnames: ['x'] }),
      'KEY_MISMATCH',
    );
  });
});

describe('issueForPublicKey', () => {
  it('certifies a key that stays elsewhere, copying the subject byte for byte', async () => {
    const publicKey = createPublicKey(await keys.generate('P-256'));
    const { subject } = fixture('etcd-client-leaf');
    const certificate = await issueForPublicKey({
      ...ISSUE,
      signer,
      publicKey,
      subject,
      extKeyUsages: ['clientAuth'],
      dnsNames: ['n'],
      ipAddresses: ['::1'],
    });
    assert.deepEqual(certificate.subject.der, subject.der);
    assert.ok(certificate.publicKey.equals(publicKey));
    assert.deepEqual(certificate.extKeyUsages, ['clientAuth']);
    assert.deepEqual([certificate.dnsNames, certificate.ipAddresses], [['n'], ['::1']]);
    assert.ok(isSignedBy(certificate, own(signer).publicKey));
    assert.ok(certificate.notAfter <= own(signer).notAfter);
  });
  it('V-4 holds here too', async () => {
    const options = { publicKey: createPublicKey(signer.key), subject: { commonName: 'x' }, extKeyUsages: [] };
    await rejects(issueForPublicKey({ ...ISSUE, ...options, signer, now: own(signer).notAfter }), 'SIGNER_EXPIRED');
  });
});

describe('dates beyond 2049', () => {
  it('5.1 are GeneralizedTime', async () => {
    const { tbs, notAfter } = own(await issueSigner({ ...ISSUE, lifetimeMs: 30 * 365 * DAY_MS, commonName: 'x' }));
    assert.ok(tbs.includes(time(notAfter)) && time(notAfter)[0] === TAG.generalizedTime);
  });
});

/** RSA keys made beforehand: two are enough to tell one from the next, and making them takes long. */
const RSA_KEYS: KeyObject[] = [];
function rsaPool(): Keys & { asked: KeyAlgorithm[] } {
  const asked: KeyAlgorithm[] = [];
  while (RSA_KEYS.length < 2) RSA_KEYS.push(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey);
  const generate = async (algorithm: KeyAlgorithm) => RSA_KEYS[(asked.push(algorithm) - 1) % RSA_KEYS.length]!;
  return {
    asked,
    generate,
    sign: (key, data) => systemKeys.sign(key, data),
    random: bytes => systemKeys.random(bytes),
  };
}
