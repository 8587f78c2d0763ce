import { etcdPart } from './etcd-part.ts';
import { kubeApiserverPart } from './kube-apiserver-part.ts';
import { kubeletPart } from './kubelet-part.ts';
import { machineConfigPart } from './machine-config-part.ts';
import type { ClusterPart } from './part.ts';

/** What `rotunda up` starts besides the API and the nodes, in the order in which it is shown. All of it comes up at the same time. */
export const PARTS: readonly ClusterPart[] = [etcdPart, kubeApiserverPart, machineConfigPart, kubeletPart];
