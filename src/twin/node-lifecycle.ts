import type { Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { seconds } from '../kube/duration.ts';
import { NODES, PODS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import type { Api } from './api.ts';
import type { Time } from './time.ts';

/** kube-controller-manager gives a node up that has said nothing for so long. */
export const GRACE_MS: number = seconds(40);
const BY = 'node lifecycle';

/** What the API says of a node whose kubelet has fallen silent, or is back: its pods are as ready as it is. */
export function tellOfNode(api: Api, time: Time, name: string, isReady: boolean): void {
  const status = isReady ? 'True' : 'Unknown';
  const condition = { type: 'Ready', status, lastTransitionTime: formatRfc3339(new Date(time.nowMs)) };
  const node = api.stored<Node>(NODES, { name });
  const known = node?.status?.conditions?.find(({ type }) => type === 'Ready');
  if (node === undefined || known?.status === status) return;
  api.update(BY, NODES, { ...node, status: { ...node.status, conditions: [condition] } }, 'status');
  if (isReady) return;
  for (const pod of api.all<Pod>(PODS, { fieldSelector: `spec.nodeName=${name}` })) {
    if (pod.status?.phase !== 'Running') continue;
    const conditions = [{ ...condition, status: 'False' }];
    api.update(BY, PODS, { ...pod, status: { ...pod.status, conditions } }, 'status');
  }
}
