import type { Log } from '../../controller/log.ts';
import { ROTUNDA_NAMESPACE } from '../../kubeadm/names.ts';
import { HostedPod } from '../hosted-pod.ts';
import type { LocalNode } from '../node.ts';
import type { PartContext } from '../part.ts';

export interface HostOptions {
  /** Of which workload it is one. */
  readonly app: string;
  readonly name: string;
  readonly node: LocalNode;
  readonly signal: AbortSignal;
}

/** Shows something of ours that runs inside of this process as a pod of its node, until it ends. */
export async function hostPod(
  { kube, log }: Pick<PartContext, 'kube' | 'log'>,
  { app, name, node, signal }: HostOptions,
): Promise<{ readonly log: Log; end(): Promise<void> }> {
  const labels = { app };
  const pod = new HostedPod({ namespace: ROTUNDA_NAMESPACE, name, container: app, labels, node, kube });
  const own = pod.log(log.child({ node: node.name, program: app }));
  await node.host(pod, signal).catch((err: unknown) => own.debug({ err }, 'the pod cannot be shown'));
  return {
    log: own,
    end: () => pod.hide().catch((err: unknown) => log.debug({ err }, 'the pod is still shown')),
  };
}
