import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { type CertificateAndKey, loadCertificateAndKey, ownCertificate, requireCA } from './authority.ts';
import { namedBits, octetString, oid, sequence, TRUE } from './der-write.ts';
import { isPkiError, type PkiErrorCode } from './error.ts';
import { seededKeys } from './keys.ts';
import { encodeCertificates, encodePrivateKey } from './pem.ts';
import { fixture, handmade, sampleServing, sampleSigner, vectors } from './test-data.ts';

describe('4.5 loading a signer', () => {
  let signer: CertificateAndKey;
  let cert: string;
  let key: string;
  let otherKey: string;
  let rsaCert: string;
  before(async () => {
    signer = await sampleSigner();
    cert = encodeCertificates(signer.chain);
    key = encodePrivateKey(signer.key);
    otherKey = encodePrivateKey(await seededKeys('other').generate('P-256'));
    rsaCert = vectors.fixtures['recovery-signer']!.pem;
  });

  const table: [string, () => [string | undefined, string | undefined], PkiErrorCode, RegExp][] = [
    ['no tls.crt', () => [undefined, key], 'CERT_MISSING', /^certFile missing$/],
    ['empty tls.crt', () => ['', key], 'CERT_MISSING', /^certFile missing$/],
    ['no tls.key', () => [cert, undefined], 'KEY_MISSING', /^keyFile missing$/],
    ['empty tls.key', () => [cert, ''], 'KEY_MISSING', /^keyFile missing$/],
    ['tls.crt is no PEM', () => ['x', key], 'NO_CERTIFICATES', /^Error reading cert: data does not contain any valid/],
    [
      'tls.crt is no certificate',
      () => ['-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n', key],
      'CERTIFICATE_INVALID',
      /^Error reading cert: /,
    ],
    ['tls.crt is truncated', () => [cert.slice(0, 200), key], 'NO_CERTIFICATES', /^Error reading cert: /],
    ['tls.key is no PEM', () => [cert, 'x'], 'KEY_INVALID', /private key/],
    ["another pair's key", () => [cert, otherKey], 'KEY_MISMATCH', /^tls: private key does not match public key$/],
    ['a key of another kind', () => [rsaCert, key], 'KEY_MISMATCH', /^tls: private key does not match public key$/],
  ];
  for (const [name, input, code, message] of table) {
    it(`${name}: ${code}`, () => {
      assert.throws(
        () => loadCertificateAndKey(...input()),
        error => isPkiError(error, code) && message.test(error.message),
      );
    });
  }
  it('P-2 loads what was stored', () => {
    const loaded = loadCertificateAndKey(cert, key);
    assert.deepEqual(
      loaded.chain.map(({ der }) => der),
      signer.chain.map(({ der }) => der),
    );
    assert.ok(loaded.key.equals(signer.key));
  });
  it('P-3 loads a chain in order', async () => {
    const { chain, key } = await sampleServing(signer);
    const loaded = loadCertificateAndKey(encodeCertificates(chain), encodePrivateKey(key));
    assert.deepEqual(
      loaded.chain.map(({ der }) => der),
      chain.map(({ der }) => der),
    );
  });
  it('an empty chain has no own certificate', () => {
    assert.throws(
      () => ownCertificate({ chain: [] }),
      error => isPkiError(error, 'CERT_MISSING'),
    );
  });
});

describe('X-2 only a CA signs', () => {
  const constraints = (...content: Buffer[]) => sequence(oid('2.5.29.19'), octetString(sequence(...content)));
  const usage = (...bits: number[]) => sequence(oid('2.5.29.15'), octetString(namedBits(bits)));
  const table: [string, Buffer[], boolean][] = [
    ['CA without key usage', [constraints(TRUE)], true],
    ['CA with keyCertSign', [constraints(TRUE), usage(5)], true],
    ['CA whose key usage lacks keyCertSign', [constraints(TRUE), usage(0)], false],
    ['basic constraints say no', [constraints(), usage(5)], false],
    ['no basic constraints', [usage(5)], false],
  ];
  for (const [name, extensions, allowed] of table) {
    it(name, async () => {
      const ca = await handmade({ extensions });
      if (allowed) requireCA(ca);
      else
        assert.throws(
          () => requireCA(ca),
          error => isPkiError(error, 'NOT_A_CA'),
        );
    });
  }
  it('a real serving leaf does not, real signers do', () => {
    assert.throws(
      () => requireCA({ chain: [fixture('service-serving-leaf')] }),
      error => isPkiError(error, 'NOT_A_CA'),
    );
    for (const name of ['recovery-signer', 'installer-lb-signer']) requireCA({ chain: [fixture(name)] });
  });
});
