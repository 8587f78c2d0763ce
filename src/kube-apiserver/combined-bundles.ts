import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { type ApplyContext, applyConfigMap } from '../kube/apply.ts';
import { unexpired } from '../pki/bundle.ts';
import type { Certificate } from '../pki/certificate.ts';
import { encodeCertificates, readCertificates } from '../pki/pem.ts';
import { CHAIN_ANNOTATIONS, type ObjectName } from './chains.ts';
import {
  CONFIG_NAMESPACE as CONFIG,
  MANAGED_NAMESPACE as MANAGED,
  OPERAND_NAMESPACE as OPERAND,
  OPERATOR_NAMESPACE as OPERATOR,
} from './namespaces.ts';

/** A bundle made of others (spec 20, 2.1). */
export interface CombinedBundle {
  readonly destination: ObjectName;
  /** In this order; any of them may be missing. */
  readonly sources: readonly ObjectName[];
  readonly builtBy: readonly string[];
}

/** Whom kube-apiserver lets in. */
export const CLIENT_CA: CombinedBundle = {
  destination: { namespace: OPERAND, name: 'client-ca' },
  sources: [
    // The administrator's kubeconfig of the installer.
    { namespace: CONFIG, name: 'admin-kubeconfig-client-ca' },
    // Kubelets, through signing requests.
    { namespace: MANAGED, name: 'csr-controller-ca' },
    { namespace: OPERATOR, name: 'kube-apiserver-to-kubelet-client-ca' },
    { namespace: OPERATOR, name: 'kube-control-plane-signer-ca' },
    { namespace: OPERAND, name: 'user-client-ca' },
    // The credential new nodes join with; deleting it revokes that.
    { namespace: MANAGED, name: 'kubelet-bootstrap-kubeconfig' },
    { namespace: OPERATOR, name: 'node-system-admin-ca' },
  ],
  builtBy: ['TargetConfigController', 'cert-regeneration-controller'],
};

/** What clients verify kube-apiserver with. */
export const SERVER_CA: CombinedBundle = {
  destination: { namespace: OPERAND, name: 'kube-apiserver-server-ca' },
  sources: [
    { namespace: OPERATOR, name: 'loadbalancer-serving-ca' },
    { namespace: OPERATOR, name: 'localhost-serving-ca' },
    { namespace: OPERATOR, name: 'service-network-serving-ca' },
    { namespace: OPERATOR, name: 'localhost-recovery-serving-ca' },
  ],
  builtBy: ['TargetConfigController'],
};

export const COMBINED_BUNDLES: readonly CombinedBundle[] = [CLIENT_CA, SERVER_CA];

export type CombinedDecision =
  | {
      readonly action: 'publish';
      readonly text: string;
      readonly certificates: readonly Certificate[];
      /** When the first of them expires and has to leave. */
      readonly until: Date;
    }
  | { readonly action: 'fail'; readonly error: string };

/**
 * What a combined bundle must be now (spec 20, 2.2). A source that is missing or empty is passed over; one that cannot be
 * read fails the whole, because what it held would no longer be trusted; and an empty bundle is never published (trap 10.1.4).
 */
export function combineBundles(
  { destination, sources }: CombinedBundle,
  read: (source: ObjectName) => ConfigMap | undefined,
  now: Date,
): CombinedDecision {
  const all: Certificate[] = [];
  for (const source of sources) {
    const text = read(source)?.data?.[BUNDLE_KEY] ?? '';
    if (text === '') continue;
    try {
      all.push(...readCertificates(text).certificates);
    } catch (error) {
      const message = `configmap/${source.name} in "${source.namespace}" is malformed: ${(error as Error).message}`;
      return { action: 'fail', error: message };
    }
  }
  // Unlike rotated bundles these are not sorted: the order of the sources stays.
  const certificates = firstOfEach(unexpired(all, now));
  if (certificates.length === 0) {
    const found = all.length === 0 ? 'no source holds a certificate' : `all ${all.length} certificates have expired`;
    return { action: 'fail', error: `configmap/${destination.name} would be empty: ${found}` };
  }
  const until = new Date(Math.min(...certificates.map(({ notAfter }) => notAfter.getTime())));
  return { action: 'publish', text: encodeCertificates(certificates), certificates, until };
}

/** The ConfigMap of a combined bundle. Annotations of others survive, other keys do not (spec 20, 2.2.4). */
export function combinedConfigMap({ destination }: CombinedBundle, text: string): ConfigMap {
  const annotations = { 'openshift.io/owning-component': CHAIN_ANNOTATIONS.jiraComponent as string };
  return { metadata: { ...destination, annotations }, data: { [BUNDLE_KEY]: text } };
}

/** Makes sure of a combined bundle. Throws when it cannot be combined; the stored one then stays as it is. */
export async function ensureCombinedBundle(
  bundle: CombinedBundle,
  read: (source: ObjectName) => Promise<ConfigMap | undefined>,
  context: ApplyContext,
  now: Date,
): Promise<{ changed: boolean; until: Date }> {
  const found = new Map<ObjectName, ConfigMap | undefined>();
  for (const source of bundle.sources) found.set(source, await read(source));
  const decision = combineBundles(bundle, source => found.get(source), now);
  if (decision.action === 'fail') throw new Error(decision.error);
  const { changed } = await applyConfigMap(context, combinedConfigMap(bundle, decision.text));
  return { changed, until: decision.until };
}

function firstOfEach(certificates: readonly Certificate[]): Certificate[] {
  const seen = new Set<string>();
  return certificates.filter(({ der }) => {
    const text = der.toString('base64');
    if (seen.has(text)) return false;
    seen.add(text);
    return true;
  });
}
