import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { describe, it } from 'node:test';
import { isPkiError } from './error.ts';
import { keyAlgorithmOf, seededKeys, systemKeys } from './keys.ts';
import { publicKeyInfoOf, signatureSchemeOf } from './signature.ts';

const DATA = Buffer.from('to be signed');
const ALGORITHMS = ['P-256', 'P-384', 'Ed25519'] as const;

describe('system keys', () => {
  for (const algorithm of ['RSA-2048', ...ALGORITHMS] as const) {
    it(`${algorithm}: generates, signs, verifies`, async () => {
      const key = await systemKeys.generate(algorithm);
      assert.equal(key.type, 'private');
      assert.equal(keyAlgorithmOf(key), algorithm);
      assert.equal(keyAlgorithmOf(createPublicKey(key)), algorithm);
      const signature = await systemKeys.sign(key, DATA);
      assert.ok(verify(signatureSchemeOf(key).digest, DATA, createPublicKey(key), signature));
    });
  }
  it('the event loop turns while an RSA key is made', async () => {
    let turns = 0;
    const count = () => {
      turns++;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    await systemKeys.generate('RSA-2048');
    clearImmediate(timer);
    assert.ok(turns > 1, `${turns} turns`);
  });
  it('a failed generation frees its place', async () => {
    const wrong = Array.from({ length: 10 }, () => systemKeys.generate(JSON.parse('"DSA"')));
    for (const generation of wrong) await assert.rejects(generation, error => isPkiError(error, 'KEY_UNSUPPORTED'));
    assert.equal(keyAlgorithmOf(await systemKeys.generate('Ed25519')), 'Ed25519');
  });
  it('random bytes', () => {
    assert.equal(systemKeys.random(8).length, 8);
    assert.notDeepEqual(systemKeys.random(16), systemKeys.random(16));
  });
});

describe('seeded keys', () => {
  for (const algorithm of ALGORITHMS) {
    it(`${algorithm}: the same seed gives the same keys and signatures, which verify`, async () => {
      const [a, b, other] = [seededKeys('seed'), seededKeys('seed'), seededKeys('other')];
      const [keyA, keyB] = [await a.generate(algorithm), await b.generate(algorithm)];
      assert.ok(keyA.equals(keyB));
      assert.ok(!keyA.equals(await other.generate(algorithm)));
      assert.ok(!keyA.equals(await a.generate(algorithm)));
      assert.equal(keyAlgorithmOf(keyA), algorithm);
      const signature = await a.sign(keyA, DATA);
      assert.deepEqual(await b.sign(keyB, DATA), signature);
      assert.ok(verify(signatureSchemeOf(keyA).digest, DATA, createPublicKey(keyA), signature));
    });
  }
  it('many ECDSA signatures verify, whatever the sign of their numbers', async () => {
    const keys = seededKeys('many');
    for (const algorithm of ['P-256', 'P-384'] as const) {
      const key = await keys.generate(algorithm);
      for (let i = 0; i < 50; i++) {
        const data = Buffer.from(`message ${i}`);
        assert.ok(verify(signatureSchemeOf(key).digest, data, createPublicKey(key), await keys.sign(key, data)));
      }
    }
  });
  it('random bytes do not depend on the keys drawn before', async () => {
    const [a, b] = [seededKeys('seed'), seededKeys('seed')];
    await a.generate('P-256');
    assert.deepEqual(a.random(100), Buffer.concat([b.random(30), b.random(70)]));
  });
  it('RSA: signs, but does not generate', async () => {
    const keys = seededKeys('seed');
    await assert.rejects(keys.generate('RSA-2048'), error => isPkiError(error, 'KEY_UNSUPPORTED'));
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
    assert.ok(verify('sha256', DATA, publicKey, await keys.sign(privateKey, DATA)));
  });
});

describe('signature schemes and public keys', () => {
  it('every curve by its own digest; unknown kinds are refused', () => {
    const ec = (namedCurve: string) => signatureSchemeOf(generateKeyPairSync('ec', { namedCurve }).publicKey).name;
    assert.deepEqual(['P-256', 'P-384', 'P-521'].map(ec), [
      'ecdsa-with-SHA256',
      'ecdsa-with-SHA384',
      'ecdsa-with-SHA512',
    ]);
    assert.throws(
      () => ec('secp256k1'),
      error => isPkiError(error, 'KEY_UNSUPPORTED'),
    );
    assert.throws(
      () => signatureSchemeOf(generateKeyPairSync('x25519').publicKey),
      error => isPkiError(error, 'KEY_UNSUPPORTED'),
    );
    assert.equal(keyAlgorithmOf(generateKeyPairSync('ec', { namedCurve: 'P-521' }).publicKey), undefined);
    assert.equal(keyAlgorithmOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey), undefined);
    assert.equal(keyAlgorithmOf(generateKeyPairSync('x25519').publicKey), undefined);
  });
  it('public key info is what OpenSSL writes', () => {
    const pairs = [
      generateKeyPairSync('rsa', { modulusLength: 1024 }),
      generateKeyPairSync('ed25519'),
      ...['P-256', 'P-384', 'P-521'].map(namedCurve => generateKeyPairSync('ec', { namedCurve })),
    ];
    for (const { privateKey, publicKey } of pairs) {
      const expected = publicKey.export({ format: 'der', type: 'spki' });
      assert.deepEqual(publicKeyInfoOf(publicKey), expected);
      assert.deepEqual(publicKeyInfoOf(privateKey), expected);
    }
  });
});
