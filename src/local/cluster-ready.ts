import { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import { PODS } from '../kube/resource.ts';
import { OPERAND_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import { CLUSTER, KUBE_API_SERVERS, type KubeAPIServer } from '../kube-apiserver/resources.ts';
import { readNodeStatus } from '../staticpod/node-status.ts';
import type { LocalNode } from './node.ts';

/**
 * Resolves when all control-plane nodes run the latest revision of kube-apiserver, in the operator's eyes and in fact: after a
 * start the API still tells of the pods of before. Rejects when `signal` aborts first.
 */
export async function rolledOut(kube: Kube, controlPlane: readonly LocalNode[], signal: AbortSignal): Promise<void> {
  const operators = new Informer(kube, KUBE_API_SERVERS);
  const pods = new Informer(kube, PODS, { selection: { namespace: OPERAND_NAMESPACE } });
  const done = Promise.withResolvers<void>();
  const look = () => {
    const operator = operators.get(CLUSTER);
    if (operator !== undefined && isRolledOut(operator, controlPlane.length) && controlPlane.every(serves))
      done.resolve();
  };
  const giveUp = () => done.reject(signal.reason as Error);
  for (const informer of [operators, pods]) informer.subscribe({ add: look, update: look, delete: look });
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  operators.start();
  pods.start();
  try {
    await done.promise;
  } finally {
    signal.removeEventListener('abort', giveUp);
    await Promise.all([operators.stop(), pods.stop()]);
  }
}

/** Whether the status tells of that many nodes, all of them at the latest revision and not on the way to another. */
export function isRolledOut({ status = {} }: KubeAPIServer, controlPlane: number): boolean {
  const { latestAvailableRevision = 0, nodeStatuses = [], conditions = [] } = status;
  const has = (type: string, wanted: string) =>
    conditions.some(found => found.type === type && found.status === wanted);
  return (
    latestAvailableRevision > 0 &&
    nodeStatuses.length === controlPlane &&
    nodeStatuses
      .map(readNodeStatus)
      .every(node => node.currentRevision === latestAvailableRevision && node.targetRevision === 0) &&
    has('StaticPodsAvailable', 'True') &&
    has('NodeInstallerProgressing', 'False')
  );
}

function serves(node: LocalNode): boolean {
  const { conditions = [] } = node.runner(OPERAND_NAMESPACE, `kube-apiserver-${node.name}`)?.status() ?? {};
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}
