import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { parseCertificate } from './certificate.ts';
import {
  bitString,
  contextConstructed,
  contextPrimitive,
  element,
  integer,
  NULL,
  namedBits,
  octetString,
  oid,
  sequence,
  TAG,
  TRUE,
} from './der-write.ts';
import { isPkiError } from './error.ts';
import { subjectKeyIdFor } from './key-id.ts';
import { MAX_CERTIFICATE_BYTES, MAX_EXTENSIONS } from './limits.ts';
import { fixture, handmade, vectors } from './test-data.ts';

const extension = (type: string, value: Buffer, critical = false) =>
  critical ? sequence(oid(type), TRUE, octetString(value)) : sequence(oid(type), octetString(value));

const own = async (parts: Parameters<typeof handmade>[0]) => (await handmade(parts)).chain[0]!;

describe('certificates of a real cluster', () => {
  for (const [name, facts] of Object.entries(vectors.fixtures)) {
    it(`${name} reads as its vector says`, () => {
      const certificate = fixture(name);
      assert.equal(certificate.subject.commonName, facts['subjectCN']);
      assert.equal(certificate.issuer.commonName, facts['issuerCN']);
      assert.equal(certificate.notBefore.getTime(), Date.parse(String(facts['notBefore'])));
      assert.equal(certificate.notAfter.getTime(), Date.parse(String(facts['notAfter'])));
      if ('isCA' in facts) assert.equal(certificate.isCA, facts['isCA']);
      if ('skiHex' in facts) assert.equal(certificate.subjectKeyId?.toString('hex') ?? null, facts['skiHex']);
      if ('akiHex' in facts) assert.equal(certificate.authorityKeyId?.toString('hex') ?? null, facts['akiHex']);
      if ('dns' in facts) assert.deepEqual(certificate.dnsNames, facts['dns']);
      if ('organizations' in facts) assert.deepEqual(certificate.subject.organizations, facts['organizations']);
      if ('subjectSerialNumber' in facts) assert.equal(certificate.subject.serialNumber, facts['subjectSerialNumber']);
    });
    it(`${name} reads as OpenSSL reads it`, () => {
      const certificate = fixture(name);
      const openssl = new X509Certificate(certificate.der);
      assert.equal(certificate.serial, BigInt(`0x${openssl.serialNumber}`));
      assert.equal(certificate.isCA, openssl.ca);
      assert.ok(certificate.publicKey.equals(openssl.publicKey));
      assert.equal(certificate.notAfter.getTime(), openssl.validToDate.getTime());
    });
  }
  it('an installer signer has an OU and keeps its bytes', () => {
    const { subject, issuer } = fixture('installer-lb-signer');
    assert.deepEqual(subject.organizationalUnits, ['openshift']);
    assert.deepEqual(subject.der, issuer.der);
  });
  it('key usages and extended key usages', () => {
    assert.deepEqual(fixture('recovery-signer').keyUsages, ['digitalSignature', 'keyEncipherment', 'keyCertSign']);
    assert.deepEqual(fixture('recovery-signer').extKeyUsages, []);
    assert.deepEqual(fixture('service-serving-leaf').extKeyUsages, ['serverAuth']);
    assert.deepEqual(fixture('etcd-client-leaf').extKeyUsages, ['clientAuth']);
    assert.equal(fixture('expired-ecdsa').signatureAlgorithm, 'ecdsa-with-SHA256');
    assert.equal(fixture('recovery-signer').signatureAlgorithm, 'sha256WithRSAEncryption');
  });
});

describe('K-1 subject key id', () => {
  for (const name of ['recovery-signer', 'service-ca-signer', 'service-serving-leaf']) {
    it(`of ${name} is SHA-1 over the modulus`, () => {
      const certificate = fixture(name);
      assert.deepEqual(subjectKeyIdFor(certificate.publicKey), certificate.subjectKeyId);
    });
  }
  it('is taken from the extension, not computed: the installer uses another method', () => {
    const certificate = fixture('installer-lb-signer');
    assert.notDeepEqual(subjectKeyIdFor(certificate.publicKey), certificate.subjectKeyId);
  });
});

const RSA = '1.2.840.113549.1.1.1';
const EC = '1.2.840.10045.2.1';
const P256 = '1.2.840.10045.3.1.7';
/** The base point, which Go reads in its long form only. */
const COMPRESSED = Buffer.from('036b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296', 'hex');
const ecKey = (curve: string, point: Buffer) => sequence(sequence(oid(EC), oid(curve)), bitString(point));
const rsaKey = (modulus: bigint, exponent: bigint) => sequence(integer(modulus), integer(exponent));

describe('certificates nobody should write', () => {
  it('version 1 without extensions', async () => {
    const certificate = await own({ version: Buffer.alloc(0) });
    assert.equal(certificate.version, 1);
    assert.equal(certificate.isCA, false);
    assert.equal(certificate.hasBasicConstraints, false);
    assert.deepEqual(certificate.extensions, []);
  });
  it('extensions count in version 3 only', async () => {
    const extensions = [extension('2.5.29.19', sequence(TRUE))];
    assert.equal((await own({ extensions })).isCA, true);
    const version2 = await own({ extensions, version: element(contextConstructed(0), integer(1)) });
    assert.deepEqual([version2.version, version2.isCA], [2, false]);
  });
  it('a negative serial number, as old signers made them', async () => {
    assert.equal((await own({ serial: Buffer.from('0201ff', 'hex') })).serial, -1n);
  });
  it('unique ids', async () => {
    const ids = [1, 2].map(n => element(contextPrimitive(n), Buffer.of(0, 1)));
    assert.equal((await own({ afterKey: ids })).subject.commonName, 'handmade');
  });
  it('an authority key id with issuer and serial only', async () => {
    const value = sequence(element(contextConstructed(1)), element(contextPrimitive(2), Buffer.of(1)));
    assert.equal((await own({ extensions: [extension('2.5.29.35', value)] })).authorityKeyId, undefined);
  });
  it('other kinds of names, and IPv4-mapped addresses', async () => {
    const names = sequence(
      element(contextPrimitive(1), Buffer.from('a@b')),
      element(contextPrimitive(6), Buffer.from('spiffe://x/y')),
      element(contextPrimitive(8), oid('1.2.3')),
      element(contextPrimitive(7), Buffer.from('00000000000000000000ffffc0000201', 'hex')),
      element(contextPrimitive(2), Buffer.from('b')),
    );
    const certificate = await own({ extensions: [extension('2.5.29.17', names)] });
    assert.deepEqual(certificate.emailAddresses, ['a@b']);
    assert.deepEqual(certificate.uris, ['spiffe://x/y']);
    assert.deepEqual(certificate.ipAddresses, ['192.0.2.1']);
    assert.deepEqual(certificate.dnsNames, ['b']);
  });
  for (const namedCurve of ['P-224', 'P-256', 'P-384', 'P-521']) {
    it(`a key of ${namedCurve}, which Go reads`, async () => {
      const { publicKey } = generateKeyPairSync('ec', { namedCurve });
      const publicKeyInfo = publicKey.export({ type: 'spki', format: 'der' });
      assert.ok((await own({ publicKeyInfo })).publicKey.equals(publicKey));
    });
  }
  it('P-7 junk that Go does not mind', async () => {
    const certificate = await own({
      extensions: [
        extension('2.5.29.14', Buffer.from('04010100', 'hex')),
        extension('2.5.29.19', sequence(TRUE, octetString(Buffer.of(1)))),
      ],
    });
    assert.deepEqual(certificate.subjectKeyId, Buffer.of(1));
    assert.equal(certificate.isCA, true);
    assert.equal((await own({ afterKey: [integer(1)] })).isCA, false);
  });
  it('path length, unknown usages and unknown extensions', async () => {
    const certificate = await own({
      extensions: [
        extension('2.5.29.19', sequence(TRUE, integer(3)), true),
        extension('2.5.29.37', sequence(oid('1.3.6.1.5.5.7.3.2'), oid('1.2.3.4'))),
        extension('2.5.29.15', namedBits([6, 8])),
        extension('1.2.3.4.5', Buffer.of(1, 2, 3), true),
      ],
    });
    assert.equal(certificate.pathLength, 3);
    assert.deepEqual(certificate.extKeyUsages, ['clientAuth', '1.2.3.4']);
    assert.deepEqual(certificate.keyUsages, ['cRLSign', 'decipherOnly']);
    assert.deepEqual(certificate.extensions.map(({ oid, critical }) => [oid, critical]).at(-1), ['1.2.3.4.5', true]);
  });

  const refused: [string, Parameters<typeof handmade>[0]][] = [
    ['version 4', { version: element(contextConstructed(0), integer(3)) }],
    ['an extension twice', { extensions: [extension('1.2.3', Buffer.of(5, 0)), extension('1.2.3', Buffer.of(5, 0))] }],
    [
      'an address of 5 bytes',
      { extensions: [extension('2.5.29.17', sequence(element(contextPrimitive(7), Buffer.alloc(5))))] },
    ],
    [
      'a DNS name beyond ASCII',
      { extensions: [extension('2.5.29.17', sequence(element(contextPrimitive(2), Buffer.of(0xe9))))] },
    ],
    ['a negative path length', { extensions: [extension('2.5.29.19', sequence(TRUE, Buffer.from('0201ff', 'hex')))] }],
    ['30 February', { notAfter: element(TAG.utcTime, Buffer.from('230230000000Z')) }],
    ['a subject that is no name', { subject: integer(1) }],
    ['a public key without bits', { publicKeyInfo: sequence(sequence(oid('1.2.3'))) }],
    ['an RSA key without parameters', { publicKeyInfo: sequence(sequence(oid(RSA)), bitString(rsaKey(3n, 3n))) }],
    ['P-7 a point that is not on its curve', { publicKeyInfo: ecKey(P256, Buffer.alloc(65, 4)) }],
    ['P-7 a point at infinity', { publicKeyInfo: ecKey(P256, Buffer.of(0)) }],
    ['P-7 a compressed point', { publicKeyInfo: ecKey(P256, COMPRESSED) }],
    ['P-7 an unknown curve', { publicKeyInfo: ecKey('1.3.132.0.10', Buffer.alloc(65, 4)) }],
    [
      'P-7 an elliptic curve key without a curve',
      { publicKeyInfo: sequence(sequence(oid(EC)), bitString(COMPRESSED)) },
    ],
    ['P-7 a short Ed25519 key', { publicKeyInfo: sequence(sequence(oid('1.3.101.112')), bitString(Buffer.alloc(31))) }],
    ['an RSA key with modulus 0', { publicKeyInfo: sequence(sequence(oid(RSA), NULL), bitString(rsaKey(0n, 3n))) }],
  ];
  for (const [what, parts] of refused) {
    it(`refuses ${what}`, () => assert.rejects(handmade(parts), error => isPkiError(error, 'CERTIFICATE_INVALID')));
  }
  it('limits: extensions and size', async () => {
    const extensions = Array.from({ length: MAX_EXTENSIONS + 1 }, (_, i) => extension(`1.2.${i}`, Buffer.of(5, 0)));
    await assert.rejects(handmade({ extensions }), error => isPkiError(error, 'TOO_LARGE'));
    assert.throws(
      () => parseCertificate(Buffer.alloc(MAX_CERTIFICATE_BYTES + 1)),
      error => isPkiError(error, 'TOO_LARGE'),
    );
  });
});

describe('parseCertificate', () => {
  it('keeps its own copy of the bytes', () => {
    const bytes = Buffer.from(fixture('recovery-signer').der);
    const certificate = parseCertificate(bytes);
    bytes.fill(0);
    assert.deepEqual(certificate.der, fixture('recovery-signer').der);
  });
  it('a key of an unknown kind is an error only for those who ask for it', async () => {
    const certificate = await own({ publicKeyInfo: sequence(sequence(oid('1.2.3.4')), bitString(Buffer.of(1))) });
    assert.equal(certificate.subject.commonName, 'handmade');
    assert.throws(
      () => certificate.publicKey,
      error => isPkiError(error, 'KEY_UNSUPPORTED'),
    );
  });
  it('throws nothing but CERTIFICATE_INVALID on arbitrary bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), bytes => {
        assert.throws(
          () => parseCertificate(bytes),
          error => isPkiError(error, 'CERTIFICATE_INVALID'),
        );
      }),
    );
  });
});
