import type { SignerName } from '../chains.ts';
import { PKI_NAMESPACE, ROTUNDA_NAMESPACE } from '../names.ts';

/** On the Secret of a signer: somebody wants the CAs before it out of all files, and when (KA-11). */
export const RETIRE = 'rotunda.dev/hand-over-retire';
/** On the same Secret: the tokens, by id, that were good when it began to sign (KA-11). */
export const JOIN_TOKENS = 'rotunda.dev/join-tokens';
/** On the same Secret: until then a join command may be about that knows none but the CA before it (KA-11). */
export const JOINS_END = 'rotunda.dev/join-commands-end';
/** On `cluster-info`: when its signatures were taken away because they were over another text, and the tokens, by id, whose they were. */
export const UNSIGNED = 'rotunda.dev/unsigned-join-tokens';
/** On the Secret of a signer: CAs, by their digests, that every pod has been seen to hold, so that nobody is asked about them again (KA-9). */
export const PODS_HOLD = 'rotunda.dev/pods-hold';
/** On a pod, or in its template: what runs there reads its CA again by itself, so that no hand-over waits for it ("true"). */
export const READS_CA_AGAIN = 'rotunda.dev/reads-ca-again';

/** On the record of the cluster: somebody wants other keys for service accounts, and when. The Secret with those keys repeats it. */
export const KEYS_REQUESTED_AT = 'rotunda.dev/service-account-keys-requested-at';
/** On the Secret of those keys: when the last token ends that may have been signed with a key before the one in use. */
export const TOKENS_END = 'rotunda.dev/tokens-end';
/** On the same Secret: since when every token is signed with the key in use. */
export const TOKENS_SINCE = 'rotunda.dev/tokens-since';
/**
 * On the same Secret, the moment of `TOKENS_SINCE`: somebody with the right to read Secrets has looked after it, and none holds a token of a
 * key before. Whatever is made later is of the key in use.
 */
export const NO_SECRET_TOKENS = 'rotunda.dev/no-secret-tokens-before';

/** The Secret of a CA in use; `nextKey` and `previousKey` of a hand-over follow from it. */
export function signerKey(name: SignerName): { readonly namespace: string; readonly name: SignerName } {
  return { namespace: PKI_NAMESPACE, name };
}

/** The ConfigMap with everything that is to be trusted of a family. */
export function bundleKey(name: SignerName): { readonly namespace: string; readonly name: string } {
  return { namespace: PKI_NAMESPACE, name: `${name}-bundle` };
}

/** As whom agents ask. */
export const AGENT_USER = `system:serviceaccount:${ROTUNDA_NAMESPACE}:kubeadm-agent`;

/** Who leads among operators. */
export const OPERATOR_LEASE = { namespace: ROTUNDA_NAMESPACE, name: 'kubeadm-operator-lock' } as const;
