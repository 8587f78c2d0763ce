import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { type CertificateRole, ISSUER, NOT_AFTER, REFRESH_PERIOD, roleOf } from '../../certrotation/annotations.ts';
import { BUNDLE_KEY, decideBundle } from '../../certrotation/bundle.ts';
import { type CertCreator, clientCreator, servingCreator } from '../../certrotation/creator.ts';
import type { Decision } from '../../certrotation/decision.ts';
import { annotationsOf, dataText, TLS_CERT, TLS_KEY } from '../../certrotation/secret.ts';
import { decideSigner, decideSignerByAnnotations } from '../../certrotation/signer.ts';
import { decideTarget } from '../../certrotation/target.ts';
import { days, parseGoDuration } from '../../kube/duration.ts';
import { type Chain, KUBE_APISERVER_CHAINS } from '../../kube-apiserver/chains.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { readCertificates } from '../../pki/pem.ts';

/** What the rules say about one object at one moment. */
export interface Explanation {
  readonly role: CertificateRole;
  readonly kind: 'Secret' | 'ConfigMap';
  readonly namespace: string;
  readonly name: string;
  readonly action: 'keep' | 'regenerate' | 'rewrite' | 'fail';
  readonly rule: string;
  readonly reason: string;
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
  secrets: readonly Secret[],
  configMaps: readonly ConfigMap[],
  options: ExplainOptions,
): Explanation[] {
  const world = new World(secrets, configMaps);
  const signers = secrets
    .filter(secret => world.role(secret) === 'signer')
    .map(secret => explainSigner(secret, options));
  const bundles = configMaps.flatMap(configMap => explainBundle(configMap, world, options) ?? []);
  const targets = secrets
    .filter(secret => world.role(secret) === 'target')
    .map(secret => explainTarget(secret, world, options));
  return [signers, bundles, targets].flatMap(list => list.sort((a, b) => (pathOf(a) < pathOf(b) ? -1 : 1)));
}

function explainSigner(secret: Secret, options: ExplainOptions): Explanation {
  const notes: string[] = [];
  const policy = policyOf(secret, chain => [chain.signer], options, notes);
  const decide = hasContent(secret, notes)
    ? decideSigner.bind(undefined, secret)
    : decideSignerByAnnotations.bind(undefined, annotationsOf(secret));
  return explanation('signer', 'Secret', secret, decide(policy, options.now), notes);
}

function explainBundle(configMap: ConfigMap, world: World, options: ExplainOptions): Explanation | undefined {
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

function explainTarget(secret: Secret, world: World, options: ExplainOptions): Explanation {
  const notes: string[] = [];
  const { refreshMs, refreshOnlyWhenExpired } = policyOf(secret, chain => [chain.target], options, notes);
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
  return explanation('target', 'Secret', secret, decision, notes);
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

interface FoundSigner {
  readonly secret: Secret;
  readonly certificate: Certificate | undefined;
}

/** The given objects and who belongs to whom. */
class World {
  readonly #signers: readonly FoundSigner[];
  readonly #bundles: readonly { configMap: ConfigMap; certificates: readonly Certificate[] }[];

  constructor(secrets: readonly Secret[], configMaps: readonly ConfigMap[]) {
    this.#signers = secrets
      .filter(secret => this.role(secret) === 'signer')
      .map(secret => ({ secret, certificate: certificatesIn(dataText(secret, TLS_CERT))[0] }));
    this.#bundles = configMaps
      .filter(({ data }) => data?.[BUNDLE_KEY] !== undefined)
      .map(configMap => ({ configMap, certificates: certificatesIn(configMap.data?.[BUNDLE_KEY]) }));
  }

  /** By label, else by our table, else by what the certificate is; undefined for Secrets that are not ours to judge. */
  role(secret: Secret): CertificateRole | undefined {
    const labelled = roleOf(secret.metadata?.labels);
    if (labelled !== 'unknown') return labelled;
    if (chainOf(secret, chain => [chain.signer])) return 'signer';
    if (chainOf(secret, chain => [chain.target])) return 'target';
    if (annotationsOf(secret)[NOT_AFTER] === undefined) return undefined;
    const [certificate] = certificatesIn(dataText(secret, TLS_CERT));
    return certificate?.isCA && certificate.issuer.der.equals(certificate.subject.der) ? 'signer' : 'target';
  }

  signerOfTarget(target: Secret): FoundSigner | undefined {
    const chain = chainOf(target, ({ target: object }) => [object]);
    if (chain !== undefined) return this.#signers.find(({ secret }) => isNamed(secret, chain.signer));
    // The common name of a signer names its Secret: <namespace>_<name>@<seconds>.
    const [, namespace, name] = /^([^_]+)_(.+)@\d+$/.exec(annotationsOf(target)[ISSUER] ?? '') ?? [];
    if (namespace === undefined || name === undefined) return undefined;
    return this.#signers.find(({ secret }) => isNamed(secret, { namespace, name }));
  }

  signerOfBundle(bundle: ConfigMap): FoundSigner | undefined {
    const chain = chainOf(bundle, ({ bundle: object }) => [object]);
    if (chain !== undefined) return this.#signers.find(({ secret }) => isNamed(secret, chain.signer));
    if (roleOf(bundle.metadata?.labels) !== 'ca-bundle') return undefined;
    const inside = this.#bundles.find(({ configMap }) => configMap === bundle)?.certificates ?? [];
    return this.#signers.find(
      ({ certificate }) => certificate && inside.some(({ der }) => der.equals(certificate.der)),
    );
  }

  bundleOf(signer: FoundSigner): readonly Certificate[] | undefined {
    const chain = chainOf(signer.secret, ({ signer: object }) => [object]);
    const named = chain && this.#bundles.find(({ configMap }) => isNamed(configMap, chain.bundle));
    if (named !== undefined) return named.certificates;
    const { certificate } = signer;
    const holder = this.#bundles.find(
      ({ configMap, certificates }) =>
        roleOf(configMap.metadata?.labels) === 'ca-bundle' &&
        certificates.some(({ der }) => certificate !== undefined && der.equals(certificate.der)),
    );
    return holder?.certificates;
  }
}

type Named = { readonly namespace: string; readonly name: string };

function chainOf(object: Secret | ConfigMap, part: (chain: Chain) => Named[]): Chain | undefined {
  return KUBE_APISERVER_CHAINS.find(chain => part(chain).some(named => isNamed(object, named)));
}

function isNamed(object: Secret | ConfigMap, { namespace, name }: Named): boolean {
  return object.metadata?.namespace === namespace && object.metadata.name === name;
}

function policyOf(
  secret: Secret,
  part: (chain: Chain) => Chain['signer'][],
  { dayMs, refreshMs, refreshOnlyWhenExpired = false }: ExplainOptions,
  notes: string[],
) {
  const validityMs = days(1);
  const own = parseGoDuration(annotationsOf(secret)[REFRESH_PERIOD] ?? '');
  if (own !== undefined && own > 0) return { validityMs, refreshMs: own, refreshOnlyWhenExpired };
  const chain = chainOf(secret, part);
  const object = chain && part(chain).find(named => isNamed(secret, named));
  if (object !== undefined) return { validityMs, refreshMs: object.refreshDays * dayMs, refreshOnlyWhenExpired };
  if (refreshMs !== undefined) return { validityMs, refreshMs, refreshOnlyWhenExpired };
  notes.push('its refresh time is not known: only the 80 % rule was used (give --refresh)');
  return { validityMs, refreshMs: NEVER_MS, refreshOnlyWhenExpired };
}

/** Later than any certificate lives. */
const NEVER_MS = days(365 * 10_000);

function creatorOf(secret: Secret, notes: string[]): CertCreator {
  const creator = chainOf(secret, chain => [chain.target])?.target.creator;
  if (creator?.kind === 'client') return clientCreator(creator.user);
  if (creator !== undefined && typeof creator.hostnames !== 'string')
    return servingCreator({ hostnames: creator.hostnames });
  const hostnames = secret.metadata?.annotations?.['auth.openshift.io/certificate-hostnames'];
  if (hostnames !== undefined) notes.push('the host names required now are not in the files: not compared (H-1)');
  return clientCreator({ name: '' });
}

/** What `oc adm inspect` writes in place of a private value. */
const ELIDED = /^\d+ bytes long$/;

function hasContent(secret: Secret, notes: string[]): boolean {
  const key = dataText(secret, TLS_KEY);
  if (secret.data !== undefined && !(key !== undefined && ELIDED.test(key))) return true;
  notes.push('the private key is not in the file: only the annotations were judged');
  return false;
}

function certificatesIn(text: string | undefined): readonly Certificate[] {
  try {
    return text ? readCertificates(text).certificates : [];
  } catch {
    return [];
  }
}

function newest(certificates: readonly Certificate[]): Certificate | undefined {
  return certificates.toSorted((a, b) => b.notBefore.getTime() - a.notBefore.getTime())[0];
}

/** Sorts by namespace first: NUL comes before every character a name can have. */
function pathOf({ namespace, name }: Explanation): string {
  return `${namespace}\0${name}`;
}
