/** Files the certificate writer keeps, as paths of the host (spec 60, section 2). */

/** CAs whose client certificates the kubelet takes; the kubelet reloads it by itself. */
export const KUBELET_CA = '/etc/kubernetes/kubelet-ca.crt';
export const CLOUD_CA = '/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem';
/** What the kubelet bootstraps with. */
export const BOOTSTRAP_KUBECONFIG = '/etc/kubernetes/kubeconfig';
/** What the kubelet, and this agent when it writes its node, work with. */
export const LIVE_KUBECONFIG = '/var/lib/kubelet/kubeconfig';
/** Where cert-syncer puts what kube-apiserver works with on a control-plane node, one directory in place of the other as a whole. */
const SYNCED_SECRETS = '/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets';
/** What administrators use on a control-plane node. */
export const NODE_KUBECONFIGS: string = `${SYNCED_SECRETS}/node-kubeconfigs`;
/** The certificates that processes of a control-plane node show as clients, and which processes these are. */
export const CLIENT_CERTIFICATES: readonly { readonly process: string; readonly file: string }[] = [
  { process: 'kube-apiserver', file: `${SYNCED_SECRETS}/aggregator-client/tls.crt` },
  { process: 'kube-apiserver', file: `${SYNCED_SECRETS}/kubelet-client/tls.crt` },
  { process: 'check-endpoints', file: `${SYNCED_SECRETS}/check-endpoints-client-cert-key/tls.crt` },
  { process: 'node administrator', file: `${SYNCED_SECRETS}/control-plane-node-admin-client-cert-key/tls.crt` },
];
export const REGISTRY_CAS = '/etc/docker/certs.d';
/** Merged credentials for pulling OS images. */
export const OS_PULL_SECRET = '/etc/mco/internal-registry-pull-secret.json';
/** Where rpm-ostree looks for credentials: a link. */
export const OSTREE_AUTH = '/run/ostree/auth.json';
export const CLUSTER_PULL_SECRET = '/var/lib/kubelet/config.json';
/** One directory a pool, from the Secrets of MachineOSConfigs. */
export const MOUNTED_PULL_SECRETS = '/run/secrets/os-image-pull-secrets';

/** Ours: a restart of the kubelet that is due, so that a crash at any point of it is made good. */
export const KUBELET_RESTART_RECORD = '/etc/machine-config-daemon/rotunda-kubelet-restart.json';
/** Ours: the CAs in its kubeconfig when the kubelet was started last. */
export const KUBELET_CAS_RECORD = '/etc/machine-config-daemon/rotunda-kubelet-cas.json';

export const KUBELET = 'kubelet.service';

export const CA_MODE = 0o644;
export const SECRET_MODE = 0o600;
/** A bundle, kubeconfig or pull secret larger than this is not one. */
export const LARGEST_FILE_BYTES = 8 * 1024 * 1024;
