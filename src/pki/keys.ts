import { generateKeyPair, type KeyObject, randomBytes, sign } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { PkiError } from './error.ts';
import { Lane } from './lane.ts';
import { MAX_WAITING_GENERATIONS } from './limits.ts';
import { signatureSchemeOf } from './signature.ts';

export { seededKeys } from './seeded-keys.ts';

export type KeyAlgorithm = 'RSA-2048' | 'RSA-3072' | 'RSA-4096' | 'P-256' | 'P-384' | 'Ed25519';

/** The `Keys` port: where key pairs, signatures and randomness come from. */
export interface Keys {
  /** Makes a private key; `createPublicKey(key)` gives its public half. */
  generate(algorithm: KeyAlgorithm): Promise<KeyObject>;
  /** Signs with the algorithm that the key implies, ECDSA in DER form. */
  sign(key: KeyObject, data: Uint8Array): Promise<Buffer>;
  random(bytes: number): Buffer;
}

/** What clusters may be told to use: every program of a control plane signs and verifies with these, tokens included. */
export const CLUSTER_KEY_ALGORITHMS = ['RSA-2048', 'RSA-3072', 'RSA-4096', 'P-256', 'P-384'] as const;

/** The algorithm of a name, in any case; undefined for one that clusters cannot use. */
export function clusterKeyAlgorithm(name: string): KeyAlgorithm | undefined {
  return CLUSTER_KEY_ALGORITHMS.find(known => known.toLowerCase() === name.toLowerCase());
}

/** Which of our algorithms a key, private or public, is for; undefined for other sizes and curves. */
export function keyAlgorithmOf(key: KeyObject): KeyAlgorithm | undefined {
  const { modulusLength, namedCurve } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'rsa':
      return RSA_BY_BITS.get(modulusLength ?? 0);
    case 'ec':
      return namedCurve === 'prime256v1' ? 'P-256' : namedCurve === 'secp384r1' ? 'P-384' : undefined;
    case 'ed25519':
      return 'Ed25519';
    default:
      return undefined;
  }
}

/** The machine's keys: everything that takes long runs in libuv's thread pool, off the main thread. */
export const systemKeys: Keys = {
  generate: algorithm => generations.run(() => generateKey(algorithm)),
  sign: (key, data) => signAsync(signatureSchemeOf(key).digest, data, key),
  random: randomBytes,
};

const RSA_BY_BITS = new Map<number, KeyAlgorithm>([
  [2048, 'RSA-2048'],
  [3072, 'RSA-3072'],
  [4096, 'RSA-4096'],
]);

const signAsync = promisify<string | null, Uint8Array, KeyObject, Buffer>(sign);
const generateAsync = promisify(generateKeyPair);

async function generateKey(algorithm: KeyAlgorithm): Promise<KeyObject> {
  switch (algorithm) {
    case 'RSA-2048':
    case 'RSA-3072':
    case 'RSA-4096':
      return (await generateAsync('rsa', { modulusLength: Number(algorithm.slice(4)), publicExponent: 65537 }))
        .privateKey;
    case 'P-256':
    case 'P-384':
      return (await generateAsync('ec', { namedCurve: algorithm })).privateKey;
    case 'Ed25519':
      return (await generateAsync('ed25519')).privateKey;
    default:
      throw new PkiError('KEY_UNSUPPORTED', `unknown key algorithm ${JSON.stringify(algorithm)}`);
  }
}

/**
 * More generations at a time than cores only add latency, and taking every pool thread would make signatures, files and
 * name resolution wait behind keys; one thread stays free.
 */
function generationWidth(): number {
  const poolThreads = Number(process.env['UV_THREADPOOL_SIZE']) || 4;
  return Math.max(1, Math.min(availableParallelism(), poolThreads - 1));
}

const generations = new Lane(generationWidth(), MAX_WAITING_GENERATIONS);
