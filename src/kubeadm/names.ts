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
