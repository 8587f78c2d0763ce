import { createECDH, createHash, createHmac, createPrivateKey, type KeyObject, sign as signSync } from 'node:crypto';
import { integer, sequence } from './der-write.ts';
import { PkiError } from './error.ts';
import type { KeyAlgorithm, Keys } from './keys.ts';
import { signatureSchemeOf } from './signature.ts';

/**
 * Keys for tests and simulation, never for production: the same seed gives the same keys, signatures and random bytes in
 * the same order, and nothing leaves the main thread. ECDSA nonces are derived instead of random, so signatures repeat too.
 * RSA keys cannot be generated from a stream through `node:crypto`: `generate('RSA-...')` rejects with KEY_UNSUPPORTED.
 */
export function seededKeys(seed: string): Keys {
  const stream = { keys: seededStream(seed, 'keys'), random: seededStream(seed, 'random') };
  return {
    generate: async algorithm => generate(algorithm, stream.keys),
    sign: async (key, data) => (key.asymmetricKeyType === 'ec' ? signEcdsa(key, data) : signOther(key, data)),
    random: stream.random,
  };
}

/** An endless byte stream; `purpose` keeps streams apart so that drawing from one does not move another. */
function seededStream(seed: string, purpose: string): (bytes: number) => Buffer {
  let block = 0;
  let pool = Buffer.alloc(0);
  return bytes => {
    while (pool.length < bytes) {
      const next = createHmac('sha512', seed).update(`${purpose}/${block++}`).digest();
      pool = Buffer.concat([pool, next]);
    }
    const taken = pool.subarray(0, bytes);
    pool = pool.subarray(bytes);
    return Buffer.from(taken);
  };
}

function generate(algorithm: KeyAlgorithm, stream: (bytes: number) => Buffer): KeyObject {
  if (algorithm === 'P-256' || algorithm === 'P-384') return ecKey(algorithm, stream);
  if (algorithm === 'Ed25519') {
    const key = Buffer.concat([ED25519_PKCS8_PREFIX, stream(32)]);
    return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  }
  throw new PkiError('KEY_UNSUPPORTED', `seeded keys are P-256, P-384 or Ed25519, not ${algorithm}`);
}

const ED25519_PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

interface Curve {
  readonly openssl: string;
  readonly bytes: number;
  readonly order: bigint;
}

const CURVES: Record<'P-256' | 'P-384', Curve> = {
  'P-256': {
    openssl: 'prime256v1',
    bytes: 32,
    order: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  },
  'P-384': {
    openssl: 'secp384r1',
    bytes: 48,
    order: 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  },
};

function ecKey(name: 'P-256' | 'P-384', stream: (bytes: number) => Buffer): KeyObject {
  const curve = CURVES[name];
  const scalar = toBytes(inRange(stream(curve.bytes + 8), curve), curve);
  const point = multiplyBasePoint(scalar, curve);
  const key = {
    kty: 'EC',
    crv: name,
    d: scalar.toString('base64url'),
    x: point.x.toString('base64url'),
    y: point.y.toString('base64url'),
  };
  return createPrivateKey({ key, format: 'jwk' });
}

/** ECDSA with a nonce that depends on nothing but key and message. */
function signEcdsa(key: KeyObject, data: Uint8Array): Buffer {
  const { crv, d = '' } = key.export({ format: 'jwk' });
  if (crv !== 'P-256' && crv !== 'P-384') {
    throw new PkiError('KEY_UNSUPPORTED', `seeded ECDSA signatures are made with P-256 or P-384, not ${crv}`);
  }
  const curve = CURVES[crv];
  const scalar = Buffer.from(d, 'base64url');
  // The digest is exactly as long as the order of the curve, for both curves.
  const digest = createHash(signatureSchemeOf(key).digest ?? '')
    .update(data)
    .digest();
  const nonce = inRange(createHmac('sha512', scalar).update(digest).digest(), curve);
  const r = toNumber(multiplyBasePoint(toBytes(nonce, curve), curve).x) % curve.order;
  const s = (inverse(nonce, curve.order) * (toNumber(digest) + r * toNumber(scalar))) % curve.order;
  return sequence(integer(r), integer(s));
}

function signOther(key: KeyObject, data: Uint8Array): Buffer {
  return signSync(signatureSchemeOf(key).digest, data, key);
}

/** A number from 1 to order - 1. The bytes are longer than the order, so that no value is noticeably favoured. */
function inRange(bytes: Buffer, curve: Curve): bigint {
  return (toNumber(bytes) % (curve.order - 1n)) + 1n;
}

function multiplyBasePoint(scalar: Buffer, curve: Curve): { x: Buffer; y: Buffer } {
  const ecdh = createECDH(curve.openssl);
  ecdh.setPrivateKey(scalar);
  const point = ecdh.getPublicKey();
  return { x: point.subarray(1, 1 + curve.bytes), y: point.subarray(1 + curve.bytes) };
}

const toNumber = (bytes: Buffer): bigint => BigInt(`0x${bytes.toString('hex')}`);

const toBytes = (value: bigint, curve: Curve): Buffer =>
  Buffer.from(value.toString(16).padStart(curve.bytes * 2, '0'), 'hex');

/** The inverse modulo a prime, by Euclid's algorithm. */
function inverse(value: bigint, modulus: bigint): bigint {
  let [r, nextR] = [modulus, value % modulus];
  let [t, nextT] = [0n, 1n];
  while (nextR !== 0n) {
    const quotient = r / nextR;
    [r, nextR] = [nextR, r - quotient * nextR];
    [t, nextT] = [nextT, t - quotient * nextT];
  }
  return t < 0n ? t + modulus : t;
}
