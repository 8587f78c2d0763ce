import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import { listAll } from '../../src/kube/list.ts';
import type { Kube } from '../../src/kube/port.ts';
import { type KubeObject, resource } from '../../src/kube/resource.ts';
import type { Access } from './audit.ts';

const GROUP = 'rbac.authorization.k8s.io';
const ROLES = resource<Role>(`${GROUP}/v1`, 'Role', 'roles');
const ROLE_BINDINGS = resource<RoleBinding>(`${GROUP}/v1`, 'RoleBinding', 'rolebindings');
const CLUSTER_ROLES = resource<ClusterRole>(`${GROUP}/v1`, 'ClusterRole', 'clusterroles', false);
const CLUSTER_ROLE_BINDINGS = resource<ClusterRoleBinding>(
  `${GROUP}/v1`,
  'ClusterRoleBinding',
  'clusterrolebindings',
  false,
);

/** One verb on one resource that a ServiceAccount is given. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Empty: everywhere. */
  readonly namespace: string;
  /** Undefined: all of them. */
  readonly names: readonly string[] | undefined;
}

/** What a ServiceAccount may do by the bindings that name it, as the cluster has them. */
export async function rightsOf(kube: Kube, account: { namespace: string; name: string }): Promise<Right[]> {
  const [roles, bindings, clusterRoles, clusterBindings] = await Promise.all([
    listAll(kube, ROLES, {}),
    listAll(kube, ROLE_BINDINGS, {}),
    listAll(kube, CLUSTER_ROLES, {}),
    listAll(kube, CLUSTER_ROLE_BINDINGS, {}),
  ]);
  const rulesOf = (kind: string, name: string, namespace: string): readonly PolicyRule[] => {
    const isIt = ({ metadata }: KubeObject) => metadata?.name === name;
    if (kind === 'ClusterRole') return clusterRoles.items.find(isIt)?.rules ?? [];
    return roles.items.find(role => isIt(role) && role.metadata?.namespace === namespace)?.rules ?? [];
  };
  return [...bindings.items, ...clusterBindings.items]
    .filter(({ subjects = [] }) =>
      subjects.some(
        ({ kind, namespace, name }) =>
          kind === 'ServiceAccount' && namespace === account.namespace && name === account.name,
      ),
    )
    .flatMap(({ metadata, roleRef }) => {
      const namespace = metadata?.namespace ?? '';
      return rulesOf(roleRef.kind, roleRef.name, namespace).flatMap(rule => rightsIn(rule, namespace));
    });
}

function rightsIn({ apiGroups = [], resources = [], verbs, resourceNames }: PolicyRule, namespace: string): Right[] {
  return apiGroups.flatMap(group =>
    resources.flatMap(plural =>
      verbs.map(verb => ({ verb, group, resource: plural, namespace, names: resourceNames })),
    ),
  );
}

/** Whether a request needed this right. */
export function needs(access: Access, right: Right): boolean {
  return (
    access.verb === right.verb &&
    access.group === right.group &&
    access.resource === right.resource &&
    (right.namespace === '' || access.namespace === right.namespace) &&
    (right.names === undefined || right.names.includes(access.name))
  );
}

export function describeRight({ verb, group, resource: plural, namespace, names }: Right): string {
  const kind = group === '' ? plural : `${plural}.${group}`;
  const which = names === undefined ? '' : ` ${names.join(',')}`;
  return `${verb} ${kind}${which}${namespace === '' ? '' : ` in ${namespace}`}`;
}
