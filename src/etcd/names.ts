/** Where etcd runs, and where everything that is true about its certificates is kept (spec 40, 1.1). */
export const ETCD_NAMESPACE = 'openshift-etcd';
/** Where the operator runs and finds its own client certificate. */
export const OPERATOR_NAMESPACE = 'openshift-etcd-operator';
/** Held by the operator that works; upstream's takes the same one. */
export const OPERATOR_LEASE = { namespace: OPERATOR_NAMESPACE, name: 'openshift-cluster-etcd-operator-lock' } as const;
/** Holds the signers in use, and copies for the API servers. */
export const CONFIG_NAMESPACE = 'openshift-config';
export const SYSTEM_NAMESPACE = 'kube-system';
/** Where kube-apiserver keeps its own copy of the etcd CA. */
export const KUBE_APISERVER_NAMESPACE = 'openshift-kube-apiserver';

/** All leaves of all nodes in one Secret, so that a rotation is one change (spec 40, 2.5). */
export const ALL_CERTS = 'etcd-all-certs';
/** Both CA bundles in one ConfigMap (spec 40, 12.1). */
export const ALL_BUNDLES = 'etcd-all-bundles';
export const ENDPOINTS = 'etcd-endpoints';
export const POD_CONFIG_MAP = 'etcd-pod';
/** The member of the installer's temporary machine. */
export const BOOTSTRAP_MEMBER = 'etcd-bootstrap';
/** Says in `kube-system` how far the installation is. */
export const BOOTSTRAP_CONFIG_MAP = 'bootstrap';

/** Which revision was current when the bundles last changed (spec 40, 12.1). */
export const ROLLOUT_REVISION = 'openshift.io/ceo-bundle-rollout-revision';
/** Since when a leaf belongs to no node. */
export const GRACE_START = 'openshift.io/ceo-delete-grace-start';
/** The address of the installer's temporary member, on `etcd-endpoints`. */
export const BOOTSTRAP_IP = 'alpha.installer.openshift.io/etcd-bootstrap';
/** On `etcd-endpoints`, nodes in the order in which they join: the first begins a new cluster (`founding.ts`). */
export const FOUNDING = 'rotunda.dev/etcd-founding';
/** On the namespace: fewer members will do while installing. */
export const DELAYED_BOOTSTRAP = ['openshift.io/delayed-ha-bootstrap', 'openshift.io/delayed-bootstrap'] as const;
export const OWNING_COMPONENT = 'openshift.io/owning-component';
/** What the aggregates carry there; single objects carry it in lower case (spec 40, T-10). */
export const AGGREGATE_OWNER = 'Etcd';

export const CLIENT_PORT = 2379;
export const PEER_PORT = 2380;
export const METRICS_PORT = 9978;
export const METRICS_PROXY_PORT = 9979;
export const READYZ_PORT = 9980;
