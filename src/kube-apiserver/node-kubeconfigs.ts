import type { Reconcile } from '../controller/reconcile.ts';
import { applySecret } from '../kube/apply.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import { type Objects, writeIfNeeded } from '../staticpod/objects.ts';
import type { StaticPodOperator } from '../staticpod/operator.ts';
import { nodeKubeconfigs } from './kubeconfigs.ts';
import { OPERAND_NAMESPACE, OPERATOR_NAMESPACE } from './namespaces.ts';
import { CLUSTER, INFRASTRUCTURES } from './resources.ts';
import { isToAct } from './target-config/controller.ts';

export interface NodeKubeconfigOptions {
  readonly kube: Kube;
  readonly operator: StaticPodOperator;
  readonly cached: Objects;
}

/** Keeps the kubeconfigs that lie on control-plane nodes (spec 20, 8.1). */
export function nodeKubeconfigReconcile({ kube, operator, cached }: NodeKubeconfigOptions): Reconcile {
  return async (_key, context) => {
    const { spec = {} } = await operator.read(context.signal);
    if (!isToAct(spec.managementState, context)) return;
    const { events, signal } = context;
    let required: ReturnType<typeof nodeKubeconfigs>;
    try {
      required = nodeKubeconfigs({
        client: await cached.get(SECRETS, { namespace: OPERATOR_NAMESPACE, name: 'node-system-admin-client' }),
        serverCA: await cached.get(CONFIG_MAPS, { namespace: OPERAND_NAMESPACE, name: 'kube-apiserver-server-ca' }),
        infrastructure: await cached.get(INFRASTRUCTURES, CLUSTER),
      });
    } catch (error) {
      throw new Error(`"secret/node-kubeconfigs": ${(error as Error).message}`, { cause: error });
    }
    await writeIfNeeded(cached, { kube, events, signal }, apply => applySecret(apply, required));
  };
}
