import { createHash } from 'node:crypto';
import type { Clock } from '../../kube/clock.ts';
import { type Certificate, parseCertificate } from '../../pki/certificate.ts';
import { verifyChain } from '../../pki/chain.ts';
import { authenticated, type User } from './user.ts';

export type CertificateAnswer =
  | { readonly ok: true; readonly user: User }
  | { readonly ok: false; readonly why: string };

export interface CertificateAuthenticator {
  /** `chain` is what the TLS peer sent, leaf first, DER; nothing about it has been verified yet. */
  authenticateChain(chain: readonly Buffer[]): CertificateAnswer;
}

export interface CertificateAuthenticatorOptions {
  /** The CAs that client certificates are verified with. Return the same array until they change. */
  readonly clientCas: () => readonly Certificate[];
  readonly clock: Clock;
}

const MAX_CHAIN_LENGTH = 10;
/** Verified chains that are remembered: every request on a connection brings the same one. */
const MAX_REMEMBERED_CHAINS = 1000;

/** Takes the user from a client certificate: the common name is the name, the organizations are the groups. */
export function createCertificateAuthenticator({
  clientCas,
  clock,
}: CertificateAuthenticatorOptions): CertificateAuthenticator {
  let remembered = new Map<string, { user: User; from: number; until: number }>();
  let rememberedFor: readonly Certificate[] | undefined;
  return {
    authenticateChain(chain) {
      if (chain.length === 0) return refuse('the client sent no certificate');
      if (chain.length > MAX_CHAIN_LENGTH) return refuse(`the client sent more than ${MAX_CHAIN_LENGTH} certificates`);
      const roots = clientCas();
      if (roots !== rememberedFor) {
        remembered = new Map();
        rememberedFor = roots;
      }
      const now = clock.now();
      const id = fingerprint(chain);
      const known = remembered.get(id);
      if (known !== undefined && known.from <= now.getTime() && now.getTime() <= known.until)
        return { ok: true, user: known.user };
      const answer = verify(chain, roots, now);
      if (!answer.ok) return answer;
      if (remembered.size >= MAX_REMEMBERED_CHAINS) remembered.delete(remembered.keys().next().value as string);
      remembered.set(id, answer);
      return { ok: true, user: answer.user };
    },
  };
}

type Verified = { ok: true; user: User; from: number; until: number } | { ok: false; why: string };

function verify(chain: readonly Buffer[], roots: readonly Certificate[], now: Date): Verified {
  let certificates: Certificate[];
  try {
    certificates = chain.map(parseCertificate);
  } catch (error) {
    return refuse(
      `the client sent something that is not a certificate: ${error instanceof Error ? error.message : ''}`,
    );
  }
  const [leaf, ...intermediates] = certificates as [Certificate, ...Certificate[]];
  const answer = verifyChain({ leaf, intermediates, roots, now, usage: 'clientAuth' });
  if (!answer.ok) return refuse(`the client certificate does not verify: ${answer.reason}`);
  const { commonName, organizations } = leaf.subject;
  if (commonName === '') return refuse('the client certificate has no common name');
  const from = Math.max(...answer.chain.map(certificate => certificate.notBefore.getTime()));
  const until = Math.min(...answer.chain.map(certificate => certificate.notAfter.getTime()));
  return {
    ok: true,
    user: authenticated({ name: commonName, uid: '', groups: organizations, extra: {} }),
    from,
    until,
  };
}

function fingerprint(chain: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const der of chain) hash.update(`${der.length}:`).update(der);
  return hash.digest('base64');
}

function refuse(why: string): { ok: false; why: string } {
  return { ok: false, why };
}
