import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { ISSUER, NOT_BEFORE, REFRESH_PERIOD } from '../../certrotation/annotations.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { formatGoDuration, parseGoDuration } from '../../kube/duration.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { readCertificates } from '../../pki/pem.ts';
import { isRevisionCopy } from '../inventory/certificates.ts';
import { chainOfTarget } from '../inventory/known-chains.ts';

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
  const isSigner = certificate.isCA && certificate.keyUsages.includes('keyCertSign');
  const isSelfIssued = certificate.issuer.der.equals(certificate.subject.der);
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

/**
 * Why a leaf should wait: its signer may not have reached everybody who verifies. The rule is the one scheduled leaves follow, a tenth
 * of the refresh time (spec 10, T-8; spec 70, 9.2).
 */
export function gateOf(secret: Secret, secrets: readonly Secret[], dayMs: number, now: Date): string | undefined {
  const known = chainOfTarget(secret);
  const own = parseGoDuration(annotationsOf(secret)[REFRESH_PERIOD] ?? '');
  const refreshMs = own ?? (known === undefined ? undefined : known.target.refreshDays * dayMs);
  const issuer = annotationsOf(secret)[ISSUER] ?? '';
  const [, namespace, name] = /^([^_]+)_(.+)@\d+$/.exec(issuer) ?? [];
  const place = known?.signer ?? (namespace && name ? { namespace, name } : undefined);
  const signer = secrets.find(
    ({ metadata }) => place !== undefined && metadata?.namespace === place.namespace && metadata.name === place.name,
  );
  const notBefore = signer && parseRfc3339(annotationsOf(signer)[NOT_BEFORE] ?? '');
  if (refreshMs === undefined || notBefore === undefined) return undefined;
  const openAt = new Date(floorToMs(notBefore).getTime() + refreshMs / 10);
  if (openAt <= now) return undefined;
  const age = formatGoDuration(Math.floor((now.getTime() - floorToMs(notBefore).getTime()) / 1000) * 1000);
  return `its signer ${place?.namespace}/${place?.name} is only ${age} old and may not have reached every verifier before ${openAt.toISOString()}`;
}

function no(because: string): Verdict {
  return { act: false, because };
}
