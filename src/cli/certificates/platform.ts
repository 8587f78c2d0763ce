import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { ISSUER, NOT_BEFORE } from '../../certrotation/annotations.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { isRevisionCopy } from '../../inventory/certificates.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { readCertificates } from '../../pki/pem.ts';
import type { ObjectRef } from '../../trust/object.ts';

/** Whether a verb acts on a Secret, and why not. */
export type Verdict =
  | { readonly act: true }
  | { readonly act: false; readonly because: string }
  /** Something about the object is broken; the others are still visited. */
  | { readonly act: 'error'; readonly because: string };

/** Leaves and top-level signers as `oc adm ocp-certificates` knows them: the first certificate decides (spec 70, 1.2). */
export function platformVerdict(secret: Secret, wanted: 'leaf' | 'top-level', validBefore: Date | undefined): Verdict {
  const annotations = annotationsOf(secret);
  if (!annotations[ISSUER] || !annotations[NOT_BEFORE]) return no('it is no platform certificate');
  if (isRevisionCopy(secret)) return no('it is the copy of a revision');
  let certificate: Certificate | undefined;
  try {
    [certificate] = readCertificates(dataText(secret, TLS_CERT) ?? '').certificates;
  } catch (error) {
    return { act: 'error', because: (error as Error).message };
  }
  if (certificate === undefined) return { act: 'error', because: 'it holds no certificate' };
  const isSigner = certificate.keyUsages.includes('keyCertSign');
  const isSelfIssued = certificate.issuer.commonName === certificate.subject.commonName;
  if (wanted === 'leaf' && isSigner) return no('it is a signer');
  if (wanted === 'leaf' && isSelfIssued) return no('it is signed by itself');
  if (wanted === 'top-level' && !isSigner) return no('it is no signer');
  if (wanted === 'top-level' && !isSelfIssued) return no('it is an intermediate signer');
  if (validBefore === undefined) return { act: true };
  const notBefore = parseRfc3339(annotations[NOT_BEFORE] ?? '');
  if (notBefore === undefined)
    return { act: 'error', because: `${NOT_BEFORE} is no time: "${annotations[NOT_BEFORE]}"` };
  if (floorToMs(notBefore) > validBefore) return no(`it is newer: valid since ${floorToMs(notBefore).toISOString()}`);
  return { act: true };
}

function no(because: string): Verdict {
  return { act: false, because };
}

export function refOf({ metadata }: Secret): ObjectRef {
  return { kind: 'Secret', namespace: metadata?.namespace ?? '', name: metadata?.name ?? '' };
}
