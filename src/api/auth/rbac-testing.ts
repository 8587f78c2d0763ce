import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  Subject,
} from 'kubernetes-types/rbac/v1.d.ts';
import type { RbacLister } from './rbac.ts';

/** RBAC objects for the tests of this folder. */
export const role = (name: string, rules: PolicyRule[], namespace?: string): Role & ClusterRole => ({
  metadata: namespace === undefined ? { name } : { name, namespace },
  rules,
});
export const binding = (
  name: string,
  kind: string,
  roleName: string,
  subjects: Subject[],
  namespace?: string,
): RoleBinding & ClusterRoleBinding => ({
  metadata: namespace === undefined ? { name } : { name, namespace },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: roleName },
  subjects,
});
export const USER_ALICE: Subject = { kind: 'User', name: 'alice' };

export interface World {
  roles?: Role[];
  clusterRoles?: ClusterRole[];
  roleBindings?: RoleBinding[];
  clusterRoleBindings?: ClusterRoleBinding[];
}

export function listerOf({
  roles = [],
  clusterRoles = [],
  roleBindings = [],
  clusterRoleBindings = [],
}: World): RbacLister {
  return {
    role: (namespace, name) =>
      roles.find(({ metadata }) => metadata?.namespace === namespace && metadata.name === name),
    clusterRole: name => clusterRoles.find(({ metadata }) => metadata?.name === name),
    roleBindings: namespace => roleBindings.filter(({ metadata }) => metadata?.namespace === namespace),
    clusterRoleBindings: () => clusterRoleBindings,
  };
}

export const READ_PODS: PolicyRule = { apiGroups: [''], resources: ['pods'], verbs: ['get'] };
