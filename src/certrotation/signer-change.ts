import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import type { Certificate } from '../pki/certificate.ts';
import { verifyChain } from '../pki/chain.ts';
import { readCertificates } from '../pki/pem.ts';
import type { CertCreator } from './creator.ts';
import { regenerate } from './decision.ts';
import { dataText, TLS_CERT } from './secret.ts';

/** Adds the rule the library itself does not have: a target that the current signer did not sign is stale (6.5). */
export function followSigner(creator: CertCreator): CertCreator {
  return {
    ...creator,
    decide: question => {
      const decision = creator.decide(question);
      if (decision.action !== 'keep' || question.secret === undefined) return decision;
      const reason = signerChanged(question.secret, question.signer, question.now);
      return reason === undefined ? decision : regenerate('6.5', reason);
    },
  };
}

/** Why the certificate in the Secret is not one of the current signer's, or undefined. */
export function signerChanged(secret: Secret, signer: readonly Certificate[], now: Date): string | undefined {
  const name = secret.metadata?.name ?? '';
  const text = dataText(secret, TLS_CERT);
  if (text === undefined) return `missing current certificate in secret: ${name}`;
  let chain: Certificate[];
  try {
    chain = readCertificates(text).certificates;
  } catch (error) {
    return `could not parse pem x509 tls.crt in secret ${name}: ${(error as Error).message}`;
  }
  // The first certificate, not the last: equal for chains made here, and right for foreign ones too.
  const [leaf] = chain;
  if (leaf === undefined) return `missing current certificate in secret: ${name}`;
  const { authorityKeyId } = leaf;
  const signerKeyId = signer[0]?.subjectKeyId;
  // An identifier without bytes identifies nothing.
  if (authorityKeyId?.length && signerKeyId?.length) {
    if (authorityKeyId.equals(signerKeyId)) return undefined;
    return `signer subject key for secret ${name} does not match cert authority key anymore`;
  }
  const verdict = verifyChain({ leaf, intermediates: chain.slice(1), roots: signer, now, usage: 'any' });
  return verdict.ok ? undefined : `cert isn't signed by most recent signer anymore: ${verdict.reason}`;
}
