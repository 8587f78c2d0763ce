import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { ISSUER, NOT_BEFORE, REFRESH_PERIOD } from '../../certrotation/annotations.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { decideSignerByAnnotations } from '../../certrotation/signer.ts';
import { days, formatGoDuration, parseGoDuration } from '../../kube/duration.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { ObjectName } from '../../kube-apiserver/chains.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { readCertificates } from '../../pki/pem.ts';
import { isRevisionCopy } from '../inventory/certificates.ts';
import { chainOfTarget, isNamed, type KnownChain } from '../inventory/known-chains.ts';
import { certificatesIn } from '../inventory/relations.ts';

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

/**
 * Why a leaf should wait: its signer may not have reached everybody who verifies, or is about to be replaced by one that nobody has. The
 * age is the one scheduled leaves wait for, a tenth of the refresh time (spec 10, T-8; spec 70, 9.2).
 */
export function gateOf(secret: Secret, secrets: readonly Secret[], dayMs: number, now: Date): string | undefined {
  const known = chainOfTarget(secret);
  const place = known?.signer ?? signerNamed(annotationsOf(secret)[ISSUER] ?? '');
  const signer = place && secrets.find(candidate => isNamed(candidate, place));
  if (place === undefined || signer === undefined) return undefined;
  const name = `${place.namespace}/${place.name}`;
  // The signer that etcd's leaves are signed with changes by a hand-over, once everybody has the next one.
  const due = known?.operator === 'etcd' ? undefined : whySignerIsDue(signer, known, dayMs, now);
  if (due !== undefined) return `its signer ${name} is about to be replaced (${due}) by one that no verifier has yet`;
  const refreshMs = refreshOf(secret) ?? (known && known.target.refreshDays * dayMs);
  const notBefore = parseRfc3339(annotationsOf(signer)[NOT_BEFORE] ?? '');
  if (refreshMs === undefined || notBefore === undefined) return undefined;
  const openAt = new Date(floorToMs(notBefore).getTime() + refreshMs / 10);
  if (openAt <= now) return undefined;
  const age = formatGoDuration(Math.floor((now.getTime() - floorToMs(notBefore).getTime()) / 1000) * 1000);
  return `its signer ${name} is only ${age} old and may not have reached every verifier before ${openAt.toISOString()}`;
}

/** The common name of a signer names its Secret: `<namespace>_<name>@<seconds>`. */
function signerNamed(issuer: string): ObjectName | undefined {
  const [, namespace, name] = /^([^_]+)_(.+)@\d+$/.exec(issuer) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

/** Why the next pass over a signer makes a new one, which the leaf would then get. Looks at no key: there may be none to look at. */
function whySignerIsDue(signer: Secret, known: KnownChain | undefined, dayMs: number, now: Date): string | undefined {
  const refreshMs = refreshOf(signer) ?? (known && known.signer.refreshDays * dayMs) ?? NO_REFRESH_MS;
  const decision = decideSignerByAnnotations(annotationsOf(signer), { refreshMs, validityMs: refreshMs }, now);
  if (decision.action === 'regenerate') return decision.reason;
  const [certificate] = certificatesIn(dataText(signer, TLS_CERT));
  return certificate !== undefined && now > certificate.notAfter ? 'already expired' : undefined;
}

/** Where nothing says a refresh time, 80 % of the validity comes first. */
const NO_REFRESH_MS = days(36_500);

function refreshOf(secret: Secret): number | undefined {
  return parseGoDuration(annotationsOf(secret)[REFRESH_PERIOD] ?? '');
}

function no(because: string): Verdict {
  return { act: false, because };
}
