import type { Namespace, Secret, Service, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { ClusterRole, ClusterRoleBinding, RoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import { errorText } from '../controller/aggregate-error.ts';
import { isManaged } from '../controller/management-state.ts';
import { type Reconcile, RetryRequest } from '../controller/reconcile.ts';
import {
  type ApplyContext,
  applyConfigMap,
  applyNamespace,
  applyObject,
  applySecret,
  applyServiceAccount,
  deleteObject,
} from '../kube/apply.ts';
import { semanticallyEqual } from '../kube/equality.ts';
import { isConflict } from '../kube/error.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { type KubeObject, type Resource, resource, SERVICES } from '../kube/resource.ts';
import { applyBinding } from '../staticpod/backing-resource.ts';
import { condition } from '../staticpod/condition.ts';
import { type Objects, writeIfNeeded } from '../staticpod/objects.ts';
import type { StaticPodOperator } from '../staticpod/operator.ts';
import { IN_POD_KUBECONFIGS } from './kubeconfigs.ts';
import { OPERAND_NAMESPACE } from './namespaces.ts';
import { CHECK_ENDPOINTS } from './operand-objects.ts';
import { API_PORT, CHECK_ENDPOINTS_PORT, INSECURE_READYZ_PORT } from './target-config/pod.ts';
import { ACCOUNT_NAME, RECOVERY_ACCOUNT, RECOVERY_TOKEN } from './target-config/recovery-token.ts';

export interface StaticResourceOptions {
  readonly kube: Kube;
  readonly operator: StaticPodOperator;
  readonly cached: Objects;
}

const CONDITION = 'KubeAPIServerStaticResourcesDegraded';

/** Keeps the objects of the operand that never vary (spec 20, 0.1 and 5.3). */
export function staticResourceReconcile({ kube, operator, cached }: StaticResourceOptions): Reconcile {
  return async (_key, { events, signal }) => {
    const { spec = {} } = await operator.read(signal);
    if (!isManaged(spec.managementState)) return;
    const errors: string[] = [];
    let lost: unknown;
    for (const [name, apply] of STATIC_RESOURCES) {
      try {
        await writeIfNeeded(cached, { kube, events, signal }, apply);
      } catch (error) {
        if (isConflict(error)) lost = error;
        else errors.push(`"${name}": ${errorText(error)}`);
      }
    }
    const message = errors.join('\n');
    await operator.setConditions(
      [
        message === ''
          ? condition(CONDITION, 'False', 'AsExpected')
          : condition(CONDITION, 'True', 'SyncError', message),
      ],
      signal,
    );
    if (message !== '' || lost !== undefined) throw new RetryRequest(message || errorText(lost));
  };
}

const CLUSTER_ROLES = resource<ClusterRole>('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles', false);
const ROLE_BINDINGS = resource<RoleBinding>('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings');
const RBAC = 'rbac.authorization.k8s.io';

const CHECKER = 'system:openshift:controller:check-endpoints';
const inOperand = (name: string) => ({ namespace: OPERAND_NAMESPACE, name });

const namespace: Namespace = {
  metadata: {
    name: OPERAND_NAMESPACE,
    annotations: { 'openshift.io/node-selector': '', 'workload.openshift.io/allowed': 'management' },
    labels: {
      'openshift.io/run-level': '0',
      'openshift.io/cluster-monitoring': 'true',
      'pod-security.kubernetes.io/enforce': 'privileged',
      'pod-security.kubernetes.io/audit': 'privileged',
      'pod-security.kubernetes.io/warn': 'privileged',
    },
  },
};

const service: Service = {
  metadata: inOperand('apiserver'),
  spec: {
    type: 'ClusterIP',
    selector: { apiserver: 'true' },
    ports: [
      { name: 'https', port: 443, targetPort: API_PORT, protocol: 'TCP' },
      { name: 'insecure-readyz', port: INSECURE_READYZ_PORT, targetPort: INSECURE_READYZ_PORT, protocol: 'TCP' },
      { name: 'check-endpoints', port: CHECK_ENDPOINTS_PORT, targetPort: CHECK_ENDPOINTS_PORT, protocol: 'TCP' },
    ],
  },
};

const recoveryAccount: ServiceAccount = { metadata: RECOVERY_ACCOUNT };

/** Filled by the cluster's token controller. */
const recoveryToken: Secret = {
  metadata: { ...RECOVERY_TOKEN, annotations: { [ACCOUNT_NAME]: RECOVERY_ACCOUNT.name } },
  type: 'kubernetes.io/service-account-token',
};

const LESSER_RECOVERY_RIGHTS = 'rotunda:kube-apiserver-recovery';

const recoveryRights: ClusterRoleBinding = {
  metadata: { name: 'system:openshift:operator:kube-apiserver-recovery' },
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'cluster-admin' },
  subjects: [{ kind: 'ServiceAccount', ...RECOVERY_ACCOUNT }],
};

/** As upstream has it, word for word: another order would be written anew at every change of hands. */
const checkerRole: ClusterRole = {
  metadata: { name: CHECKER },
  rules: [
    {
      apiGroups: ['controlplane.operator.openshift.io'],
      resources: ['podnetworkconnectivitychecks'],
      verbs: ['get', 'list', 'watch'],
    },
    {
      apiGroups: ['controlplane.operator.openshift.io'],
      resources: ['podnetworkconnectivitychecks/status'],
      verbs: ['get', 'list', 'patch', 'update', 'watch'],
    },
    { apiGroups: [''], resources: ['pods', 'secrets'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['events'], verbs: ['get', 'list', 'watch', 'create', 'update', 'patch'] },
  ],
};

/** The check-endpoints container is this user by its certificate; there is no such account. */
const checkerRights: RoleBinding = {
  metadata: inOperand(CHECKER),
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: CHECKER },
  subjects: [{ apiGroup: RBAC, kind: 'User', name: `system:serviceaccount:${OPERAND_NAMESPACE}:${CHECK_ENDPOINTS}` }],
};

type Apply = (context: ApplyContext) => Promise<unknown>;

/** By name for people, in the order in which they are needed. */
export const STATIC_RESOURCES: readonly (readonly [name: string, apply: Apply])[] = [
  [`namespace/${OPERAND_NAMESPACE}`, context => applyNamespace(context, namespace)],
  object('service/apiserver', SERVICES, service),
  [`serviceaccount/${RECOVERY_ACCOUNT.name}`, context => applyServiceAccount(context, recoveryAccount)],
  [`secret/${RECOVERY_TOKEN.name}`, context => applySecret(context, recoveryToken)],
  [
    `clusterrolebinding/${recoveryRights.metadata?.name}`,
    context => applyBinding(context, recoveryRights, LESSER_RECOVERY_RIGHTS),
  ],
  ...IN_POD_KUBECONFIGS.map((configMap): [string, Apply] => [
    `configmap/${configMap.metadata?.name}`,
    context => applyConfigMap(context, configMap),
  ]),
  object(`clusterrole/${CHECKER}`, CLUSTER_ROLES, checkerRole),
  [`rolebinding/${CHECKER}`, applyCheckerRights],
];

/** The role of a binding cannot be changed: one to another role, as we once made it, is made anew. */
async function applyCheckerRights(context: ApplyContext): Promise<unknown> {
  const { kube, signal } = context;
  const found = await getIfPresent(kube, ROLE_BINDINGS, inOperand(CHECKER), { signal });
  if (found !== undefined && !semanticallyEqual(found.roleRef, checkerRights.roleRef)) {
    await deleteObject(context, ROLE_BINDINGS, inOperand(CHECKER));
  }
  return applyObject(context, ROLE_BINDINGS, checkerRights);
}

function object<T extends KubeObject>(name: string, kind: Resource<T>, required: T): readonly [string, Apply] {
  return [name, context => applyObject(context, kind, required)];
}
