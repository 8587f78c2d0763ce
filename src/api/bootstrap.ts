import type { PriorityClass } from 'kubernetes-types/scheduling/v1.d.ts';
import { isAlreadyExists } from '../kube/error.ts';
import type { KubeObject } from '../kube/resource.ts';
import { bootstrapObjects } from './auth/bootstrap.ts';
import { internalCall } from './control/controller.ts';
import { pathOf } from './kinds/kind.ts';
import type { Core } from './rest/core.ts';
import { create } from './rest/create.ts';

const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/** The address a Service of this name has in OpenShift. */
const KUBERNETES_SERVICE_ADDRESS = '172.30.0.1';

/** Creates what a new cluster has from the start, as far as it is not there. */
export async function bootstrap(core: Core): Promise<void> {
  const { clusterRoles, clusterRoleBindings } = bootstrapObjects();
  // Namespaces first: others are created in them.
  await Promise.all(NAMESPACES.map(name => ensure(core, 'v1', 'namespaces', { metadata: { name } })));
  const rbac = 'rbac.authorization.k8s.io/v1';
  await Promise.all([
    ...clusterRoles.map(role => ensure(core, rbac, 'clusterroles', role)),
    ...clusterRoleBindings.map(binding => ensure(core, rbac, 'clusterrolebindings', binding)),
    ...PRIORITY_CLASSES.map(priority => ensure(core, 'scheduling.k8s.io/v1', 'priorityclasses', priority)),
    ensure(core, 'v1', 'services', kubernetesService()),
    ensure(core, rbac, 'roles', AUTHENTICATION_READER),
    ensure(core, rbac, 'rolebindings', AUTHENTICATION_READERS),
  ]);
}

/** Servers behind this one, and those of the control plane, read there whom to trust. */
const AUTHENTICATION_READER = {
  metadata: { name: 'extension-apiserver-authentication-reader', namespace: 'kube-system' },
  rules: [
    {
      apiGroups: [''],
      resources: ['configmaps'],
      resourceNames: ['extension-apiserver-authentication'],
      verbs: ['get', 'list', 'watch'],
    },
  ],
} as KubeObject;

const AUTHENTICATION_READERS = {
  metadata: { name: 'system::extension-apiserver-authentication-reader', namespace: 'kube-system' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'extension-apiserver-authentication-reader' },
  subjects: ['system:kube-controller-manager', 'system:kube-scheduler'].map(name => ({
    apiGroup: 'rbac.authorization.k8s.io',
    kind: 'User',
    name,
  })),
} as KubeObject;

const PRIORITY_CLASSES: readonly PriorityClass[] = [
  {
    metadata: { name: 'system-cluster-critical' },
    value: 2_000_000_000,
    description:
      'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
  },
  {
    metadata: { name: 'system-node-critical' },
    value: 2_000_001_000,
    description: 'Used for system critical pods that must not be moved from their current node.',
  },
];

function kubernetesService(): KubeObject {
  return {
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { component: 'apiserver', provider: 'kubernetes' },
    },
    spec: {
      clusterIP: KUBERNETES_SERVICE_ADDRESS,
      ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: 6443 }],
      type: 'ClusterIP',
    },
  } as KubeObject;
}

async function ensure(core: Core, apiVersion: string, plural: string, object: KubeObject): Promise<void> {
  const slash = apiVersion.indexOf('/');
  const kind = core.registry.find(slash < 0 ? '' : apiVersion.slice(0, slash), apiVersion.slice(slash + 1), plural);
  if (kind === undefined) throw new Error(`${plural} of ${apiVersion} are not served`);
  const { name = '', namespace = '' } = object.metadata ?? {};
  if (core.store.newest(kind.bucket, pathOf(namespace, name)) !== undefined) return;
  const call = internalCall(kind, namespace, '', 'bootstrap');
  const parameters = { dryRun: false, fieldManager: 'rotunda', fieldValidation: 'Ignore' as const };
  await create(core, call, { value: { ...object, apiVersion, kind: kind.kind } }, parameters).catch(
    (error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
    },
  );
}
