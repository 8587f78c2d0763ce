import type { Location, SyncSource } from '../staticpod/resource-sync.ts';
import {
  CONFIG_NAMESPACE as CONFIG,
  MANAGED_NAMESPACE as MANAGED,
  OPERAND_NAMESPACE as OPERAND,
} from './namespaces.ts';

/** One row of the copy table (spec 20, 2.4). */
export interface CopyRule {
  readonly kind: 'configmap' | 'secret';
  readonly destination: Location;
  /** Absent: the destination is to be deleted. */
  readonly source: SyncSource | undefined;
}

const ETCD_OPERATOR = 'cluster-etcd-operator';
const CONTROLLER_MANAGER_OPERATOR = 'cluster-kube-controller-manager-operator';

/** Copies that are always made. The others depend on the cluster's configuration: see `observe/`. */
export const FIXED_COPIES: readonly CopyRule[] = [
  copy('configmap', { ...at(CONFIG, 'etcd-serving-ca'), provider: ETCD_OPERATOR }, at(OPERAND, 'etcd-serving-ca')),
  copy('secret', { ...at(CONFIG, 'etcd-client'), provider: ETCD_OPERATOR }, at(OPERAND, 'etcd-client')),
  copy(
    'configmap',
    { ...at(MANAGED, 'sa-token-signing-certs'), provider: CONTROLLER_MANAGER_OPERATOR },
    at(OPERAND, 'sa-token-signing-certs'),
  ),
  copy('configmap', at(MANAGED, 'kube-apiserver-aggregator-client-ca'), at(OPERAND, 'aggregator-client-ca')),
  copy(
    'configmap',
    { ...at(MANAGED, 'csr-controller-ca'), provider: CONTROLLER_MANAGER_OPERATOR },
    at(OPERAND, 'kubelet-serving-ca'),
  ),
  copy('configmap', at(OPERAND, 'client-ca'), at(MANAGED, 'kube-apiserver-client-ca')),
  copy('configmap', at(OPERAND, 'kubelet-serving-ca'), at(MANAGED, 'kubelet-serving-ca')),
  copy('configmap', at(OPERAND, 'kube-apiserver-server-ca'), at(MANAGED, 'kube-apiserver-server-ca')),
  copy('configmap', at(OPERAND, 'bound-sa-token-signing-certs'), at(MANAGED, 'bound-sa-token-signing-certs')),
];

/** Destinations that follow the configuration, and what decides about them. */
export const OBSERVED_COPIES = {
  userClientCA: { kind: 'configmap', destination: at(OPERAND, 'user-client-ca') },
  oauthMetadata: { kind: 'configmap', destination: at(OPERAND, 'oauth-metadata') },
  cloudConfig: { kind: 'configmap', destination: at(OPERAND, 'cloud-config') },
  webhookAuthenticator: { kind: 'secret', destination: at(OPERAND, 'webhook-authenticator') },
  encryptionConfig: {
    kind: 'secret',
    destination: at(OPERAND, 'encryption-config'),
    source: at(MANAGED, 'encryption-config-openshift-kube-apiserver'),
  },
} as const;

export function at(namespace: string, name: string): Location {
  return { namespace, name };
}

function copy(kind: CopyRule['kind'], source: SyncSource, destination: Location): CopyRule {
  return { kind, source, destination };
}
