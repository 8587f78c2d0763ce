import { DISK } from './disk/disk.ts';
import { ETCD_LEAVES } from './etcd/leaves.ts';
import { MERGE } from './ignition/merge.ts';
import { IGNITION } from './ignition/read.ts';
import type { Judged } from './judged.ts';
import { BUNDLES } from './kube-apiserver/bundles.ts';
import { TARGET_CONFIG } from './kube-apiserver/target-config.ts';
import { DRAIN } from './pools/drain.ts';
import { MEMBERSHIP } from './pools/membership.ts';
import { NODES } from './pools/nodes.ts';
import { CERT_SYNC } from './static-pod/cert-sync.ts';
import { INSTALLER } from './static-pod/installer.ts';
import { PRUNE } from './static-pod/prune.ts';
import { RESOURCE_SYNC } from './static-pod/resource-sync.ts';
import { CONTAINER_RUNTIME } from './sub-config/container-runtime.ts';
import { KUBELET } from './sub-config/kubelet.ts';
import { MANAGED_NAMES } from './sub-config/managed-name.ts';
import { REGISTRIES } from './sub-config/registries.ts';
import { UPDATE } from './update/update.ts';

/** Everything upstream is asked about. */
export const FUNCTIONS: readonly Judged[] = [
  ...IGNITION,
  ...MERGE,
  ...KUBELET,
  CONTAINER_RUNTIME,
  ...REGISTRIES,
  ...MANAGED_NAMES,
  ...NODES,
  MEMBERSHIP,
  DRAIN,
  ...UPDATE,
  DISK,
  ...INSTALLER,
  PRUNE,
  CERT_SYNC,
  RESOURCE_SYNC,
  ...TARGET_CONFIG,
  BUNDLES,
  ETCD_LEAVES,
];
