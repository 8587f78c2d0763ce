import { createPublicKey } from 'node:crypto';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { Keys } from '../../pki/keys.ts';
import { encodePrivateKey } from '../../pki/pem.ts';
import { encodePem } from '../../pki/pem-block.ts';
import { OPERAND_NAMESPACE, OPERATOR_NAMESPACE } from '../namespaces.ts';

/** The key pair that will sign bound service-account tokens next. Deleting it is how a person rotates (spec 20, 8.2). */
export const NEXT_SIGNING_KEY = { namespace: OPERATOR_NAMESPACE, name: 'next-bound-service-account-signing-key' };
/** The key pair that signs now. */
export const ACTIVE_SIGNING_KEY = { namespace: OPERAND_NAMESPACE, name: 'bound-service-account-signing-key' };
/** Every public key that ever verified tokens. */
export const PUBLIC_KEYS = { namespace: OPERAND_NAMESPACE, name: 'bound-sa-token-signing-certs' };

export const PRIVATE_KEY = 'service-account.key';
export const PUBLIC_KEY = 'service-account.pub';

/** The bytes are those of PKIX, the label is the one readers have always seen. */
const PUBLIC_LABEL = 'RSA PUBLIC KEY';

/** Whether a new pair has to be made: none is there, or one half is missing. There is no rotation by time. */
export function needsSigningKey(next: Secret | undefined): boolean {
  return !next?.data?.[PRIVATE_KEY] || !next.data[PUBLIC_KEY];
}

export async function newSigningKey(keys: Keys): Promise<Secret> {
  const key = await keys.generate('RSA-2048');
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return {
    metadata: NEXT_SIGNING_KEY,
    type: 'Opaque',
    data: { [PRIVATE_KEY]: base64(encodePrivateKey(key)), [PUBLIC_KEY]: base64(encodePem(PUBLIC_LABEL, publicKey)) },
  };
}

/** The public half as text; undefined when it is missing. */
export function publicKeyOf(secret: Secret | undefined): string | undefined {
  const encoded = secret?.data?.[PUBLIC_KEY];
  return encoded ? Buffer.from(encoded, 'base64').toString('utf8') : undefined;
}

export function holdsPublicKey(configMap: ConfigMap | undefined, publicKey: string): boolean {
  return Object.values(configMap?.data ?? {}).includes(publicKey);
}

/** The public keys with this one among them, under the first free number above their count. None is ever removed. */
export function withPublicKey(
  data: Readonly<Record<string, string>>,
  publicKey: string,
): Readonly<Record<string, string>> {
  if (Object.values(data).includes(publicKey)) return data;
  for (let index = Object.keys(data).length + 1; ; index++) {
    const name = `service-account-${String(index).padStart(3, '0')}.pub`;
    if (!Object.hasOwn(data, name)) return { ...data, [name]: publicKey };
  }
}

export interface PromotionState {
  readonly next: Secret;
  readonly active: Secret | undefined;
  readonly publicKeys: ConfigMap | undefined;
  /** `currentRevision` of every control-plane node. */
  readonly nodeRevisions: readonly number[];
  /** The public keys as they were copied for a revision; undefined when there is no such copy. */
  readonly revisioned: (revision: number) => ConfigMap | undefined;
}

export type Promotion =
  | { readonly action: 'done' }
  /** The private key may sign. */
  | { readonly action: 'promote' }
  /** Some server could not verify its tokens yet. */
  | { readonly action: 'wait'; readonly reason: string }
  | { readonly action: 'fail'; readonly error: string };

/** Whether the next key may become the active one: only when every server that runs can verify its tokens (spec 20, 8.2.4). */
export function decidePromotion({ next, active, publicKeys, nodeRevisions, revisioned }: PromotionState): Promotion {
  const publicKey = publicKeyOf(next);
  if (publicKey === undefined) {
    const { namespace, name } = NEXT_SIGNING_KEY;
    return { action: 'fail', error: `no ${PUBLIC_KEY} in secret ${namespace}/${name}` };
  }
  const isSame = (key: string) => active?.data?.[key] === next.data?.[key];
  if (active !== undefined && isSame(PUBLIC_KEY) && isSame(PRIVATE_KEY)) return { action: 'done' };
  if (!holdsPublicKey(publicKeys, publicKey)) {
    return { action: 'fail', error: 'the public key is not among those that verify tokens yet: not promoted' };
  }
  // Without an active key nothing can be installed at all.
  if (active === undefined) return { action: 'promote' };
  for (const revision of new Set(nodeRevisions)) {
    const copy = revisioned(revision);
    if (copy === undefined) {
      return { action: 'fail', error: `configmap ${PUBLIC_KEYS.name}-${revision} not found: not promoted` };
    }
    if (!holdsPublicKey(copy, publicKey)) {
      return { action: 'wait', reason: `a node runs revision ${revision}, which does not know the public key` };
    }
  }
  return { action: 'promote' };
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}
