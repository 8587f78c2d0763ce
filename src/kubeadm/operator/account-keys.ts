import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { annotationsOf, dataText } from '../../certrotation/secret.ts';
import { SHOWN } from '../../hand-over/names.ts';
import {
  CURRENT_SLOT,
  joinedKeys,
  type KeySlot,
  NEXT_SLOT,
  OLDER_KEYS,
  PREVIOUS_SLOT,
  privateKeyDigest,
  publicKeyDigests,
  SERVICE_ACCOUNT_KEYS,
} from '../service-account-keys.ts';
import type { ServiceAccountGoal } from './cluster.ts';

/** The keys of service accounts as their Secret holds them. */
export interface AccountKeys {
  readonly secret: Secret;
  readonly current: AccountKey;
  readonly next: AccountKey | undefined;
  readonly previous: AccountKey | undefined;
  /** Public keys from before the previous one. */
  readonly older: string | undefined;
  /** Every control-plane node has been seen to sign with the one in use. */
  readonly isShown: boolean;
}

export interface AccountKey {
  /** As `keyDigest` has it. */
  readonly digest: string;
  /** The public half as it stands in files; it may hold more than that. */
  readonly text: string;
}

/** What is there of them: `unusable`: there is a Secret, and no pair of keys in it. */
export function accountKeysIn(secrets: readonly Secret[]): AccountKeys | 'unusable' | undefined {
  const secret = secrets.find(({ metadata }) => metadata?.name === SERVICE_ACCOUNT_KEYS.name);
  if (secret === undefined) return undefined;
  const current = keyIn(secret, CURRENT_SLOT);
  if (current === undefined) return 'unusable';
  return {
    secret,
    current,
    next: keyIn(secret, NEXT_SLOT),
    previous: keyIn(secret, PREVIOUS_SLOT),
    older: dataText(secret, OLDER_KEYS),
    isShown: annotationsOf(secret)[SHOWN] === current.digest,
  };
}

function keyIn(secret: Secret, { key, pub }: KeySlot): AccountKey | undefined {
  const digest = privateKeyDigest(dataText(secret, key));
  const text = dataText(secret, pub);
  return digest === undefined || text === undefined || !publicKeyDigests(text).includes(digest)
    ? undefined
    : { digest, text };
}

/** What every control-plane node is to have: the one in use signs, and whatever signed before or may sign next is accepted. */
export function accountGoal({ current, next, previous, older }: AccountKeys): ServiceAccountGoal {
  const texts = [current.text, next?.text, previous?.text, older].filter(text => text !== undefined);
  const publicKeys = joinedKeys([...new Set(texts)]);
  return { publicKeys, signs: current.digest, accepts: publicKeyDigests(publicKeys) };
}

/** They are in the middle of a hand-over, so that no CA begins one (HO-5). */
export function isHandingOverKeys(keys: AccountKeys | 'unusable' | undefined): boolean {
  if (keys === undefined || keys === 'unusable') return false;
  return keys.next !== undefined || (keys.previous !== undefined && !keys.isShown);
}
