import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import {
  CA_BUNDLE_KEY,
  CONFIG_MANAGED_NAMESPACE,
  CONFIG_NAMESPACE,
  KUBE_APISERVER_OPERATOR_NAMESPACE,
} from '../../machine-config-api/names.ts';
import { parseCertificate } from '../../pki/certificate.ts';
import { isPkiError } from '../../pki/error.ts';
import { encodePem, pemBlocks } from '../../pki/pem-block.ts';
import { distinguishedName } from '../distinguished-name.ts';
import { readBytes } from './config-map.ts';
import { SourceError } from './error.ts';

export const TO_KUBELET_SIGNER = 'kube-apiserver-to-kubelet-signer';

/**
 * The first bundle with every certificate whose subject contains `subject` replaced by the whole second bundle; the others
 * are written anew (spec 50, KA-2). Text outside of blocks is lost; a block that is no certificate is passed over, where
 * 4.16 never returns (KA-3).
 */
export function replaceCertificate(initial: Buffer, replacement: Buffer, subject: string): Buffer {
  const parts: Buffer[] = [];
  for (const block of pemBlocks(initial.toString('latin1'))) {
    if (!block.ok) continue;
    const name = subjectOf(block.bytes);
    if (name === undefined) continue;
    parts.push(name.includes(subject) ? replacement : Buffer.from(encodePem(block.type, block.bytes), 'latin1'));
  }
  return Buffer.concat(parts);
}

function subjectOf(der: Buffer): string | undefined {
  try {
    return distinguishedName(parseCertificate(der).subject.der);
  } catch (error) {
    if (isPkiError(error)) return undefined;
    throw error;
  }
}

/** Where the CA of those who may connect to kubelets comes from. */
export interface KubeletCaSources {
  /** Whether ConfigMap `kube-system/bootstrap` is there. */
  readonly bootstrapComplete: boolean;
  /** Whether the operator is bringing a cluster up for the first time (spec 50, OP-3). */
  readonly bringingUp: boolean;
  readonly configMap: (namespace: string, name: string) => ConfigMap | undefined;
}

/** The kubelet's client CA (spec 50, KA-1 and KA-2). Throws `SourceError`. */
export function kubeletClientCa({ bootstrapComplete, bringingUp, configMap }: KubeletCaSources): Buffer {
  if (bootstrapComplete && !bringingUp) return required(CONFIG_MANAGED_NAMESPACE, CLIENT_CA, configMap);
  const initial = required(CONFIG_NAMESPACE, INITIAL_SERVER_CA, configMap);
  const current = configMap(KUBE_APISERVER_OPERATOR_NAMESPACE, TO_KUBELET_CLIENT_CA);
  if (current === undefined || !hasKey(current)) return initial;
  return replaceCertificate(initial, readBytes(current, CA_BUNDLE_KEY), TO_KUBELET_SIGNER);
}

export const CLIENT_CA = 'kube-apiserver-client-ca';
export const INITIAL_SERVER_CA = 'initial-kube-apiserver-server-ca';
export const TO_KUBELET_CLIENT_CA = 'kube-apiserver-to-kubelet-client-ca';

function required(namespace: string, name: string, configMap: KubeletCaSources['configMap']): Buffer {
  const found = configMap(namespace, name);
  const object = `configmap ${namespace}/${name}`;
  if (found === undefined) throw new SourceError(object, '', `${object} not found`);
  return readBytes({ ...found, metadata: { ...found.metadata, namespace, name } }, CA_BUNDLE_KEY);
}

function hasKey({ data, binaryData }: ConfigMap): boolean {
  return [data, binaryData].some(part => Object.hasOwn(part ?? {}, CA_BUNDLE_KEY));
}
