import type { Node, Pod, Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import type { KubeObject } from '../kube/resource.ts';
import type { NodePods } from './auth/node.ts';
import type { NodeRestrictionLister } from './auth/node-restriction.ts';
import { RBAC_GROUP, type RbacLister } from './auth/rbac.ts';
import type { TokenSubjects } from './auth/service-account.ts';
import { pathOf } from './kinds/kind.ts';
import { whole } from './store/entry.ts';
import type { Store } from './store/store.ts';

export type Lister = RbacLister & TokenSubjects & NodePods & NodeRestrictionLister;

/**
 * The objects that authentication and authorization look at, read straight from the store. One that is damaged counts as
 * absent: that takes rights away and gives none.
 */
export function createLister(store: Store): Lister {
  const one = (bucket: string, namespace: string, name: string) => {
    const entry = store.get(bucket, pathOf(namespace, name));
    return entry?.damage === undefined ? entry?.object : undefined;
  };
  function* all(bucket: string, prefix = ''): Generator<KubeObject> {
    for (const entry of whole(store.list(bucket, { prefix }))) yield entry.object;
  }
  return {
    role: (namespace, name) => one(`${RBAC_GROUP}/roles`, namespace, name) as Role | undefined,
    clusterRole: name => one(`${RBAC_GROUP}/clusterroles`, '', name) as ClusterRole | undefined,
    roleBindings: namespace => all(`${RBAC_GROUP}/rolebindings`, `${namespace}/`) as Iterable<RoleBinding>,
    clusterRoleBindings: () => all(`${RBAC_GROUP}/clusterrolebindings`) as Iterable<ClusterRoleBinding>,
    serviceAccount: (namespace, name) => one('/serviceaccounts', namespace, name) as ServiceAccount | undefined,
    secret: (namespace, name) => one('/secrets', namespace, name) as Secret | undefined,
    pod: (namespace, name) => one('/pods', namespace, name) as Pod | undefined,
    node: name => one('/nodes', '', name) as Node | undefined,
    *podsOnNode(nodeName) {
      for (const pod of all('/pods') as Iterable<Pod>) if (pod.spec?.nodeName === nodeName) yield pod;
    },
  };
}
