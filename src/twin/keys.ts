import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { Keys } from '../pki/keys.ts';
import { seededKeys } from '../pki/seeded-keys.ts';
import { signatureSchemeOf } from '../pki/signature.ts';

/**
 * Keys of a seed, cheap: whatever is asked for becomes Ed25519, whose signatures need no randomness. What is verified in a twin is
 * whether a signature was made by a key, not how long anybody would need to forge it.
 */
export function twinKeys(seed: string): Keys {
  const { random } = seededKeys(seed);
  return {
    generate: async () => ed25519(random(SEED_BYTES)),
    sign: async (key, data) => sign(signatureSchemeOf(key).digest, data, key),
    random,
  };
}

const SEED_BYTES = 32;
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

function ed25519(seed: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' });
}
