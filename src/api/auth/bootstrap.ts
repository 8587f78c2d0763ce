import type { ClusterRole, ClusterRoleBinding, Subject } from 'kubernetes-types/rbac/v1.d.ts';
import { staleAggregates } from './aggregation.ts';
import { BOOTSTRAP_ROLES } from './bootstrap-roles.ts';
import { RBAC_GROUP } from './rbac.ts';
import { SYSTEM_AUTHENTICATED, SYSTEM_MASTERS, SYSTEM_SERVICE_ACCOUNTS, SYSTEM_UNAUTHENTICATED } from './user.ts';

export interface BootstrapObjects {
  readonly clusterRoles: readonly ClusterRole[];
  readonly clusterRoleBindings: readonly ClusterRoleBinding[];
}

/** The roles and bindings a new cluster is created with, aggregated roles already filled; fresh copies. */
export function bootstrapObjects(): BootstrapObjects {
  const roles = structuredClone([...BOOTSTRAP_ROLES]);
  const filled = new Map(staleAggregates(roles).map(role => [role.metadata?.name, role]));
  return {
    clusterRoles: roles.map(role => filled.get(role.metadata?.name) ?? role),
    clusterRoleBindings: structuredClone([...BINDINGS]),
  };
}

const BINDINGS: readonly ClusterRoleBinding[] = [
  binding('cluster-admin', group(SYSTEM_MASTERS)),
  binding('system:monitoring', group('system:monitoring')),
  binding('system:discovery', group(SYSTEM_AUTHENTICATED)),
  binding('system:basic-user', group(SYSTEM_AUTHENTICATED)),
  binding('system:public-info-viewer', group(SYSTEM_AUTHENTICATED), group(SYSTEM_UNAUTHENTICATED)),
  binding('system:service-account-issuer-discovery', group(SYSTEM_SERVICE_ACCOUNTS)),
  // Nodes get their rights from the node authorizer; the empty binding is there because tools look for it.
  binding('system:node'),
];

function binding(name: string, ...subjects: Subject[]): ClusterRoleBinding {
  return {
    apiVersion: `${RBAC_GROUP}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: {
      name,
      labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
      annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
    },
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name },
    ...(subjects.length === 0 ? {} : { subjects }),
  };
}

function group(name: string): Subject {
  return { apiGroup: RBAC_GROUP, kind: 'Group', name };
}
