/**
 * What 4.16's operators have in objects that ours make under the same names. Their library compares rules and subjects in order and
 * cannot change the role of a binding, so a difference is a needless write at best, and a Degraded operator at worst, whenever a cluster
 * changes hands.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { loadAll } from 'js-yaml';
import { recordingEvents } from '../../src/kube/events.ts';
import { MemoryKube } from '../../src/kube/memory.ts';
import {
  CONFIG_MAPS,
  type KubeObject,
  NAMESPACES,
  resource,
  SECRETS,
  SERVICE_ACCOUNTS,
  SERVICES,
} from '../../src/kube/resource.ts';
import { nodeKubeconfigs } from '../../src/kube-apiserver/kubeconfigs.ts';
import { STATIC_RESOURCES } from '../../src/kube-apiserver/static-resources.ts';
import { backingResourceReconcile } from '../../src/staticpod/backing-resource.ts';
import { TestCluster } from '../../src/staticpod/testing.ts';

const RBAC = 'rbac.authorization.k8s.io';
const OPERAND = 'openshift-kube-apiserver';
const CHECKER = 'system:openshift:controller:check-endpoints';
const ROLE = resource(`${RBAC}/v1`, 'ClusterRole', 'clusterroles', false);
const BINDING = resource(`${RBAC}/v1`, 'RoleBinding', 'rolebindings');
const CLUSTER_BINDING = resource(`${RBAC}/v1`, 'ClusterRoleBinding', 'clusterrolebindings', false);

const clusterAdmin = { apiGroup: RBAC, kind: 'ClusterRole', name: 'cluster-admin' };
const CHECKS = { apiGroups: ['controlplane.operator.openshift.io'] };

/** Facts of upstream's objects, by kind. */
const UPSTREAM: [kind: typeof ROLE, key: { namespace?: string; name: string }, fields: Record<string, unknown>][] = [
  [
    ROLE,
    { name: CHECKER },
    {
      rules: [
        { ...CHECKS, resources: ['podnetworkconnectivitychecks'], verbs: ['get', 'list', 'watch'] },
        {
          ...CHECKS,
          resources: ['podnetworkconnectivitychecks/status'],
          verbs: ['get', 'list', 'patch', 'update', 'watch'],
        },
        { apiGroups: [''], resources: ['pods', 'secrets'], verbs: ['get', 'list', 'watch'] },
        { apiGroups: [''], resources: ['events'], verbs: ['get', 'list', 'watch', 'create', 'update', 'patch'] },
      ],
    },
  ],
  [
    BINDING,
    { namespace: OPERAND, name: CHECKER },
    {
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: CHECKER },
      subjects: [
        { apiGroup: RBAC, kind: 'User', name: 'system:serviceaccount:openshift-kube-apiserver:check-endpoints' },
      ],
    },
  ],
  [
    CLUSTER_BINDING,
    { name: 'system:openshift:operator:kube-apiserver-recovery' },
    {
      roleRef: clusterAdmin,
      subjects: [{ kind: 'ServiceAccount', namespace: OPERAND, name: 'localhost-recovery-client' }],
    },
  ],
  [
    CLUSTER_BINDING,
    { name: 'system:openshift:operator:openshift-kube-apiserver-installer' },
    { roleRef: clusterAdmin, subjects: [{ kind: 'ServiceAccount', namespace: OPERAND, name: 'installer-sa' }] },
  ],
  [
    CLUSTER_BINDING,
    { name: 'system:openshift:operator:openshift-etcd-installer' },
    {
      roleRef: clusterAdmin,
      subjects: [{ kind: 'ServiceAccount', namespace: 'openshift-etcd', name: 'installer-sa' }],
    },
  ],
  [
    CLUSTER_BINDING,
    { name: 'system-bootstrap-node-bootstrapper' },
    {
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'system:node-bootstrapper' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'openshift-machine-config-operator', name: 'node-bootstrapper' }],
    },
  ],
  [
    NAMESPACES,
    { name: OPERAND },
    {
      metadata: {
        annotations: { 'openshift.io/node-selector': '', 'workload.openshift.io/allowed': 'management' },
        labels: {
          'openshift.io/run-level': '0',
          'openshift.io/cluster-monitoring': 'true',
          'pod-security.kubernetes.io/enforce': 'privileged',
          'pod-security.kubernetes.io/audit': 'privileged',
          'pod-security.kubernetes.io/warn': 'privileged',
        },
      },
    },
  ],
  [
    SERVICES,
    { namespace: OPERAND, name: 'apiserver' },
    {
      spec: {
        type: 'ClusterIP',
        selector: { apiserver: 'true' },
        ports: [
          { name: 'https', port: 443, targetPort: 6443, protocol: 'TCP' },
          { name: 'insecure-readyz', port: 6080, targetPort: 6080, protocol: 'TCP' },
          { name: 'check-endpoints', port: 17697, targetPort: 17697, protocol: 'TCP' },
        ],
      },
    },
  ],
  [SERVICE_ACCOUNTS, { namespace: OPERAND, name: 'localhost-recovery-client' }, {}],
  [SERVICE_ACCOUNTS, { namespace: OPERAND, name: 'installer-sa' }, {}],
  [SERVICE_ACCOUNTS, { namespace: 'openshift-etcd', name: 'installer-sa' }, {}],
  [
    SECRETS,
    { namespace: OPERAND, name: 'localhost-recovery-client-token' },
    {
      type: 'kubernetes.io/service-account-token',
      metadata: { annotations: { 'kubernetes.io/service-account.name': 'localhost-recovery-client' } },
    },
  ],
];

/** SHA-256 of the texts of upstream's kubeconfigs, those for nodes with the values of `NODE_INPUTS` filled in. */
const KUBECONFIGS = {
  'kube-apiserver-cert-syncer-kubeconfig': 'cbf6e28068081717127f37245a2da79c1beacf517be7b2321c33967e6e073deb',
  'check-endpoints-kubeconfig': 'f9030d59ad3ef905636127236608dbf8584aa47cf2d4f78672a3828c6289b2da',
  'control-plane-node-kubeconfig': '87754b4dc452c40fb251bff40273f7c681973ef673d57081c2a2365001f2c326',
};
const NODE_KUBECONFIGS = {
  'localhost.kubeconfig': '6512963ba5f7d677f2f23f20a01c8473efba1600f81dbb48ca89fcd5d5d31e91',
  'localhost-recovery.kubeconfig': '87ae40c11ceffd578dfe26c02e13d0df2d13f703e912a546c2510dbfab08db7b',
  'lb-ext.kubeconfig': '47e88736d241bdb8662a913385066f1a9f939ac2e71ec02c80be91f3fac203eb',
  'lb-int.kubeconfig': '646630d9f9cd6cf20b935c5afc784105766b99e2bb6f19af064b1cffb8156200',
};
const NODE_INPUTS = {
  client: { data: { 'tls.crt': 'Y2VydA==', 'tls.key': 'a2V5' } },
  serverCA: { data: { 'ca-bundle.crt': 'bundle' } },
  infrastructure: { status: { apiServerURL: 'https://ext:6443', apiServerInternalURI: 'https://int:6443' } },
} as never;

describe('objects under the names of upstream are what upstream makes of them', () => {
  for (const [kind, key, fields] of UPSTREAM) {
    // The machine-config operator does not make this one; it is installed.
    if (key.name === 'system-bootstrap-node-bootstrapper') continue;
    test(`the operators make ${kind.kind} ${key.name} of ${key.namespace ?? 'the cluster'} as upstream does`, async () => {
      assert.deepEqual(partOf(await made(kind, key), fields), fields);
    });
  }

  for (const [name, sha256] of Object.entries(KUBECONFIGS)) {
    test(`${name}: the same text, byte for byte`, async () => {
      const { data } = (await made(CONFIG_MAPS, { namespace: OPERAND, name })) as { data?: Record<string, string> };
      assert.equal(digest(data?.['kubeconfig'] ?? ''), sha256);
    });
  }

  for (const [name, sha256] of Object.entries(NODE_KUBECONFIGS)) {
    test(`node-kubeconfigs, ${name}: the same text, byte for byte`, () => {
      const { data = {} } = nodeKubeconfigs(NODE_INPUTS);
      assert.equal(digest(Buffer.from(data[name] ?? '', 'base64').toString()), sha256);
    });
  }

  test('what is installed has nothing under a name of upstream that upstream could not take over', () => {
    const installed = installedObjects();
    let compared = 0;
    for (const [kind, key, fields] of UPSTREAM) {
      const found = installed.find(
        ({ kind: itsKind, metadata }) =>
          itsKind === kind.kind && metadata?.name === key.name && metadata.namespace === key.namespace,
      );
      if (found === undefined || kind === NAMESPACES) continue;
      compared++;
      assert.deepEqual(partOf(found, fields), fields, `${kind.kind} ${key.name}`);
    }
    assert.ok(compared >= 5, `${compared} compared`);
  });
});

test('where lesser rights are installed under our name no binding to cluster-admin is made', async () => {
  for (const [name, lesser] of [
    ['system:openshift:operator:kube-apiserver-recovery', 'rotunda:kube-apiserver-recovery'],
    ['system:openshift:operator:openshift-kube-apiserver-installer', 'rotunda:openshift-kube-apiserver-installer'],
  ] as const) {
    const installed = installedObjects().filter(({ metadata }) => metadata?.name === lesser);
    const binding = installed.find(({ kind }) => kind === 'ClusterRoleBinding');
    assert.ok(binding, lesser);
    const kube = new MemoryKube();
    await kube.create(CLUSTER_BINDING, binding);
    await makeAll(kube);
    await assert.rejects(kube.get(CLUSTER_BINDING, { name }), { code: 404 });
  }
});

test('a check-endpoints binding to a Role, as we once made it, is made anew with the ClusterRole', async () => {
  const kube = new MemoryKube();
  const metadata = { namespace: OPERAND, name: CHECKER };
  const roleRef = { apiGroup: RBAC, kind: 'Role', name: CHECKER };
  await kube.create(BINDING, { metadata, roleRef, subjects: [] } as KubeObject);
  await makeAll(kube);
  const { roleRef: now } = (await kube.get(BINDING, metadata)) as { roleRef?: unknown };
  assert.deepEqual(now, { ...roleRef, kind: 'ClusterRole' });
});

let everything: Promise<MemoryKube> | undefined;

async function made(kind: typeof ROLE, key: { namespace?: string; name: string }): Promise<KubeObject> {
  everything ??= makeAll(new MemoryKube());
  return (await everything).get(kind, key);
}

async function makeAll(kube: MemoryKube): Promise<MemoryKube> {
  const events = recordingEvents();
  for (const [, apply] of STATIC_RESOURCES) await apply({ kube, events });
  const cluster = new TestCluster({ kube });
  await cluster.setOperator({}, { managementState: 'Managed' });
  for (const operandNamespace of [OPERAND, 'openshift-etcd']) {
    await cluster.run(backingResourceReconcile({ ...cluster.parts, config: { operandNamespace } }));
  }
  return kube;
}

function installedObjects(): (KubeObject & { kind?: string })[] {
  const root = join(import.meta.dirname, '..', '..', 'manifests');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.yaml'));
  return files.flatMap(file => loadAll(readFileSync(join(root, file), 'utf8')) as KubeObject[]);
}

/** What an object has in the fields that are looked at. */
function partOf(object: unknown, like: unknown): unknown {
  if (typeof like !== 'object' || like === null || Array.isArray(like)) return object;
  const fields = object as Record<string, unknown>;
  return Object.fromEntries(Object.entries(like).map(([key, value]) => [key, partOf(fields[key], value)]));
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
