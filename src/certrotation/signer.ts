import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { type CertificateAndKey, requireCA } from '../pki/authority.ts';
import type { Certificate } from '../pki/certificate.ts';
import { issueSigner } from '../pki/issue.ts';
import { certificatesIn } from '../pki/pem.ts';
import { type Annotations, NAME_FREE_AT } from './annotations.ts';
import { type RotationPolicy, requireValidPolicy, type SignerConfig } from './config.ts';
import {
  type Decision,
  decideByDeadlines,
  expiry,
  isRequest,
  latestPossibleTime,
  type Regenerate,
  readValidity,
  refreshTime,
  regenerate,
} from './decision.ts';
import { decidePrepared, prepareSecret, type Rotation } from './ensure.ts';
import { storeSecret } from './recreate.ts';
import {
  annotationsOf,
  DEFAULT_KEY_ALGORITHM,
  dataText,
  loadSecret,
  TLS_CERT,
  withAnnotations,
  withCertificate,
} from './secret.ts';

export type SignerResult =
  | {
      readonly outcome: 'ready';
      readonly signer: CertificateAndKey;
      readonly regenerated: boolean;
      readonly decision: Decision;
    }
  /** Somebody else wrote first: stop here and ask again in a moment (W-2). */
  | { readonly outcome: 'lost' };

/** Decides about a signer Secret (undefined: it does not exist), its content included. */
export function decideSigner(secret: Secret | undefined, policy: RotationPolicy, now: Date): Decision {
  const decision = decideSignerByAnnotations(secret && annotationsOf(secret), policy, now);
  if (secret !== undefined && policy.refreshOnlyWhenExpired && isRequest(decision))
    return keepUsable(secret, decision, now);
  if (decision.action !== 'keep' || secret === undefined) return decision;
  try {
    const signer = loadSecret(secret);
    requireCA(signer);
    const notAfter = signer.chain[0]?.notAfter as Date;
    // Annotations that promise more than the certificate holds would make us sign with an expired CA.
    if (now > notAfter) return regenerate('X-1', 'already expired');
    if (notAfter >= decision.until) return decision;
    return { ...decision, until: new Date(notAfter.getTime() + 1), nextRule: 'X-1', nextReason: 'already expired' };
  } catch (error) {
    // A new CA would hide the corruption: no write, Degraded until an administrator acts (4.5).
    return { action: 'fail', rule: '4.5', error: (error as Error).message };
  }
}

/**
 * In recovery, dates that cannot be read are somebody's request for a new certificate, and no business of recovery as long as the
 * certificate itself is good: who answers requests may have to wait for others (spec 90, HO-2).
 */
export function keepUsable(secret: Secret, otherwise: Regenerate, now: Date): Decision {
  try {
    const notAfter = loadSecret(secret).chain[0]?.notAfter as Date;
    if (now > notAfter) return otherwise;
    return { action: 'keep', until: new Date(notAfter.getTime() + 1), nextRule: 'X-1', nextReason: 'already expired' };
  } catch {
    return otherwise;
  }
}

/** The rules S-1 to S-6, which look at the annotations only. */
export function decideSignerByAnnotations(
  annotations: Annotations | undefined,
  policy: RotationPolicy,
  now: Date,
): Decision {
  const validity = readValidity(annotations);
  if ('action' in validity) return validity;
  const expired = expiry('S-2', validity);
  if (policy.refreshOnlyWhenExpired) return decideByDeadlines([expired], now);
  return decideByDeadlines(
    [expired, latestPossibleTime('S-4', validity), refreshTime('S-5', validity, policy.refreshMs)],
    now,
  );
}

/** What a signer becomes, where somebody else than the rules has decided that. */
export interface SignerChoice {
  /** The pair it gets; `keep`: the one it has, although it is due. */
  readonly pair: CertificateAndKey | 'keep';
  /** Noted on it together with the pair; undefined takes a note away. */
  readonly annotations?: Readonly<Record<string, string | undefined>> | undefined;
  /** The Secret that this was chosen for, undefined where there was none: with another one in its place by now nothing is written (W-1). */
  readonly seen?: { readonly secret: Secret | undefined } | undefined;
}

/** The other CAs of a family, whose names a new one must not have; read when there is to be a new one. */
export type OthersOfFamily = () => Promise<readonly Certificate[]>;

/** Makes sure of the signer (spec 10, 7.1). Throws when the stored one cannot be used. */
export async function ensureSigner(
  config: SignerConfig,
  rotation: Rotation,
  choice?: SignerChoice,
  others: OthersOfFamily = async () => [],
): Promise<SignerResult> {
  requireValidPolicy(config);
  const now = rotation.clock.now();
  const prepared = await prepareSecret(config, rotation);
  if (prepared === undefined || !isAsSeen(prepared.before, choice)) return { outcome: 'lost' };
  const byRules = decidePrepared(prepared, decideSigner(prepared.before, config, now));
  const decision = choice === undefined ? byRules : decideByChoice(byRules, choice, now);
  let wanted = prepared.secret;
  if (decision.action === 'regenerate') {
    const make = async () =>
      newSigner(config, rotation, decision.reason, { before: prepared.before, others: await others() });
    const pair = typeof choice?.pair === 'object' ? choice.pair : await make();
    wanted = withCertificate(wanted, pair, 'signer', config.refreshMs);
    if (choice?.annotations !== undefined) wanted = withAnnotations(wanted, choice.annotations);
  }
  // One that cannot be used is not touched for its metadata (4.5), only for its type (Y-1); loading it says why.
  const untouched = decision.action === 'fail' && prepared.before?.type === wanted.type;
  const stored = untouched ? prepared.before : await storeSecret(prepared.before, wanted, config, rotation);
  if (stored === undefined) return { outcome: 'lost' };
  const signer = loadSecret(stored);
  requireCA(signer);
  const regenerated = decision.action === 'regenerate';
  return {
    outcome: 'ready',
    signer,
    regenerated,
    decision: regenerated ? decideSigner(stored, config, now) : decision,
  };
}

function isAsSeen(before: Secret | undefined, choice: SignerChoice | undefined): boolean {
  if (choice?.seen === undefined) return true;
  return before?.metadata?.resourceVersion === choice.seen.secret?.metadata?.resourceVersion;
}

/** Announces and makes a key pair for a signer. Its name tells it from every other one of the family, also within a second. */
export async function newSigner(
  { namespace, name, validityMs, keyAlgorithm = DEFAULT_KEY_ALGORITHM }: SignerConfig,
  { clock, events, keys }: Rotation,
  reason: string,
  { before, others }: { readonly before: Secret | undefined; readonly others: readonly Certificate[] },
): Promise<CertificateAndKey> {
  events.event(
    'Normal',
    'SignerUpdateRequired',
    `"${name}" in "${namespace}" requires a new signing cert/key pair: ${reason}`,
  );
  const now = clock.now();
  const prefix = `${namespace}_${name}@`;
  const known = [...others, ...certificatesIn(before && dataText(before, TLS_CERT))];
  const second = freeSecond(now, before && annotationsOf(before)[NAME_FREE_AT], known, prefix);
  const commonName = `${prefix}${second}`;
  return issueSigner({ commonName, lifetimeMs: validityMs, now, keys, algorithm: keyAlgorithm });
}

/** The first second from now on whose name nobody has had (spec 90: servers name the CAs they have loaded, and no more than that). */
function freeSecond(now: Date, freeAt: string | undefined, others: readonly Certificate[], prefix: string): number {
  const names = new Set(others.map(({ subject }) => subject.commonName));
  const first = Math.floor(now.getTime() / 1000);
  const wanted = /^\d{1,15}$/.test(freeAt ?? '') ? Number(freeAt) : first;
  // A note from a clock that went wrong must not name signers for years to come.
  let second = wanted > first && wanted - first <= FURTHEST_NAME_SECONDS ? wanted : first;
  while (names.has(`${prefix}${second}`)) second++;
  return second;
}

/** The second from which on names are free when this CA is forgotten; undefined: its name has none. */
export function nameFreeAfter({ subject }: Certificate): string | undefined {
  const [, second] = /@(\d{1,15})$/.exec(subject.commonName) ?? [];
  return second === undefined ? undefined : String(Number(second) + 1);
}

const FURTHEST_NAME_SECONDS = 3600;

function decideByChoice(byRules: Decision, { pair }: SignerChoice, now: Date): Decision {
  if (pair !== 'keep') return regenerate('HO-1', 'the next signer takes over');
  if (byRules.action !== 'regenerate') return byRules;
  return { action: 'keep', until: now, nextRule: byRules.rule, nextReason: byRules.reason };
}
