import type { DaemonSet } from 'kubernetes-types/apps/v1.d.ts';
import type { Namespace, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import {
  apiVersionOf,
  DEPLOYMENTS,
  type KubeObject,
  NAMESPACES,
  type Resource,
  resource,
  SERVICE_ACCOUNTS,
} from '../../kube/resource.ts';
import { PKI_NAMESPACE, ROTUNDA_NAMESPACE } from '../names.ts';
import { AGENTS, OPERATOR } from './accounts.ts';
import { ADOPTION_POLICIES, ADOPTION_POLICY_BINDINGS, POLICIES, POLICY_BINDINGS } from './policies.ts';
import { GRANTS, type Grant } from './rights.ts';
import { agentDaemonSets, operatorDeployment } from './workloads.ts';

export interface Installation {
  readonly image: string;
  readonly controlPlaneNodes: number;
  /** Of the nodes. */
  readonly certificatesDirectory: string;
  /** Whether the operator may restart workloads in a hand-over (KA-9). */
  readonly restartsPods: boolean;
}

/** An object and where it belongs. */
export interface InstalledObject {
  readonly resource: Resource;
  readonly object: KubeObject;
  /** Which file of `manifests/kubeadm` it is in. */
  readonly part: Part;
  /** What each rule of a role is for, in their order. */
  readonly reasons?: readonly string[] | undefined;
}

export type Part = 'namespaces' | 'rbac' | 'policies' | 'agents' | 'operator';

const GROUP = 'rbac.authorization.k8s.io';
export const DAEMON_SETS = resource<DaemonSet>('apps/v1', 'DaemonSet', 'daemonsets');
const ROLES = resource<Role>(`${GROUP}/v1`, 'Role', 'roles');
const ROLE_BINDINGS = resource<RoleBinding>(`${GROUP}/v1`, 'RoleBinding', 'rolebindings');
const CLUSTER_ROLES = resource<ClusterRole>(`${GROUP}/v1`, 'ClusterRole', 'clusterroles', false);
const CLUSTER_ROLE_BINDINGS = resource<ClusterRoleBinding>(
  `${GROUP}/v1`,
  'ClusterRoleBinding',
  'clusterrolebindings',
  false,
);

/** What adoption installs, in the order in which it is applied: nobody runs before the policy holds that restrains it (spec 80, KA-2). */
export function objectsOf(installation: Installation): InstalledObject[] {
  const { image, controlPlaneNodes, certificatesDirectory, restartsPods } = installation;
  const grants = GRANTS.filter(({ isForRestarts = false }) => restartsPods || !isForRestarts);
  return [
    ...NAMESPACES_OF_OURS.map(object => entry('namespaces', NAMESPACES, object)),
    ...[OPERATOR, ...AGENTS].map(name => entry('rbac', SERVICE_ACCOUNTS, account(name))),
    ...grants.flatMap(granting),
    ...ADOPTION_POLICIES.map(object => entry('policies', POLICIES, object)),
    ...ADOPTION_POLICY_BINDINGS.map(object => entry('policies', POLICY_BINDINGS, object)),
    ...agentDaemonSets(image, certificatesDirectory).map(object => entry('agents', DAEMON_SETS, object)),
    entry('operator', DEPLOYMENTS, operatorDeployment(image, controlPlaneNodes)),
  ];
}

/** What only some installations have, and this one does not. */
export function objectsToRemove({ restartsPods }: Pick<Installation, 'restartsPods'>): InstalledObject[] {
  return restartsPods ? [] : GRANTS.filter(({ isForRestarts }) => isForRestarts).flatMap(granting);
}

const PRIVILEGED = Object.fromEntries(
  ['enforce', 'audit', 'warn'].map(mode => [`pod-security.kubernetes.io/${mode}`, 'privileged']),
);
const RESTRICTED = Object.fromEntries(
  ['enforce', 'audit', 'warn'].map(mode => [`pod-security.kubernetes.io/${mode}`, 'restricted']),
);

const NAMESPACES_OF_OURS: readonly Namespace[] = [
  // Agents are root on their node.
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ROTUNDA_NAMESPACE, labels: PRIVILEGED } },
  // No pods belong there.
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: PKI_NAMESPACE, labels: RESTRICTED } },
];

function account(name: string): ServiceAccount {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: ROTUNDA_NAMESPACE, name } };
}

function granting({ name, namespace, accounts, rules }: Grant): InstalledObject[] {
  const metadata = namespace === undefined ? { name } : { namespace, name };
  const [roles, bindings] = namespace === undefined ? [CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS] : [ROLES, ROLE_BINDINGS];
  const apiVersion = apiVersionOf(roles);
  const role = { apiVersion, kind: roles.kind, metadata, rules: rules.map(({ rule }) => rule) } as Role;
  const binding = {
    apiVersion,
    kind: bindings.kind,
    metadata,
    roleRef: { apiGroup: GROUP, kind: roles.kind, name },
    subjects: accounts.map(account => ({ kind: 'ServiceAccount', namespace: ROTUNDA_NAMESPACE, name: account })),
  } as RoleBinding;
  return [{ ...entry('rbac', roles, role), reasons: rules.map(({ why }) => why) }, entry('rbac', bindings, binding)];
}

function entry(part: Part, of: Resource, object: KubeObject): InstalledObject {
  return { part, resource: of, object };
}
