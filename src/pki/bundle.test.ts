import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import * as fc from 'fast-check';
import { canonicalBundle, mergeBundle, unexpired } from './bundle.ts';
import type { Certificate } from './certificate.ts';
import { isPkiError } from './error.ts';
import { seededKeys } from './keys.ts';
import { MAX_BUNDLE_CERTIFICATES } from './limits.ts';
import { encodeCertificates, readCertificates } from './pem.ts';
import { at, fixture, NOW, sampleSigner } from './test-data.ts';

const LB = fixture('installer-lb-signer');
const LOCALHOST = fixture('installer-localhost-signer');
const RECOVERY = fixture('recovery-signer');
const EXPIRED = fixture('expired-ecdsa');
const names = (certificates: readonly Certificate[]) => certificates.map(({ subject }) => subject.commonName);

describe('CA bundle', () => {
  const pool: Certificate[] = [];
  before(async () => {
    const keys = seededKeys('bundle');
    for (const i of Array.from({ length: 8 }, (_, i) => i)) {
      pool.push((await sampleSigner({ keys, commonName: 'same name', lifetimeMs: (i + 1) * 1000 })).chain[0]!);
    }
  });
  const shuffled = () => fc.array(fc.nat(7), { maxLength: 20 }).map(picks => picks.map(i => pool[i]!));

  it('B-3 drops what does not end strictly after now', () => {
    const ends = [0, 1, -1].map(seconds => ({ notAfter: at(seconds) }));
    assert.deepEqual(unexpired(ends, NOW), [ends[1]]);
  });
  it('B-3 does not look at notBefore', () => {
    assert.deepEqual(unexpired([RECOVERY], new Date('2000-01-01T00:00:00Z')), [RECOVERY]);
  });
  it('B-4 drops duplicates by DER, not by name', () => {
    assert.equal(canonicalBundle([pool[0]!, pool[1]!, pool[0]!]).length, 2);
  });
  it('B-5 sorts by unsigned bytes', () => {
    assert.deepEqual(canonicalBundle([RECOVERY, LOCALHOST, LB]), [LB, LOCALHOST, RECOVERY]);
    const [low, high] = [0x7f, 0x80].map(byte => ({ ...LB, der: Buffer.of(byte) }));
    assert.deepEqual(canonicalBundle([high!, low!]), [low, high]);
  });
  it('B-5 leaves its input alone', () => {
    const input = [RECOVERY, LB];
    canonicalBundle(input);
    assert.deepEqual(names(input), names([RECOVERY, LB]));
  });
  it('B-2 to B-5 the signer joins what is stored', () => {
    assert.deepEqual(names(mergeBundle([EXPIRED, RECOVERY, LB], LOCALHOST, NOW)), names([LB, LOCALHOST, RECOVERY]));
    assert.deepEqual(mergeBundle([], LB, NOW), [LB]);
    assert.deepEqual(mergeBundle([LB], LB, NOW), [LB]);
  });
  it('B-8, 14.10 never empty', () => {
    assert.throws(
      () => mergeBundle([EXPIRED], EXPIRED, NOW),
      error => isPkiError(error, 'BUNDLE_EMPTY'),
    );
  });
  it('limit', () => {
    const many = Array.from({ length: MAX_BUNDLE_CERTIFICATES + 1 }, () => LB);
    assert.throws(
      () => canonicalBundle(many),
      error => isPkiError(error, 'TOO_LARGE'),
    );
  });
  it('canonical form is idempotent and does not depend on the order', () => {
    fc.assert(
      fc.property(shuffled(), certificates => {
        const canonical = canonicalBundle(certificates);
        assert.deepEqual(canonicalBundle(canonical), canonical);
        assert.equal(encodeCertificates(canonicalBundle([...certificates].reverse())), encodeCertificates(canonical));
        assert.equal(new Set(canonical).size, new Set(certificates).size);
      }),
    );
  });
  it('merging twice, or through its own text, changes nothing; nothing unexpired is lost', () => {
    fc.assert(
      fc.property(shuffled(), fc.nat(7), fc.integer({ min: -1, max: 7 }), (stored, signerAt, second) => {
        const signer = pool[signerAt]!;
        const now = at(second);
        if (signer.notAfter <= now) return;
        const merged = mergeBundle(stored, signer, now);
        const text = encodeCertificates(merged);
        assert.equal(encodeCertificates(mergeBundle(readCertificates(text).certificates, signer, now)), text);
        for (const certificate of unexpired([...stored, signer], now)) assert.ok(merged.includes(certificate));
        assert.ok(merged.every(({ notAfter }) => notAfter > now));
      }),
    );
  });
});
