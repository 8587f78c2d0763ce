import { dump } from 'js-yaml';
import { KUBERNETES_VERSION } from '../../../src/local/real/built-programs.ts';
import type { ClusterFields } from '../../cluster/kubeadm-program.ts';
import { API_PORT, type Place } from './rig-network.ts';

export const SOCKET = 'unix:///run/containerd/containerd.sock';
/** What kubeadm would rather have: another generation of cgroups, modules and a kernel configuration it can read. */
export const TOLERATED = ['SystemVerification'];

/** It would give up on a machine that is busy. */
const PATIENCE = '9m0s';

/** What `kubeadm init --config` is given on the first node. */
export function initConfiguration(
  place: Place,
  endpoint: string,
  certificateKey: string,
  cluster: ClusterFields,
): string {
  return documents(
    {
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'InitConfiguration',
      certificateKey,
      localAPIEndpoint: { advertiseAddress: place.address, bindPort: API_PORT },
      nodeRegistration: { name: place.name, criSocket: SOCKET, ignorePreflightErrors: TOLERATED },
      // Their images would have to be fetched; nothing that is tested here asks for them.
      skipPhases: ['addon/kube-proxy', 'addon/coredns'],
      timeouts: {
        controlPlaneComponentHealthCheck: PATIENCE,
        kubeletHealthCheck: PATIENCE,
        kubernetesAPICall: PATIENCE,
      },
    },
    {
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'ClusterConfiguration',
      kubernetesVersion: KUBERNETES_VERSION,
      controlPlaneEndpoint: endpoint,
      // A power cut here ends processes, never the machine below them.
      etcd: { local: { dataDir: '/var/lib/etcd', extraArgs: [{ name: 'unsafe-no-fsync', value: 'true' }] } },
      ...cluster,
    },
    kubeletConfiguration(),
  );
}

/** What `kubeadm config images list --config` is given. No node is known yet, and it must not look for this machine's address. */
export function imagesConfiguration(cluster: ClusterFields): string {
  const apiVersion = 'kubeadm.k8s.io/v1beta4';
  return documents(
    {
      apiVersion,
      kind: 'InitConfiguration',
      localAPIEndpoint: { advertiseAddress: '192.0.2.1', bindPort: API_PORT },
      nodeRegistration: { name: 'node', criSocket: SOCKET },
    },
    { apiVersion, kind: 'ClusterConfiguration', kubernetesVersion: KUBERNETES_VERSION, ...cluster },
  );
}

function kubeletConfiguration(): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    cgroupDriver: 'cgroupfs',
    failCgroupV1: false,
    failSwapOn: false,
    // A disk that others fill is no reason to evict anybody.
    evictionHard: { 'nodefs.available': '0%', 'nodefs.inodesFree': '0%', 'imagefs.available': '0%' },
  };
}

function documents(...found: object[]): string {
  return found.map(document => dump(document)).join('---\n');
}
