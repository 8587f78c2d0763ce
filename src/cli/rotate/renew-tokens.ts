import { annotationsOf } from '../../certrotation/secret.ts';
import { type Clock, sleep, systemClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { keyOf, SECRETS } from '../../kube/resource.ts';
import { accountGoal, accountKeysIn } from '../../kubeadm/operator/account-keys.ts';
import { NO_SECRET_TOKENS, TOKENS_SINCE } from '../../kubeadm/operator/names.ts';
import { publicKeyDigests, SERVICE_ACCOUNT_KEYS } from '../../kubeadm/service-account-keys.ts';
import { type SecretToken, secretTokens, TOKEN_FIELD, TOKEN_SECRET } from './secret-tokens.ts';

export interface RenewOptions {
  readonly kube: Kube;
  readonly clock?: Clock | undefined;
  readonly signal?: AbortSignal | undefined;
  print(line: string): void;
}

const LOOK_AGAIN_MS = seconds(1);
const PATIENCE_MS = seconds(120);

/**
 * Has the tokens in Secrets that are of a key before signed anew, one after the other: where a token is missing kube-controller-manager puts
 * one in. The next one is taken away only when this one is there. Cut off at any moment, the next run goes on with those that are left.
 */
export async function renewSecretTokens(options: RenewOptions): Promise<void> {
  const { kube, print } = options;
  for (const token of (await lookAtTokens(kube)).older) {
    if (token.isImmutable)
      throw new Error(
        `Secret ${token.name} is immutable, and its token is of a key before: delete it, make another one, and run this again`,
      );
    const { uid, resourceVersion } = token.secret.metadata ?? {};
    const body = { metadata: { uid, resourceVersion }, data: { [TOKEN_FIELD]: null } };
    await kube.patch(SECRETS, keyOf(token.secret), { type: 'merge', body }, { fieldManager: 'rotunda-rotate' });
    await untilFilled(token, options);
    print(`Secret ${token.name} has another token`);
  }
}

async function untilFilled({ secret, name }: SecretToken, options: RenewOptions): Promise<void> {
  const { kube, clock = systemClock, signal } = options;
  const endMs = clock.now().getTime() + PATIENCE_MS;
  for (;;) {
    const found = await getIfPresent(kube, SECRETS, keyOf(secret), { signal });
    // Without its service account it is deleted, and nobody holds a token of it.
    if (found === undefined || found.data?.[TOKEN_FIELD]) return;
    if (clock.now().getTime() > endMs)
      throw new Error(
        `kube-controller-manager has not put another token into Secret ${name}: see its log; no other Secret was changed since, and no key has been retired`,
      );
    await sleep(clock, LOOK_AGAIN_MS, signal);
  }
}

export interface TokenLook {
  /** Tokens of keys before the one in use. */
  readonly older: readonly SecretToken[];
  /** What tells the operator that there are none: notes for the Secret of the keys. */
  readonly notes: Readonly<Record<string, string>>;
}

/** Looks into all Secrets with tokens, which only a person may: what the operator is told is whether there are any. */
export async function lookAtTokens(kube: Kube): Promise<TokenLook> {
  // First: whatever is made after it is of the key in use.
  const keys = accountKeysIn([await kube.get(SECRETS, SERVICE_ACCOUNT_KEYS)]);
  if (keys === undefined || keys === 'unusable')
    throw new Error('there is no pair of keys of service accounts to compare with');
  const { items } = await listAll(kube, SECRETS, { fieldSelector: `type=${TOKEN_SECRET}` });
  const current = keys.current.digest;
  const known = publicKeyDigests(accountGoal(keys).publicKeys).filter(digest => digest !== current);
  const older = secretTokens(items, { current, older: known }).filter(token => token.is === 'older');
  const since = keys.isShown ? annotationsOf(keys.secret)[TOKENS_SINCE] : undefined;
  return { older, notes: older.length > 0 || since === undefined ? {} : { [NO_SECRET_TOKENS]: since } };
}
