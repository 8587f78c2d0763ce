import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import { mergeBundle, unexpired } from '../pki/bundle.ts';
import type { Certificate } from '../pki/certificate.ts';
import { describeCertificates } from '../pki/describe.ts';
import { isPkiError } from '../pki/error.ts';
import { certificatesIn, encodeCertificates, readCertificates } from '../pki/pem.ts';
import { MANAGED_CERTIFICATE_TYPE } from './annotations.ts';
import type { BundleConfig } from './config.ts';
import type { Fail, Keep } from './decision.ts';
import { type Rotation, withMetadata } from './ensure.ts';
import { CertRotationError } from './error.ts';
import { store } from './store.ts';

export const BUNDLE_KEY = 'ca-bundle.crt';

/** What the bundle must be now; `rewrite` carries the canonical text. */
export type BundleDecision = BundleKeep | BundleRewrite | Fail;

export interface BundleKeep extends Keep {
  readonly certificates: readonly Certificate[];
  readonly warnings: readonly string[];
}

export interface BundleRewrite {
  readonly action: 'rewrite';
  readonly rule: 'B-7';
  readonly reason: string;
  readonly text: string;
  readonly certificates: readonly Certificate[];
  readonly warnings: readonly string[];
}

/** The Secret whose certificate the bundle must hold, by name for the reason and by certificate for the content. */
export interface BundleSigner {
  readonly namespace: string;
  readonly name: string;
  readonly certificate: Certificate;
  /** Held as well: a signer that is to be known everywhere before it signs (spec 90). */
  readonly next?: Certificate | undefined;
  /** Held no longer: it was to be known and has never signed. */
  readonly dropped?: Certificate | undefined;
}

export type BundleResult =
  | {
      readonly outcome: 'ready';
      readonly certificates: readonly Certificate[];
      readonly rewritten: boolean;
      readonly decision: BundleDecision;
    }
  | { readonly outcome: 'lost' };

/** Merges the signer into the bundle: expired and doubled certificates leave, the rest is sorted (B-1 to B-8). */
export function decideBundle(configMap: ConfigMap | undefined, signer: BundleSigner, now: Date): BundleDecision {
  const stored = configMap?.data?.[BUNDLE_KEY] ?? '';
  let parsed: { certificates: Certificate[]; warnings: string[] };
  let certificates: Certificate[];
  try {
    parsed = readBundle(stored);
    certificates = mergeBundle(kept(parsed.certificates, signer), signer.certificate, now);
  } catch (error) {
    const rule = isPkiError(error, 'BUNDLE_EMPTY') ? 'B-8' : 'B-1';
    return { action: 'fail', rule, error: (error as Error).message };
  }
  const text = encodeCertificates(certificates);
  const { warnings } = parsed;
  if (text === stored) return { ...keepUntilExpiry(certificates), certificates, warnings };
  const reason = whyRewrite(configMap, parsed.certificates, signer, now);
  return { action: 'rewrite', rule: 'B-7', reason, text, certificates, warnings };
}

/** Makes sure of the bundle (spec 10, 7.2). Throws when the stored text is unreadable or nothing would be left. */
export async function ensureBundle(
  config: BundleConfig,
  signer: BundleSigner,
  rotation: Rotation,
): Promise<BundleResult> {
  const { namespace, name } = config;
  const now = rotation.clock.now();
  const before = await rotation.objects.read(CONFIG_MAPS, { namespace, name });
  const decision = decideBundle(before, signer, now);
  if (decision.action === 'fail') {
    const code = decision.rule === 'B-1' ? 'BUNDLE_UNREADABLE' : 'BUNDLE_WOULD_BE_EMPTY';
    throw new CertRotationError(code, `configmap/${name} -n ${namespace}: ${decision.error}`);
  }
  const object = `ConfigMap/${name} -n ${namespace}`;
  for (const warning of decision.warnings) rotation.log?.warn({ object }, warning);
  let wanted: ConfigMap = before ?? { metadata: { namespace, name } };
  if (before === undefined || !config.refreshOnlyWhenExpired) wanted = withMetadata(wanted, config);
  if (decision.action === 'rewrite') {
    const message = `"${name}" in "${namespace}" requires a new cert: ${decision.reason}`;
    rotation.events.event('Normal', 'CABundleUpdateRequired', message);
    rotation.log?.info({ object, certificates: describeCertificates(decision.certificates, now) }, 'bundle changes');
    wanted = withBundle(wanted, decision.text);
  }
  const stored = await store(CONFIG_MAPS, before, wanted, rotation);
  if (stored === undefined) return { outcome: 'lost' };
  const text = stored.data?.[BUNDLE_KEY];
  if (!text) throw new CertRotationError('BUNDLE_MISSING', `configmap/${name} -n${namespace} missing ${BUNDLE_KEY}`);
  const certificates = readBundle(text).certificates;
  if (decision.action === 'keep') return { outcome: 'ready', certificates, rewritten: false, decision };
  return { outcome: 'ready', certificates, rewritten: true, decision: decideBundle(stored, signer, now) };
}

function withBundle(configMap: ConfigMap, text: string): ConfigMap {
  const labels = { ...configMap.metadata?.labels, [MANAGED_CERTIFICATE_TYPE]: 'ca-bundle' };
  return {
    ...configMap,
    metadata: { ...configMap.metadata, labels },
    data: { ...configMap.data, [BUNDLE_KEY]: text },
  };
}

function kept(stored: readonly Certificate[], { next, dropped }: BundleSigner): Certificate[] {
  const others = dropped === undefined ? stored : stored.filter(({ der }) => !der.equals(dropped.der));
  return next === undefined ? [...others] : [...others, next];
}

function readBundle(text: string): { certificates: Certificate[]; warnings: string[] } {
  if (text === '') return { certificates: [], warnings: [] };
  const { certificates, skipped } = readCertificates(text);
  // Passed over so that rotation goes on, but never silently: they vanish at the next rewrite (trap 14.20).
  const warnings = skipped.map(block => `passed over a PEM block: ${block.reason}`);
  return { certificates, warnings };
}

/** A certificate is dropped at its notAfter, not after it (B-3). */
function keepUntilExpiry(certificates: readonly Certificate[]): Keep {
  const first = certificates.reduce((a, b) => (b.notAfter < a.notAfter ? b : a));
  const nextReason = `certificate "${first.subject.commonName}" expires`;
  return { action: 'keep', until: first.notAfter, nextRule: 'B-3', nextReason };
}

function whyRewrite(
  configMap: ConfigMap | undefined,
  stored: readonly Certificate[],
  signer: BundleSigner,
  now: Date,
): string {
  if (configMap === undefined) return "configmap doesn't exist";
  if (Object.keys(configMap.data ?? {}).length === 0) return 'configmap is empty';
  const holds = (wanted: Certificate) => stored.some(({ der }) => der.equals(wanted.der));
  if (!holds(signer.certificate)) return `signer update ${signer.namespace}/${signer.name}`;
  if (signer.next !== undefined && !holds(signer.next)) return `next signer of ${signer.namespace}/${signer.name}`;
  if (signer.dropped !== undefined && holds(signer.dropped)) return 'a next signer that was taken back leaves';
  if (unexpired(stored, now).length < stored.length) return 'expired certificates leave';
  return 'the text is not in canonical form';
}

/** What a bundle holds; nothing where it is not there or cannot be read. */
export async function heldIn(
  { namespace, name }: Pick<BundleConfig, 'namespace' | 'name'>,
  { objects }: Pick<Rotation, 'objects'>,
): Promise<readonly Certificate[]> {
  return certificatesIn((await objects.read(CONFIG_MAPS, { namespace, name }))?.data?.[BUNDLE_KEY]);
}
