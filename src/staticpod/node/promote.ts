import { type Clock, sleep } from '../../kube/clock.ts';
import type { Kube } from '../../kube/port.ts';
import type { KubeObject, Resource } from '../../kube/resource.ts';

/** What the startup monitor needs of an operator resource. */
export interface StaticPodOperator extends KubeObject {
  status?: { nodeStatuses?: NodeStatusEntry[] };
}

interface NodeStatusEntry {
  nodeName: string;
  currentRevision?: number;
  targetRevision?: number;
}

const ATTEMPTS = 5;
const PAUSE_MS = 10;

/** A node's target becomes its current revision, when it still is the target (spec 30, 17.1.3). */
export async function promoteNode(
  kube: Kube,
  resource: Resource<StaticPodOperator>,
  nodeName: string,
  revision: number,
  clock: Clock,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const operator = await kube.get(resource, { name: 'cluster' });
      const nodeStatuses = operator.status?.nodeStatuses ?? [];
      const isTarget = nodeStatuses.some(entry => entry.nodeName === nodeName && entry.targetRevision === revision);
      if (!isTarget) return;
      const promoted = nodeStatuses.map(entry =>
        entry.nodeName === nodeName ? { ...entry, currentRevision: revision, targetRevision: 0 } : entry,
      );
      await kube.updateStatus(resource, { ...operator, status: { ...operator.status, nodeStatuses: promoted } });
      return;
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      await sleep(clock, PAUSE_MS);
    }
  }
}
