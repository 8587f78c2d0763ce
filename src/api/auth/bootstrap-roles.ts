import type { ClusterRole, PolicyRule } from 'kubernetes-types/rbac/v1.d.ts';

/** What every cluster starts with. The names, rules and labels are those of Kubernetes, for the kinds that exist here too. */
export const BOOTSTRAP_ROLES: readonly ClusterRole[] = [
  clusterRole('cluster-admin', [
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ]),
  clusterRole('system:discovery', [
    paths(
      '/livez',
      '/readyz',
      '/healthz',
      '/version',
      '/version/',
      '/openapi',
      '/openapi/*',
      '/api',
      '/api/*',
      '/apis',
      '/apis/*',
    ),
  ]),
  clusterRole('system:public-info-viewer', [paths('/livez', '/readyz', '/healthz', '/version', '/version/')]),
  clusterRole('system:monitoring', [
    paths('/metrics', '/metrics/slis', '/livez', '/readyz', '/healthz', '/livez/*', '/readyz/*', '/healthz/*'),
  ]),
  clusterRole('system:basic-user', [
    allow(['create'], 'authorization.k8s.io', 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'),
    allow(['create'], 'authentication.k8s.io', 'selfsubjectreviews'),
  ]),
  clusterRole('system:service-account-issuer-discovery', [
    paths(
      '/.well-known/openid-configuration',
      '/.well-known/openid-configuration/',
      '/openid/v1/jwks',
      '/openid/v1/jwks/',
    ),
  ]),
  aggregate('admin', 'admin'),
  aggregate('edit', 'edit', 'admin'),
  aggregate('view', 'view', 'edit'),
  clusterRole('system:aggregate-to-admin', adminRules(), aggregateTo('admin')),
  clusterRole('system:aggregate-to-edit', editRules(), aggregateTo('edit')),
  clusterRole('system:aggregate-to-view', viewRules(), aggregateTo('view')),
  clusterRole('system:auth-delegator', [
    allow(['create'], 'authentication.k8s.io', 'tokenreviews'),
    allow(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
  ]),
  clusterRole('system:node', nodeRules()),
  clusterRole('system:node-bootstrapper', [
    allow(['create', 'get', 'list', 'watch'], 'certificates.k8s.io', 'certificatesigningrequests'),
  ]),
  clusterRole('system:certificates.k8s.io:certificatesigningrequests:nodeclient', [
    allow(['create'], 'certificates.k8s.io', 'certificatesigningrequests/nodeclient'),
  ]),
  clusterRole('system:certificates.k8s.io:certificatesigningrequests:selfnodeclient', [
    allow(['create'], 'certificates.k8s.io', 'certificatesigningrequests/selfnodeclient'),
  ]),
  approver('kubelet-serving'),
  approver('kube-apiserver-client'),
  approver('kube-apiserver-client-kubelet'),
];

/** What a kubelet may do; `node.ts` narrows it to the node's own objects. */
export function nodeRules(): PolicyRule[] {
  return [
    allow(['create'], 'authentication.k8s.io', 'tokenreviews'),
    allow(['create'], 'authorization.k8s.io', 'subjectaccessreviews', 'localsubjectaccessreviews'),
    allow(read(), '', 'services'),
    allow(['create', 'get', 'list', 'watch'], '', 'nodes'),
    allow(['update', 'patch'], '', 'nodes/status'),
    allow(['update', 'patch'], '', 'nodes'),
    allow(['create', 'update', 'patch'], ['', 'events.k8s.io'], 'events'),
    allow(read(), '', 'pods'),
    allow(['create', 'delete'], '', 'pods'),
    allow(['update', 'patch'], '', 'pods/status'),
    allow(['create'], '', 'pods/eviction'),
    allow(read(), '', 'secrets', 'configmaps'),
    allow(['get'], '', 'endpoints'),
    allow(['create', 'get', 'list', 'watch'], 'certificates.k8s.io', 'certificatesigningrequests'),
    allow(['get', 'create', 'update', 'patch', 'delete'], 'coordination.k8s.io', 'leases'),
    allow(['create'], '', 'serviceaccounts/token'),
  ];
}

function viewRules(): PolicyRule[] {
  return [
    allow(read(), '', 'pods', 'serviceaccounts', 'services', 'services/status', 'endpoints', 'configmaps'),
    allow(read(), '', 'limitranges', 'resourcequotas', 'bindings', 'pods/status', 'namespaces/status', 'pods/log'),
    allow(read(), '', 'namespaces'),
    allow(read(), ['', 'events.k8s.io'], 'events'),
    allow(read(), 'discovery.k8s.io', 'endpointslices'),
    allow(read(), 'apps', 'controllerrevisions', 'daemonsets', 'daemonsets/status'),
    allow(read(), 'apps', ...withScaleAndStatus('statefulsets', 'deployments', 'replicasets')),
    allow(read(), 'batch', 'jobs', 'cronjobs', 'cronjobs/status', 'jobs/status'),
    allow(read(), 'policy', 'poddisruptionbudgets', 'poddisruptionbudgets/status'),
    allow(read(), 'networking.k8s.io', 'networkpolicies', 'ingresses', 'ingresses/status'),
  ];
}

function editRules(): PolicyRule[] {
  return [
    allow(read(), '', 'pods/attach', 'pods/proxy', 'pods/exec', 'pods/portforward', 'secrets', 'services/proxy'),
    allow(['impersonate'], '', 'serviceaccounts'),
    allow(write(), '', 'pods', 'pods/attach', 'pods/proxy', 'pods/exec', 'pods/portforward'),
    allow(['create'], '', 'pods/eviction'),
    allow(write(), '', 'serviceaccounts', 'services', 'services/proxy', 'configmaps', 'secrets'),
    allow(['create'], '', 'serviceaccounts/token'),
    allow(write(), ['', 'events.k8s.io'], 'events'),
    allow(write(), 'apps', 'daemonsets', 'statefulsets', 'statefulsets/scale', 'replicasets', 'replicasets/scale'),
    allow(write(), 'apps', 'deployments', 'deployments/scale', 'deployments/rollback'),
    allow(write(), 'batch', 'jobs', 'cronjobs'),
    allow(write(), 'policy', 'poddisruptionbudgets'),
    allow(write(), 'networking.k8s.io', 'networkpolicies', 'ingresses'),
    allow([...read(), ...write()], 'coordination.k8s.io', 'leases'),
  ];
}

function adminRules(): PolicyRule[] {
  return [
    allow(['create'], 'authorization.k8s.io', 'localsubjectaccessreviews'),
    allow([...read(), ...write()], 'rbac.authorization.k8s.io', 'roles', 'rolebindings'),
  ];
}

function clusterRole(name: string, rules: PolicyRule[], labels: Record<string, string> = {}): ClusterRole {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: {
      name,
      labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels },
      annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
    },
    rules,
  };
}

/** A role that collects the roles labelled for `collects` and, if asked, is itself collected by another. */
function aggregate(name: string, collects: string, collectedBy?: string): ClusterRole {
  return {
    ...clusterRole(name, [], collectedBy === undefined ? {} : aggregateTo(collectedBy)),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: aggregateTo(collects) }] },
  };
}

function aggregateTo(name: string): Record<string, string> {
  return { [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true' };
}

function approver(signer: string): ClusterRole {
  return clusterRole(`system:certificates.k8s.io:${signer}-approver`, [
    { ...allow(['approve'], 'certificates.k8s.io', 'signers'), resourceNames: [`kubernetes.io/${signer}`] },
  ]);
}

function allow(verbs: string[], groups: string | string[], ...resources: string[]): PolicyRule {
  return { apiGroups: [groups].flat(), resources, verbs };
}

function withScaleAndStatus(...resources: string[]): string[] {
  return resources.flatMap(resource => [resource, `${resource}/status`, `${resource}/scale`]);
}

function paths(...nonResourceURLs: string[]): PolicyRule {
  return { nonResourceURLs, verbs: ['get'] };
}

function read(): string[] {
  return ['get', 'list', 'watch'];
}

function write(): string[] {
  return ['create', 'update', 'patch', 'delete', 'deletecollection'];
}
