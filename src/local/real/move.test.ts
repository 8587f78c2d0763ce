import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { MemoryKube } from '../../kube/memory.ts';
import {
  CONFIG_MAPS,
  type KubeObject,
  NAMESPACES,
  NODES,
  type Resource,
  resource,
  SECRETS,
} from '../../kube/resource.ts';
import { moveCluster } from './move.ts';

const ROLES = resource('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles', false);
const DEFINITIONS = resource('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'customresourcedefinitions', false);
const ETCDS = resource('operator.openshift.io/v1', 'Etcd', 'etcds', false);

test('objects move with status, and with owners and nodes under their new identities', async () => {
  const [from, to] = [new MemoryKube(), new MemoryKube()];
  await from.create(DEFINITIONS, {
    metadata: { name: 'etcds.operator.openshift.io' },
    spec: {
      group: 'operator.openshift.io',
      names: { plural: 'etcds', kind: 'Etcd' },
      scope: 'Cluster',
      versions: [{ name: 'v1', storage: true, served: true }],
    },
  } as KubeObject);
  await from.create(NAMESPACES, { metadata: { name: 'ours' } });
  const node = await from.create(NODES, { metadata: { name: 'master-0' } });
  const owner = await from.create(CONFIG_MAPS, { metadata: { namespace: 'ours', name: 'owner' } });
  const { uid = '' } = owner.metadata ?? {};
  const ownerReferences = [
    { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid },
    { apiVersion: 'v1', kind: 'Pod', name: 'gone', uid: '00000000-0000-0000-0000-000000000000' },
  ];
  await from.create(CONFIG_MAPS, { metadata: { namespace: 'ours', name: 'owned', ownerReferences }, data: { a: 'b' } });
  const nodeStatuses = [{ nodeName: 'master-0', nodeUID: node.metadata?.uid, currentRevision: 3 }];
  await from.create(ETCDS, { metadata: { name: 'cluster' }, spec: {}, status: { nodeStatuses } } as KubeObject);

  const moved = await moveCluster(from, to);
  assert.deepEqual([moved.configmaps, moved.nodes, moved['etcds.operator.openshift.io']], [2, 1, 1]);
  const there = await to.get(CONFIG_MAPS, { namespace: 'ours', name: 'owned' });
  const newOwner = await to.get(CONFIG_MAPS, { namespace: 'ours', name: 'owner' });
  assert.deepEqual(there.data, { a: 'b' });
  assert.notEqual(newOwner.metadata?.uid, uid);
  assert.deepEqual(there.metadata?.ownerReferences, [{ ...ownerReferences[0], uid: newOwner.metadata?.uid }]);
  const { status } = (await to.get(ETCDS, { name: 'cluster' })) as { status?: { nodeStatuses: unknown[] } };
  const newNode = await to.get(NODES, { name: 'master-0' });
  assert.deepEqual(status?.nodeStatuses, [{ ...nodeStatuses[0], nodeUID: newNode.metadata?.uid }]);
});

test('what every API makes for itself stays behind, and a move that is begun again changes nothing', async () => {
  const [from, to] = [new MemoryKube(), new MemoryKube()];
  const labels = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };
  await from.create(NAMESPACES, { metadata: { name: 'default' } });
  await from.create(ROLES, { metadata: { name: 'system:basic-user', labels } });
  await from.create(ROLES, { metadata: { name: 'system:openshift:ours' } });
  await from.create(CONFIG_MAPS, { metadata: { namespace: 'ours', name: 'kube-root-ca.crt' } });
  const type = 'kubernetes.io/service-account-token';
  await from.create(SECRETS, { metadata: { namespace: 'ours', name: 'token' }, type });
  await from.create(CONFIG_MAPS, { metadata: { namespace: 'ours', name: 'one' }, data: { a: 'b' } });
  await moveCluster(from, to);
  const names = async (kind: Resource) => (await to.list(kind)).items.map(({ metadata }) => metadata?.name);
  assert.deepEqual(
    [await names(NAMESPACES), await names(ROLES), await names(SECRETS), await names(CONFIG_MAPS)],
    [[], ['system:openshift:ours'], [], ['one']],
  );
  const one: ConfigMap = await to.get(CONFIG_MAPS, { namespace: 'ours', name: 'one' });
  await moveCluster(from, to);
  assert.deepEqual(await to.get(CONFIG_MAPS, { namespace: 'ours', name: 'one' }), one);
});
