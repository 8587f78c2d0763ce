import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { publicKeyFromInfo } from '../pki/certificate.ts';
import { isPkiError } from '../pki/error.ts';
import { readPrivateKey } from '../pki/pem.ts';
import { pemBlocks } from '../pki/pem-block.ts';
import { publicKeyInfoOf } from '../pki/signature.ts';
import { PKI_NAMESPACE } from './names.ts';

/** What the keys of service accounts are called, after their files `sa.key` and `sa.pub` (spec 80, 7). */
export const SERVICE_ACCOUNT = 'sa';
/** Their Secret, once somebody has asked for others: everything about them is in this one object, so that each step is one write. */
export const SERVICE_ACCOUNT_KEYS = { namespace: PKI_NAMESPACE, name: 'service-account-keys' } as const;

/** One generation in that Secret: the private key, and the text of public keys that stands for it in `sa.pub`. */
export interface KeySlot {
  readonly key: string;
  readonly pub: string;
}

/** What is in `sa.key` and `sa.pub` of every control-plane node, or is to be. */
export const CURRENT_SLOT: KeySlot = { key: 'sa.key', pub: 'sa.pub' };
/** What is made known beside it, and signs nothing yet. */
export const NEXT_SLOT: KeySlot = { key: 'next-sa.key', pub: 'next-sa.pub' };
/** What signed before it. */
export const PREVIOUS_SLOT: KeySlot = { key: 'previous-sa.key', pub: 'previous-sa.pub' };
export const KEY_SLOTS: readonly KeySlot[] = [CURRENT_SLOT, NEXT_SLOT, PREVIOUS_SLOT];
/** Public keys of generations before those, whose tokens may be good; none of these signs again. */
export const OLDER_KEYS = 'older-sa.pub';

/** A key by the SHA-256 of its public half (SPKI, DER) in hex: what the `kid` of a token says too, written in another way. */
export function keyDigest(key: KeyObject): string {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return createHash('sha256').update(publicKeyInfoOf(publicKey)).digest('hex');
}

/** The key in a PEM text, by digest; undefined: it is none. */
export function privateKeyDigest(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return keyDigest(readPrivateKey(text));
  } catch (error) {
    if (isPkiError(error)) return undefined;
    throw error;
  }
}

/** The public keys of a PEM text, by digest, in its order. */
export function publicKeyDigests(text: string): string[] {
  return [...pemBlocks(text)].flatMap(block => {
    if (!block.ok || block.type !== 'PUBLIC KEY') return [];
    try {
      return [keyDigest(publicKeyFromInfo(block.bytes))];
    } catch (error) {
      if (isPkiError(error)) return [];
      throw error;
    }
  });
}

/** Texts of public keys as one: each begins on a line of its own, and a text that stands alone stays as it is. */
export function joinedKeys(texts: readonly string[]): string {
  return texts.map((text, i) => (i < texts.length - 1 && !text.endsWith('\n') ? `${text}\n` : text)).join('');
}
