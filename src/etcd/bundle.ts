import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { MANAGED_CERTIFICATE_TYPE } from '../certrotation/annotations.ts';
import { BUNDLE_KEY, type BundleSigner, decideBundle } from '../certrotation/bundle.ts';
import type { BundleConfig } from '../certrotation/config.ts';
import { type Rotation, withMetadata } from '../certrotation/ensure.ts';
import { store } from '../certrotation/store.ts';
import { RetryRequest } from '../controller/reconcile.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import type { Certificate } from '../pki/certificate.ts';
import { readCertificates } from '../pki/pem.ts';

export interface EnsuredBundle {
  /** Never empty. */
  readonly certificates: readonly Certificate[];
  /** When the first of them expires. */
  readonly until: Date;
}

/** Why a bundle could not be ensured, and for which of the signers. */
export class BundleFailure extends Error {
  override readonly name = 'BundleFailure';
  readonly signer: BundleSigner | undefined;

  constructor(signer: BundleSigner | undefined, cause: unknown) {
    super((cause as Error).message, { cause });
    this.signer = signer;
  }
}

/**
 * Makes sure that a bundle holds all of these signers, in a single write: nobody ever sees it with one of them (spec 40, C-4
 * and C-5). Somebody else's write in between is no answer, least of all an empty one: the pass begins again (12.3).
 */
export async function ensureBundleOf(
  config: BundleConfig,
  signers: readonly BundleSigner[],
  rotation: Rotation,
): Promise<EnsuredBundle> {
  const { namespace, name } = config;
  if (signers.length === 0) throw new Error(`configmap ${namespace}/${name} would be empty: every signer has expired`);
  const before = await rotation.objects.read(CONFIG_MAPS, { namespace, name });
  const { configMap, reasons, blamed } = withSigners(before, config, signers, rotation.clock.now());
  const wanted = withMetadata(configMap, config);
  for (const reason of reasons) {
    rotation.events.event(
      'Normal',
      'CABundleUpdateRequired',
      `"${name}" in "${namespace}" requires a new cert: ${reason}`,
    );
  }
  let stored: ConfigMap | undefined;
  try {
    stored = await store(CONFIG_MAPS, before, wanted, rotation);
  } catch (error) {
    throw new BundleFailure(blamed, error);
  }
  if (stored === undefined) throw new RetryRequest(`configmap ${namespace}/${name} was written by somebody else`);
  const { certificates } = readCertificates(stored.data?.[BUNDLE_KEY] ?? '');
  for (const { certificate } of signers) {
    const isThere =
      certificates.some(({ der }) => der.equals(certificate.der)) || certificate.notAfter <= rotation.clock.now();
    if (!isThere)
      throw new Error(`configmap ${namespace}/${name} was stored without "${certificate.subject.commonName}"`);
  }
  const until = new Date(Math.min(...certificates.map(({ notAfter }) => notAfter.getTime())));
  return { certificates, until };
}

function withSigners(
  before: ConfigMap | undefined,
  { namespace, name }: BundleConfig,
  signers: readonly BundleSigner[],
  now: Date,
): { configMap: ConfigMap; reasons: string[]; blamed: BundleSigner | undefined } {
  let configMap: ConfigMap = before ?? { metadata: { namespace, name } };
  let blamed: BundleSigner | undefined;
  const reasons: string[] = [];
  for (const signer of signers) {
    const decision = decideBundle(before === undefined && blamed === undefined ? undefined : configMap, signer, now);
    if (decision.action === 'fail') throw new BundleFailure(signer, new Error(decision.error));
    if (decision.action === 'keep') continue;
    reasons.push(decision.reason);
    blamed ??= signer;
    const labels = { ...configMap.metadata?.labels, [MANAGED_CERTIFICATE_TYPE]: 'ca-bundle' };
    const data = { ...configMap.data, [BUNDLE_KEY]: decision.text };
    configMap = { ...configMap, metadata: { ...configMap.metadata, labels }, data };
  }
  return { configMap, reasons, blamed };
}
