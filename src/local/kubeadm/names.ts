import { KUBERNETES_VERSION } from '../real/built-programs.ts';

export const VERSION_OF_KUBERNETES: string = KUBERNETES_VERSION;
export const CLUSTER_NAME = 'kubernetes';
export const SERVICE_NETWORK = '10.96.0.0/12';
/** What the service `kubernetes` has in that network. */
export const FIRST_SERVICE_ADDRESS = '10.96.0.1';
/** Where `controlPlaneEndpoint` is: a load balancer of this machine. */
export const ENDPOINT_HOST = '127.0.0.1';
/** The ports of kubeadm. */
export const MANAGER_PORT = 10_257;
export const SCHEDULER_PORT = 10_259;
export const ETCD_METRICS_PORT = 2381;
export const KUBELET_PORT = 10_250;
/** Files besides those of `kubeadm/names.ts`. */
export const CA_BUNDLES = '/etc/ssl/certs';
export const ETCD_DATA = '/var/lib/etcd';
