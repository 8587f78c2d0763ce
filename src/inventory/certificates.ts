import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { annotationsOf, dataText, TLS_CERT } from '../certrotation/secret.ts';
import { SINCE } from '../hand-over/names.ts';
import type { KubeObject } from '../kube/resource.ts';
import type { Certificate } from '../pki/certificate.ts';
import { isSignedBy } from '../pki/signature.ts';
import type { ObjectRef } from '../trust/object.ts';
import { factsOf } from './certificate-facts.ts';
import { type Explanation, explain } from './explain.ts';
import { chainOfNextSigner, chainOfSigner, chainOfTarget } from './known-chains.ts';
import { certificatesOfKubeconfig } from './kubeconfig.ts';
import type { BundleItem, CertificateItem, CertificateState, ItemMetadata, NextDecision } from './model.ts';
import type { PublicSecret } from './public-secret.ts';
import { type PemContent, readPem } from './relations.ts';

export interface CertificateOptions {
  readonly now: Date;
  /** Length of a rotation day, for objects that do not say their refresh time. */
  readonly dayMs: number;
}

/** A certificate nobody rotates is pointed at when it ends within so many rotation days. */
export const EXPIRING_SOON_DAYS = 30;

/** What ConfigMaps call their CA bundle (spec 70, 5.2). */
const BUNDLE_KEYS = [
  'ca-bundle.crt',
  'client-ca-file',
  'client-ca.crt',
  'metrics-ca-bundle.crt',
  'server-ca-bundle.crt',
  'requestheader-client-ca-file',
  'service-ca.crt',
  'ca.crt',
  'image-registry.openshift-image-registry.svc..5000',
  'image-registry.openshift-image-registry.svc.cluster.local..5000',
] as const;

/** Every Secret with a certificate and every ConfigMap with CA certificates, in kubeconfigs too; copies are left out. */
export function certificatesAndBundles(
  allSecrets: readonly PublicSecret[],
  allConfigMaps: readonly ConfigMap[],
  options: CertificateOptions,
): { certificates: CertificateItem[]; bundles: BundleItem[] } {
  const secrets = allSecrets.filter(isOriginal);
  const configMaps = allConfigMaps.filter(isOriginal);
  const explanations = new Map(
    explain(secrets, configMaps, options).map(explanation => [keyOf(explanation.kind, explanation), explanation]),
  );
  const bundles = configMaps.flatMap(configMap => bundleItem(configMap, explanations, options) ?? []);
  const holders = secrets.flatMap(secret => {
    const [certificate] = parse(dataText(secret, TLS_CERT) ?? '').certificates;
    return certificate?.isCA ? [{ ref: refOf('Secret', secret.metadata), certificates: [certificate] }] : [];
  });
  const trusts = bundles.map(({ item, certificates }) => ({ ref: refOf('ConfigMap', item.metadata), certificates }));
  const lookUp = issuerLookUp();
  const certificates = secrets.flatMap(secret => {
    const explanation = explanations.get(keyOf('Secret', secret.metadata ?? {}));
    const isPair = secret.data?.[TLS_CERT] !== undefined || explanation !== undefined;
    if (!isPair && secret.kubeconfigs === undefined) return [];
    const found = isPair ? parse(dataText(secret, TLS_CERT) ?? '') : clientOf(secret.kubeconfigs ?? {});
    const [leaf] = found.certificates;
    const signers = leaf === undefined ? [] : lookUp(leaf, holders);
    const own = refOf('Secret', secret.metadata);
    return [
      certificateItem(secret, found, explanation, options, {
        // A copy of a signer is not the place to look for it when the one it came from is there.
        signedBy: signers.find(ref => ref.namespace === own.namespace && ref.name === own.name) ?? signers[0],
        trustedBy: leaf === undefined ? [] : lookUp(leaf, trusts),
      }),
    ];
  });
  return { certificates: certificates.sort(byPlace), bundles: bundles.map(({ item }) => item).sort(byPlace) };
}

/** Belongs to a revision: made once, never rotated (spec 70, 1.2). */
export function isRevisionCopy({ metadata }: KubeObject): boolean {
  return (metadata?.ownerReferences ?? []).some(
    ({ kind, name }) => kind === 'ConfigMap' && name.startsWith('revision-status-'),
  );
}

/** Monitoring keeps copies of certificates under names that end in a digest of what is inside (spec 70, 5.3). */
const HASHED_COPY = 'monitoring.openshift.io/hash';

function isOriginal(object: KubeObject): boolean {
  return !isRevisionCopy(object) && object.metadata?.labels?.[HASHED_COPY] === undefined;
}

/** Kubeconfigs of one Secret mostly hold the same certificate; where they do not, the one that ends first is what counts. */
function clientOf(kubeconfigs: Readonly<Record<string, readonly string[]>>): PemContent {
  const contents = Object.values(kubeconfigs).flatMap(texts => texts.map(parse));
  const broken = contents.find(({ problem }) => problem !== undefined);
  if (broken !== undefined) return broken;
  const end = ({ certificates: [first] }: PemContent) => first?.notAfter.getTime() ?? 0;
  return contents.toSorted((a, b) => end(a) - end(b))[0] ?? parse('');
}

function parse(text: string): PemContent {
  return text === '' ? { certificates: [], problem: 'there is no certificate in it' } : readPem(text);
}

function certificateItem(
  secret: PublicSecret,
  { certificates, problem }: PemContent,
  explanation: Explanation | undefined,
  options: CertificateOptions,
  links: Pick<CertificateItem, 'signedBy' | 'trustedBy'>,
): CertificateItem {
  const [certificate, ...rest] = certificates;
  const chain = chainOfSigner(secret) ?? chainOfNextSigner(secret) ?? chainOfTarget(secret);
  const annotations = annotationsOf(secret);
  const next = nextOf(explanation);
  const successor = annotations[SINCE] === undefined ? undefined : (secret.metadata?.name ?? '').replace(/-next$/, '');
  const broken = problem ?? (secret.keyProblem || undefined);
  return {
    metadata: metadataOf(secret),
    role: explanation?.role === 'signer' ? 'signer' : explanation?.role === 'target' ? 'target' : 'unmanaged',
    ...stateOf(certificate, next, broken, { ...options, isKept: successor !== undefined }),
    certificate: certificate && factsOf(certificate),
    chainLength: rest.length,
    ...(secret.data?.[TLS_CERT] === undefined && secret.kubeconfigs !== undefined
      ? { kubeconfigs: Object.keys(secret.kubeconfigs) }
      : {}),
    component: annotations['openshift.io/owning-component'],
    description: annotations['openshift.io/description'],
    purpose: successor === undefined ? chain?.purpose : `Signs in place of ${successor} once everybody has loaded it.`,
    next,
    ...links,
    notes: explanation?.notes ?? [],
  };
}

function bundleItem(
  configMap: ConfigMap,
  explanations: ReadonlyMap<string, Explanation>,
  options: CertificateOptions,
): { item: BundleItem; certificates: readonly Certificate[] } | undefined {
  const { now } = options;
  const explanation = explanations.get(keyOf('ConfigMap', configMap.metadata ?? {}));
  const found = authoritiesIn(configMap);
  const keys = found.map(({ key }) => key);
  if (keys.length === 0 && explanation === undefined) return undefined;
  const texts = found.map(({ text }) => parse(text));
  const certificates = texts.flatMap(text => text.certificates);
  const problem = texts.find(text => text.problem !== undefined)?.problem;
  const annotations = annotationsOf(configMap);
  const next = nextOf(explanation);
  const live = certificates.filter(({ notAfter }) => notAfter > now);
  // Old CAs are kept for the overlap: the bundle is as good as its newest certificate.
  const newest = live.toSorted((a, b) => b.notAfter.getTime() - a.notAfter.getTime())[0] ?? certificates[0];
  const item: BundleItem = {
    metadata: metadataOf(configMap),
    role: explanation === undefined ? 'unmanaged' : 'ca-bundle',
    keys,
    ...stateOf(newest, next, problem ?? (certificates.length === 0 ? 'it holds no certificate' : undefined), options),
    certificates: certificates.map(certificate => ({
      ...factsOf(certificate),
      isExpired: certificate.notAfter <= now,
    })),
    component: annotations['openshift.io/owning-component'],
    description: annotations['openshift.io/description'],
    next,
    notes: explanation?.notes ?? [],
  };
  return { item, certificates };
}

/** The texts with CA certificates: those under the keys that are known for it, else those of kubeconfigs. */
function authoritiesIn({ data = {} }: ConfigMap): { key: string; text: string }[] {
  const known = BUNDLE_KEYS.flatMap(key => {
    const text = data[key] ?? '';
    return text.includes('-----BEGIN CERTIFICATE-----') ? [{ key, text }] : [];
  });
  if (known.length > 0) return known;
  return Object.entries(data).flatMap(([key, text]) => {
    const { authorities = [] } = certificatesOfKubeconfig(text) ?? {};
    return authorities.length > 0 ? [{ key, text: authorities.map(({ pem }) => pem).join('\n') }] : [];
  });
}

function stateOf(
  certificate: Certificate | undefined,
  next: NextDecision | undefined,
  problem: string | undefined,
  { now, dayMs, isKept = false }: CertificateOptions & { readonly isKept?: boolean },
): { state: CertificateState; problem?: string | undefined } {
  if (certificate !== undefined && certificate.notAfter < now) {
    return { state: 'Expired', problem: `expired at ${certificate.notAfter.toISOString()}` };
  }
  if (next?.action === 'fail') return { state: 'NeedsAttention', problem: next.reason };
  if (problem !== undefined) return { state: 'Unusable', problem };
  if (next !== undefined && next.action !== 'keep') return { state: 'Due', problem: next.reason };
  const leftMs = certificate === undefined ? 0 : certificate.notAfter.getTime() - now.getTime();
  // One that waits for its hand-over is looked after, although no rule of rotation is about it.
  if (next === undefined && !isKept && leftMs < EXPIRING_SOON_DAYS * dayMs) {
    return { state: 'Expiring', problem: 'it ends soon and no controller we know of rotates it' };
  }
  return { state: 'Good' };
}

function nextOf(explanation: Explanation | undefined): NextDecision | undefined {
  if (explanation === undefined) return undefined;
  const { action, until, rule, reason } = explanation;
  return { action, ...(until === undefined ? {} : { at: until }), rule, reason };
}

interface Holder {
  readonly ref: ObjectRef;
  readonly certificates: readonly Certificate[];
}

/** Who holds the certificate that signed a leaf: by name, then by signature, each pair of keys checked once. */
function issuerLookUp(): (leaf: Certificate, holders: readonly Holder[]) => ObjectRef[] {
  const answers = new Map<string, boolean>();
  const signed = (leaf: Certificate, issuer: Certificate): boolean => {
    if (!issuer.subject.der.equals(leaf.issuer.der)) return false;
    const id = `${leaf.signature.toString('base64')} ${issuer.publicKeyInfo.toString('base64')}`;
    let answer = answers.get(id);
    if (answer === undefined) {
      try {
        answer = isSignedBy(leaf, issuer.publicKey);
      } catch {
        answer = false;
      }
      answers.set(id, answer);
    }
    return answer;
  };
  return (leaf, holders) =>
    holders
      .filter(({ certificates }) => certificates.some(certificate => signed(leaf, certificate)))
      .map(({ ref }) => ref);
}

export function metadataOf({ metadata }: KubeObject): ItemMetadata {
  const { namespace, name = '', creationTimestamp, labels } = metadata ?? {};
  return {
    ...(namespace === undefined ? {} : { namespace }),
    name,
    // YAML readers may turn a time into a Date.
    ...(creationTimestamp === undefined ? {} : { creationTimestamp: new Date(creationTimestamp).toISOString() }),
    ...(labels === undefined ? {} : { labels }),
  };
}

function refOf(
  kind: ObjectRef['kind'],
  metadata: { namespace?: string | undefined; name?: string } | undefined,
): ObjectRef {
  return { kind, namespace: metadata?.namespace ?? '', name: metadata?.name ?? '' };
}

function keyOf(
  kind: string,
  { namespace = '', name = '' }: { namespace?: string | undefined; name?: string | undefined },
): string {
  return `${kind}/${namespace}/${name}`;
}

/** By namespace, then by name. */
export function byPlace(a: { readonly metadata: ItemMetadata }, b: { readonly metadata: ItemMetadata }): number {
  const [left, right] = [a, b].map(({ metadata }) => `${metadata.namespace ?? ''}\0${metadata.name}`) as [
    string,
    string,
  ];
  return left < right ? -1 : left > right ? 1 : 0;
}
