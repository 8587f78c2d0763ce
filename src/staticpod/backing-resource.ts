import type { ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { ClusterRoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import { errorText } from '../controller/aggregate-error.ts';
import { isManaged } from '../controller/management-state.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { type ApplyContext, applyObject, applyServiceAccount } from '../kube/apply.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { keyOf, type Resource, resource } from '../kube/resource.ts';
import { condition } from './condition.ts';
import type { StaticPodOperatorConfig } from './config.ts';
import { INSTALLER_ACCOUNT } from './node-pod.ts';
import { type Objects, writeIfNeeded } from './objects.ts';
import type { StaticPodOperator } from './operator.ts';

export interface BackingResourceOptions {
  readonly config: Pick<StaticPodOperatorConfig, 'operandNamespace'>;
  readonly operator: StaticPodOperator;
  readonly kube: Kube;
  readonly cached: Objects;
}

export const CLUSTER_ROLE_BINDINGS: Resource<ClusterRoleBinding> = resource<ClusterRoleBinding>(
  'rbac.authorization.k8s.io/v1',
  'ClusterRoleBinding',
  'clusterrolebindings',
  false,
);

const CONDITION = 'BackingResourceControllerDegraded';

/** Keeps the account that installer and pruner pods run under, and its rights (spec 30, 19.1 to 19.3). */
export function backingResourceReconcile({ config, operator, kube, cached }: BackingResourceOptions): Reconcile {
  const { operandNamespace: namespace } = config;
  const parts: readonly [file: string, apply: (context: ApplyContext) => Promise<unknown>][] = [
    ['manifests/installer-sa.yaml', context => applyServiceAccount(context, installerAccount(namespace))],
    [
      'manifests/installer-cluster-rolebinding.yaml',
      context => applyBinding(context, installerBinding(namespace), `rotunda:${namespace}-installer`),
    ],
  ];
  return async (_key, { events, signal }) => {
    const { spec = {} } = await operator.read(signal);
    if (!isManaged(spec.managementState)) return;
    const errors: string[] = [];
    for (const [file, apply] of parts) {
      try {
        await writeIfNeeded(cached, { kube, events, signal }, apply);
      } catch (error) {
        errors.push(`"${file}" (string): ${errorText(error)}\n`);
      }
    }
    const message = errors.join('');
    await operator.setConditions(
      [
        message === ''
          ? condition(CONDITION, 'False', 'AsExpected')
          : condition(CONDITION, 'True', 'SyncError', message),
      ],
      signal,
    );
    if (message !== '') throw new Error(message);
  };
}

/**
 * Keeps who is bound. The role of a binding cannot be changed, so one that is there keeps its role. Where it is not, and whoever
 * installed us has given lesser rights under a name of ours, it is not made: upstream, which wants its own role in a binding of this
 * name, must find none or its own.
 */
export async function applyBinding(
  context: ApplyContext,
  required: ClusterRoleBinding,
  lesser: string,
): Promise<unknown> {
  const { kube, signal } = context;
  const look = (name: string) => getIfPresent(kube, CLUSTER_ROLE_BINDINGS, { name }, { signal });
  const found = await look(keyOf(required).name);
  if (found === undefined && (await look(lesser)) !== undefined) return undefined;
  return applyObject(context, CLUSTER_ROLE_BINDINGS, { ...required, roleRef: found?.roleRef ?? required.roleRef });
}

function installerAccount(namespace: string): ServiceAccount {
  return { metadata: { namespace, name: INSTALLER_ACCOUNT } };
}

function installerBinding(namespace: string): ClusterRoleBinding {
  return {
    metadata: { name: `system:openshift:operator:${namespace}-installer` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', namespace, name: INSTALLER_ACCOUNT }],
  };
}
