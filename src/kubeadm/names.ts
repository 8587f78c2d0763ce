/** Names that kubeadm gives to folders and objects (spec 80, 1). */

export const KUBERNETES_DIRECTORY = '/etc/kubernetes';
/** Unless `certificatesDir` of ClusterConfiguration says otherwise. */
export const CERTIFICATES_DIRECTORY = `${KUBERNETES_DIRECTORY}/pki`;
/** Where a kubelet keeps its own certificates. */
export const KUBELET_DIRECTORY = '/var/lib/kubelet/pki';
export const KUBELET_CLIENT_FILE = 'kubelet-client-current.pem';

const SYSTEM = 'kube-system';
/** ClusterConfiguration, under the key of that name. */
export const KUBEADM_CONFIG = { namespace: SYSTEM, name: 'kubeadm-config' } as const;
/** A kubeconfig with the CA, for whoever joins; everybody may read it. */
export const CLUSTER_INFO = { namespace: 'kube-public', name: 'cluster-info' } as const;
/** The CA for pods, in every namespace. */
export const ROOT_CA = { namespace: SYSTEM, name: 'kube-root-ca.crt' } as const;
/** What kube-apiserver checks clients and front proxies with, as it has loaded it. */
export const AUTHENTICATION = { namespace: SYSTEM, name: 'extension-apiserver-authentication' } as const;
/** Static pods have the label `component=<process>`. */
export const STATIC_POD_NAMESPACE = SYSTEM;

export const KUBE_APISERVER_PORT = 6443;
export const ETCD_CLIENT_PORT = 2379;
export const ETCD_PEER_PORT = 2380;

/** Where adoption puts agents and operator, and where what they share is: signers, and what is wanted of each node (spec 80, KA-2). */
export const ROTUNDA_NAMESPACE = 'rotunda';
export const PKI_NAMESPACE = 'rotunda-pki';
/** Files of our own beside kubeadm's: below the folder of certificates. */
export const OWN_DIRECTORY = 'rotunda';
/** Annotation on `kubeadm-config` of a cluster that is only for trying: how long a day of its validities lasts. */
export const ROTATION_DAY = 'rotunda.dev/rotation-day';
/** Annotation in the manifest of a static pod: what its process is to have read when it started (spec 80, KA-6). */
export const RESTART = 'rotunda.dev/restart';
export const CONTROL_PLANE_LABEL = 'node-role.kubernetes.io/control-plane';
