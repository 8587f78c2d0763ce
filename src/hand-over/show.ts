import { minutes } from '../kube/duration.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueClient } from '../pki/issue.ts';
import type { Keys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { shakeHands } from '../trust/handshake.ts';
import type { Question } from './ask.ts';

/** `silent`: it could not be asked, which says nothing about what it has loaded. */
export type ShownAnswer =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'silent'; readonly reason: string };

/** Nobody needs it for longer than one question. */
const LIFETIME_MS = minutes(1);
/** Is in no group and has no rights. */
const NOBODY = { name: 'rotunda.dev:receipt', groups: [] };

/**
 * Asks a server whether it has loaded a CA whose name does not tell it from others: a certificate of it, made for this question, is shown
 * and has to be accepted (spec 90, section 3, `asked`). Never rejects.
 */
export async function askByShowing(
  { host, port, serverName = host, timeoutMs }: Question,
  signer: CertificateAndKey,
  { keys, now }: { readonly keys: Keys; readonly now: Date },
): Promise<ShownAnswer> {
  try {
    const made = await issueClient({ signer, keys, now, lifetimeMs: LIFETIME_MS, algorithm: 'P-256', user: NOBODY });
    const pair = { cert: encodeCertificates(made.chain), key: encodePrivateKey(made.key) };
    const outcome = await shakeHands({ host, port, serverName, pair, timeoutMs });
    if (outcome.kind === 'accepted') return outcome;
    if (outcome.kind === 'refused' && outcome.by === 'server') return { kind: 'refused' };
    return { kind: 'silent', reason: outcome.reason };
  } catch (error) {
    return { kind: 'silent', reason: (error as Error).message };
  }
}
