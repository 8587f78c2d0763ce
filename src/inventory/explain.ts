import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { type CertificateRole, REFRESH_PERIOD, roleOf } from '../certrotation/annotations.ts';
import { BUNDLE_KEY, decideBundle } from '../certrotation/bundle.ts';
import { type CertCreator, clientCreator, servingCreator } from '../certrotation/creator.ts';
import { type Decision, regenerate } from '../certrotation/decision.ts';
import { annotationsOf, dataText, TLS_CERT, TLS_KEY } from '../certrotation/secret.ts';
import { decideSigner, decideSignerByAnnotations } from '../certrotation/signer.ts';
import { decideTarget } from '../certrotation/target.ts';
import { days, parseGoDuration } from '../kube/duration.ts';
import type { Certificate } from '../pki/certificate.ts';
import { chainOfNextSigner, chainOfSigner, chainOfTarget, type KnownObject } from './known-chains.ts';
import type { HandOverPhase } from './model.ts';
import type { PublicSecret } from './public-secret.ts';
import { certificatesIn, Relations } from './relations.ts';

/** What the rules say about one object at one moment. */
export interface Explanation {
  readonly role: CertificateRole;
  readonly kind: 'Secret' | 'ConfigMap';
  readonly namespace: string;
  readonly name: string;
  readonly action: 'keep' | 'regenerate' | 'rewrite' | 'fail';
  readonly rule: string;
  readonly reason: string;
  /** Of a signer: where its hand-over stands. */
  readonly phase?: HandOverPhase | undefined;
  /** When the answer changes, and to what; absent when it is due now. */
  readonly until?: string;
  /** What could not be known from what was given. */
  readonly notes: readonly string[];
}

export interface ExplainOptions {
  readonly now: Date;
  /** Length of one rotation day in milliseconds, for chains whose refresh time comes from our table. */
  readonly dayMs: number;
  /** Refresh time for objects that neither carry one nor stand in the table. */
  readonly refreshMs?: number | undefined;
  readonly refreshOnlyWhenExpired?: boolean | undefined;
}

/** Runs the decisions of the controllers over objects without a cluster. Signers first, then bundles, then targets. */
export function explain(
  secrets: readonly PublicSecret[],
  configMaps: readonly ConfigMap[],
  options: ExplainOptions,
): Explanation[] {
  const world = new Relations(secrets, configMaps);
  const signers = secrets
    .filter(secret => world.role(secret) === 'signer')
    .map(secret => explainSigner(secret, options));
  const bundles = configMaps.flatMap(configMap => explainBundle(configMap, world, options) ?? []);
  const targets = secrets
    .filter(secret => world.role(secret) === 'target')
    .map(secret => explainTarget(secret, world, options));
  return [signers, bundles, targets].flatMap(list => list.sort((a, b) => (pathOf(a) < pathOf(b) ? -1 : 1)));
}

function explainSigner(secret: PublicSecret, options: ExplainOptions): Explanation {
  const notes: string[] = [];
  const known = chainOfSigner(secret)?.signer ?? chainOfNextSigner(secret)?.nextSigner;
  const policy = policyOf(secret, known, options, notes);
  const decide = hasContent(secret, notes)
    ? decideSigner.bind(undefined, secret)
    : decideSignerByAnnotations.bind(undefined, annotationsOf(secret));
  const decision = decide(policy, options.now);
  // A new CA would hide the corruption: a person has to look (4.5).
  const broken = decision.action === 'keep' && secret.keyProblem;
  if (decision.action === 'keep' && isPastItsEnd(secret, options.now)) {
    // The annotations promise more than the certificate holds.
    return explanation('signer', 'Secret', secret, regenerate('X-1', 'already expired'), notes);
  }
  const answer: Decision = broken ? { action: 'fail', rule: '4.5', error: broken } : decision;
  return explanation('signer', 'Secret', secret, answer, notes);
}

function explainBundle(configMap: ConfigMap, world: Relations, options: ExplainOptions): Explanation | undefined {
  const signer = world.signerOfBundle(configMap);
  const known = signer !== undefined || roleOf(configMap.metadata?.labels) === 'ca-bundle';
  if (!known) return undefined;
  const notes: string[] = [];
  // Without its signer, a bundle is judged as if its newest certificate were the current one.
  const certificate = signer?.certificate ?? newest(certificatesIn(configMap.data?.[BUNDLE_KEY]));
  if (signer === undefined)
    notes.push('its signer is not among the files: assumed to be the newest certificate inside');
  if (certificate === undefined) {
    const error = 'no certificate can be read from it, and its signer is not among the files';
    return explanation('ca-bundle', 'ConfigMap', configMap, { action: 'fail', rule: 'B-1', error }, []);
  }
  const { namespace = '', name = '' } = signer?.secret.metadata ?? {};
  const decision = decideBundle(configMap, { namespace, name, certificate }, options.now);
  if (decision.action !== 'fail') notes.push(...decision.warnings);
  return explanation('ca-bundle', 'ConfigMap', configMap, decision, notes);
}

function explainTarget(secret: PublicSecret, world: Relations, options: ExplainOptions): Explanation {
  const notes: string[] = [];
  const { refreshMs, refreshOnlyWhenExpired } = policyOf(secret, chainOfTarget(secret)?.target, options, notes);
  const signer = world.signerOfTarget(secret);
  if (signer === undefined) notes.push('its signer is not among the files: counted as old enough (T-8)');
  const bundle = signer && world.bundleOf(signer);
  if (bundle === undefined) notes.push('its CA bundle is not among the files: the issuer was not looked up (T-7)');
  const creator = creatorOf(secret, notes);
  const certificates = signer?.certificate ? [signer.certificate] : [];
  const { now } = options;
  const decision = hasContent(secret, notes)
    ? decideTarget(secret, certificates, bundle, { creator, refreshMs, refreshOnlyWhenExpired }, now)
    : creator.decide({ secret, signer: certificates, bundle, refreshMs, refreshOnlyWhenExpired, now });
  const expired = isPastItsEnd(secret, now) && 'the certificate expired before its annotation';
  const broken = decision.action === 'keep' && !refreshOnlyWhenExpired && (secret.keyProblem || expired);
  const answer = broken ? regenerate('X-3', `unusable content: ${broken}`) : decision;
  return explanation('target', 'Secret', secret, answer, notes);
}

function explanation(
  role: CertificateRole,
  kind: 'Secret' | 'ConfigMap',
  object: Secret | ConfigMap,
  decision: Decision | ReturnType<typeof decideBundle>,
  notes: readonly string[],
): Explanation {
  const { namespace = '', name = '' } = object.metadata ?? {};
  const common = { role, kind, namespace, name, notes };
  switch (decision.action) {
    case 'keep':
      return {
        ...common,
        action: 'keep',
        rule: decision.nextRule,
        reason: decision.nextReason,
        until: decision.until.toISOString(),
      };
    case 'fail':
      return { ...common, action: 'fail', rule: decision.rule, reason: decision.error };
    default:
      return { ...common, action: decision.action, rule: decision.rule, reason: decision.reason };
  }
}

function policyOf(
  secret: Secret,
  known: KnownObject | undefined,
  { dayMs, refreshMs, refreshOnlyWhenExpired = false }: ExplainOptions,
  notes: string[],
) {
  const validityMs = days(1);
  const own = parseGoDuration(annotationsOf(secret)[REFRESH_PERIOD] ?? '');
  if (own !== undefined && own > 0) return { validityMs, refreshMs: own, refreshOnlyWhenExpired };
  if (known !== undefined) return { validityMs, refreshMs: known.refreshDays * dayMs, refreshOnlyWhenExpired };
  if (refreshMs !== undefined) return { validityMs, refreshMs, refreshOnlyWhenExpired };
  notes.push('its refresh time is not known: only the 80 % rule was used (give --refresh)');
  return { validityMs, refreshMs: NEVER_MS, refreshOnlyWhenExpired };
}

/** Later than any certificate lives. */
const NEVER_MS = days(365 * 10_000);

function creatorOf(secret: Secret, notes: string[]): CertCreator {
  const creator = chainOfTarget(secret)?.target.creator;
  if (creator?.kind === 'client') return clientCreator(creator.user);
  if (creator?.kind === 'serving' && typeof creator.hostnames !== 'string')
    return servingCreator({ hostnames: creator.hostnames });
  const hostnames = secret.metadata?.annotations?.['auth.openshift.io/certificate-hostnames'];
  if (hostnames !== undefined) notes.push('the host names required now are not in the files: not compared (H-1)');
  return clientCreator({ name: '' });
}

/** What `oc adm inspect` writes in place of a private value. */
const ELIDED = /^\d+ bytes long$/;

function hasContent(secret: PublicSecret, notes: string[]): boolean {
  // Somebody has looked at the key and put it away.
  if (secret.keyProblem !== undefined) return false;
  const key = dataText(secret, TLS_KEY);
  if (secret.data !== undefined && !(key !== undefined && ELIDED.test(key))) return true;
  notes.push('the private key is not in the file: only the annotations were judged');
  return false;
}

function isPastItsEnd(secret: PublicSecret, now: Date): boolean {
  const [certificate] = certificatesIn(dataText(secret, TLS_CERT));
  return certificate !== undefined && now > certificate.notAfter;
}

function newest(certificates: readonly Certificate[]): Certificate | undefined {
  return certificates.toSorted((a, b) => b.notBefore.getTime() - a.notBefore.getTime())[0];
}

/** Sorts by namespace first: NUL comes before every character a name can have. */
function pathOf({ namespace, name }: Explanation): string {
  return `${namespace}\0${name}`;
}
