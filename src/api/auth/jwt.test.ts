import assert from 'node:assert/strict';
import { createHmac, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import {
  jsonWebKeySet,
  MAX_TOKEN_LENGTH,
  type SigningKey,
  signingKey,
  signJwt,
  verificationKey,
  verifyJwt,
} from './jwt.ts';

const p256 = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const key = signingKey(p256());
const otherKey = signingKey(p256());
const publicHalf = ({ key: secret }: SigningKey) => verificationKey(secret);

describe('JSON Web Tokens', () => {
  const rsa = signingKey(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey);
  const keys = [publicHalf(key), publicHalf(rsa)];

  for (const signer of [key, rsa]) {
    it(`${signer.algorithm}: what is signed verifies`, () => {
      const answer = verifyJwt(signJwt({ sub: 'a' }, signer), keys);
      assert.deepEqual(answer, { ok: true, claims: { sub: 'a' } });
    });
  }

  it('a token without the name of a key we know is tried with all keys', () => {
    assert.equal(verifyJwt(signJwt({}, { ...key, id: 'old name' }), keys).ok, true);
  });

  const [header, payload, signature] = signJwt({ sub: 'a' }, key).split('.') as [string, string, string];
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const hmac = (text: string) =>
    createHmac('sha256', publicHalf(rsa).key.export({ type: 'spki', format: 'pem' }))
      .update(text)
      .digest('base64url');
  /** Everything about it holds but what it says. */
  const signed = (fields: object, claims: unknown) => {
    const text = `${encode(fields)}.${encode(claims)}`;
    const made = sign('sha256', Buffer.from(text), { key: key.key, dsaEncoding: 'ieee-p1363' });
    return `${text}.${made.toString('base64url')}`;
  };
  const ES256 = { alg: 'ES256' };

  it('who holds the key may write a token by hand', () => {
    assert.deepEqual(verifyJwt(signed(ES256, { sub: 'a' }), keys), { ok: true, claims: { sub: 'a' } });
  });

  const bad: [rule: string, token: string][] = [
    ['empty', ''],
    ['two parts', `${header}.${payload}`],
    ['four parts', `${header}.${payload}.${signature}.x`],
    ['other claims', `${header}.${encode({ sub: 'b' })}.${signature}`],
    ['no signature', `${header}.${payload}.`],
    ['algorithm none', `${encode({ alg: 'none' })}.${payload}.`],
    [
      'our public key as a password',
      `${encode({ alg: 'HS256' })}.${payload}.${hmac(`${encode({ alg: 'HS256' })}.${payload}`)}`,
    ],
    ['critical extension', signed({ ...ES256, crit: ['b64'] }, { sub: 'a' })],
    ['padding', `${header}.${payload}.${signature}=`],
    ['claims are a list', signed(ES256, [])],
    ['claims are a text', signed(ES256, 'sub')],
    ['claims are nothing', signed(ES256, null)],
    ['a key we do not have', signJwt({ sub: 'a' }, otherKey)],
    ['too long', signed(ES256, { sub: 'a'.repeat(MAX_TOKEN_LENGTH) })],
  ];
  for (const [rule, token] of bad) {
    it(`refused: ${rule}`, () => {
      const answer = verifyJwt(token, keys);
      assert.equal(answer.ok, false);
    });
  }

  it('any change of a character breaks it', () => {
    const token = signJwt({ sub: 'a' }, key);
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom('A', 'b', '.', '-'), (at, character) => {
        fc.pre(token[at] !== character);
        assert.equal(verifyJwt(token.slice(0, at) + character + token.slice(at + 1), keys).ok, false);
      }),
      { numRuns: 60 },
    );
  });

  it('only RSA of 2048 bits and P-256 sign tokens', () => {
    assert.throws(() => signingKey(generateKeyPairSync('ed25519').privateKey), TypeError);
    assert.throws(() => signingKey(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey), TypeError);
    assert.throws(() => signingKey(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey), TypeError);
    // It verifies nothing but RSA-PSS, which is another algorithm than the one its size would name.
    assert.throws(() => signingKey(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey), TypeError);
    assert.equal(verificationKey(rsa.key).algorithm, 'RS256');
  });

  it('the key set holds public halves only', () => {
    const [jwk] = jsonWebKeySet([publicHalf(key)]).keys as [Record<string, unknown>];
    assert.deepEqual([jwk.alg, jwk.use, jwk.kid, jwk.kty, 'd' in jwk], ['ES256', 'sig', key.id, 'EC', false]);
  });
});

it('keys read from PEM sign too', () => {
  const pem = p256().export({ type: 'pkcs8', format: 'pem' }).toString();
  const fromPem = signingKey(createPrivateKey(pem));
  assert.equal(verifyJwt(signJwt({}, fromPem), [publicHalf(fromPem)]).ok, true);
});
