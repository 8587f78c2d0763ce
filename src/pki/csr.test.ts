import assert from 'node:assert/strict';
import type { KeyObject } from 'node:crypto';
import { before, describe, it } from 'node:test';
import * as fc from 'fast-check';
import {
  type CertificateRequest,
  createCertificateRequest,
  encodeCertificateRequest,
  parseCertificateRequest,
  readCertificateRequest,
} from './csr.ts';
import { bitString, contextConstructed, element, integer, octetString, oid, sequence, setOf } from './der-write.ts';
import { isPkiError, type PkiErrorCode } from './error.ts';
import { issueForPublicKey } from './issue.ts';
import { seededKeys } from './keys.ts';
import { MAX_CERTIFICATE_BYTES } from './limits.ts';
import { encodeName } from './name.ts';
import { publicKeyInfoOf, signatureSchemeOf } from './signature.ts';
import { DAY_MS, fixture, NOW, sampleSigner, vectors } from './test-data.ts';

const keys = seededKeys('csr');
const subject = { commonName: 'system:node:worker-0', organizations: ['system:nodes'] };
const refuses = (run: () => unknown, code: PkiErrorCode) => assert.throws(run, error => isPkiError(error, code));

describe('certificate requests', () => {
  let key: KeyObject;
  let request: CertificateRequest;
  before(async () => {
    key = await keys.generate('P-256');
    request = await createCertificateRequest({
      keys,
      key,
      subject,
      dnsNames: ['worker-0'],
      ipAddresses: ['10.0.0.1', '::1'],
    });
  });

  it('say who asks, for which names, with which key', () => {
    assert.equal(request.subject.commonName, 'system:node:worker-0');
    assert.deepEqual(request.subject.organizations, ['system:nodes']);
    assert.deepEqual(request.dnsNames, ['worker-0']);
    assert.deepEqual(request.ipAddresses, ['10.0.0.1', '::1']);
    assert.deepEqual(request.emailAddresses.length + request.uris.length + request.extKeyUsages.length, 0);
    assert.equal(request.signatureAlgorithm, 'ecdsa-with-SHA256');
  });
  it('without names have no attributes', async () => {
    const plain = await createCertificateRequest({ keys, key: await keys.generate('Ed25519'), subject });
    assert.deepEqual(plain.extensions, []);
    assert.deepEqual([plain.dnsNames, plain.ipAddresses], [[], []]);
  });
  it('round trip through PEM', () => {
    const text = encodeCertificateRequest(request);
    assert.ok(text.startsWith('-----BEGIN CERTIFICATE REQUEST-----\n'));
    assert.deepEqual(readCertificateRequest(text).der, request.der);
  });
  it('become certificates', async () => {
    const signer = await sampleSigner();
    const { publicKey, dnsNames, ipAddresses } = request;
    const certificate = await issueForPublicKey({
      keys,
      now: NOW,
      lifetimeMs: DAY_MS,
      signer,
      publicKey,
      subject: request.subject,
      dnsNames,
      ipAddresses,
      extKeyUsages: ['serverAuth'],
    });
    assert.deepEqual(certificate.subject.der, request.subject.der);
    assert.deepEqual(certificate.ipAddresses, ['10.0.0.1', '::1']);
  });

  it('a changed request is refused', () => {
    const changed = Buffer.from(request.der);
    changed[changed.indexOf('worker-0')] = 'W'.charCodeAt(0);
    refuses(() => parseCertificateRequest(changed), 'SIGNATURE_INVALID');
  });
  it('a request signed with another key is refused', async () => {
    const info = sequence(integer(0), encodeName(subject), publicKeyInfoOf(key), element(contextConstructed(0)));
    const other = await keys.generate('P-256');
    const signature = bitString(await keys.sign(other, info));
    refuses(
      () => parseCertificateRequest(sequence(info, signatureSchemeOf(other).identifier, signature)),
      'SIGNATURE_INVALID',
    );
  });

  const handmade = async (version: Buffer, ...attributes: Buffer[]) => {
    const info = sequence(
      version,
      encodeName(subject),
      publicKeyInfoOf(key),
      element(contextConstructed(0), ...attributes),
    );
    return sequence(info, signatureSchemeOf(key).identifier, bitString(await keys.sign(key, info)));
  };
  const extensionRequest = sequence(oid('1.2.840.113549.1.9.14'), setOf([sequence()]));
  it('other attributes pass', async () => {
    const challenge = sequence(oid('1.2.840.113549.1.9.7'), setOf([octetString(Buffer.from('x'))]));
    assert.deepEqual(parseCertificateRequest(await handmade(integer(0), challenge, extensionRequest)).dnsNames, []);
  });
  it('another version, two lists of extensions: refused', async () => {
    const version1 = await handmade(integer(1));
    refuses(() => parseCertificateRequest(version1), 'REQUEST_INVALID');
    const twice = await handmade(integer(0), extensionRequest, extensionRequest);
    refuses(() => parseCertificateRequest(twice), 'REQUEST_INVALID');
  });
  it('PEM of another kind, no PEM, too much: refused', () => {
    refuses(() => readCertificateRequest(vectors.fixtures['recovery-signer']!.pem), 'REQUEST_INVALID');
    refuses(() => readCertificateRequest(''), 'REQUEST_INVALID');
    refuses(() => parseCertificateRequest(fixture('recovery-signer').der), 'REQUEST_INVALID');
    refuses(() => parseCertificateRequest(Buffer.alloc(MAX_CERTIFICATE_BYTES + 1)), 'TOO_LARGE');
  });
  it('any byte changed: PkiError or a request that still verifies', () => {
    fc.assert(
      fc.property(fc.nat(request.der.length - 1), fc.nat(255), (position, value) => {
        const changed = Buffer.from(request.der);
        changed[position] = value;
        try {
          parseCertificateRequest(changed);
        } catch (error) {
          assert.ok(isPkiError(error), String(error));
        }
      }),
      { numRuns: 500 },
    );
  });
});
