/** Where the operator lives, with its signers and intermediate bundles (spec 20, 0). */
export const OPERATOR_NAMESPACE = 'openshift-kube-apiserver-operator';
/** Held by the operator that works; upstream's takes the same one. */
export const OPERATOR_LEASE = { namespace: OPERATOR_NAMESPACE, name: 'kube-apiserver-operator-lock' } as const;
/** What the static pod consumes. */
export const OPERAND_NAMESPACE = 'openshift-kube-apiserver';
/** What users, the installer or other operators supply. */
export const CONFIG_NAMESPACE = 'openshift-config';
/** What operators publish for others. */
export const MANAGED_NAMESPACE = 'openshift-config-managed';
/** Where etcd runs: its members are observed there. */
export const ETCD_NAMESPACE = 'openshift-etcd';

/** The namespaces whose ConfigMaps and Secrets the operator reads and writes. */
export const WATCHED_NAMESPACES = [OPERATOR_NAMESPACE, OPERAND_NAMESPACE, CONFIG_NAMESPACE, MANAGED_NAMESPACE] as const;
