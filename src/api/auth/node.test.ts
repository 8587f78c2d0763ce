import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Node, Pod, PodSpec } from 'kubernetes-types/core/v1.d.ts';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import type { ResourceAttributes } from './attributes.ts';
import { createNodeAuthorizer, referencedNames } from './node.ts';
import { checkNodeRestriction, type WriteRequest } from './node-restriction.ts';
import { authenticated, type User } from './user.ts';

const kubelet: User = authenticated({ name: 'system:node:a', uid: '', groups: ['system:nodes'], extra: {} });
const pod: Pod = {
  metadata: { name: 'p', namespace: 'n', uid: 'pu' },
  spec: {
    nodeName: 'a',
    serviceAccountName: 'sa',
    imagePullSecrets: [{ name: 'pull' }],
    volumes: [
      { name: 'v', secret: { secretName: 'mounted' } },
      {
        name: 'w',
        projected: { sources: [{ secret: { name: 'projected' } }, { configMap: { name: 'projected-map' } }] },
      },
      { name: 'x', configMap: { name: 'map' } },
    ],
    initContainers: [{ name: 'i', env: [{ name: 'E', valueFrom: { secretKeyRef: { name: 'init', key: 'k' } } }] }],
    containers: [{ name: 'c', envFrom: [{ secretRef: { name: 'env' } }, { configMapRef: { name: 'env-map' } }] }],
  },
};

describe('what a pod refers to', () => {
  it('secrets', () => {
    assert.deepEqual([...referencedNames(pod, 'secrets')].sort(), ['env', 'init', 'mounted', 'projected', 'pull']);
  });
  it('config maps', () => {
    assert.deepEqual([...referencedNames(pod, 'configmaps')].sort(), ['env-map', 'map', 'projected-map']);
  });
});

describe('node authorizer', () => {
  const mirror: Pod = {
    ...pod,
    metadata: { name: 'm', namespace: 'mirrors', annotations: { 'kubernetes.io/config.mirror': 'hash' } },
  };
  const unaccounted: Pod = { metadata: { name: 'u', namespace: 'n' }, spec: { nodeName: 'a', containers: [] } };
  const nameless: User = { ...kubelet, name: 'system:node:' };
  const authorizer = createNodeAuthorizer({
    // Pods that no node has yet are on the node without a name.
    podsOnNode: name => (name === 'a' || name === '' ? [pod, mirror, unaccounted] : []),
  });
  const wants = (verb: string, resource: string, over: Partial<ResourceAttributes> = {}): ResourceAttributes => {
    const [plural = '', subresource = ''] = resource.split('/');
    return {
      user: kubelet,
      verb,
      group: '',
      version: 'v1',
      resource: plural,
      subresource,
      namespace: 'n',
      name: 'x',
      ...over,
    };
  };
  const lease = { group: 'coordination.k8s.io', namespace: 'kube-node-lease', name: 'a' };
  const cases: [rule: string, attributes: ResourceAttributes, allowed: boolean][] = [
    ['its own node', wants('get', 'nodes', { namespace: '', name: 'a' }), true],
    ['watches its own node', wants('watch', 'nodes', { namespace: '', name: 'a' }), true],
    ['another node', wants('get', 'nodes', { namespace: '', name: 'b' }), false],
    ['all nodes', wants('list', 'nodes', { namespace: '', name: '' }), false],
    ['a secret its pod mounts', wants('get', 'secrets', { name: 'mounted' }), true],
    ['watches that secret', wants('watch', 'secrets', { name: 'mounted' }), true],
    ['another secret', wants('get', 'secrets', { name: 'other' }), false],
    ['that name in another namespace', wants('get', 'secrets', { name: 'mounted', namespace: 'm' }), false],
    ['all secrets', wants('list', 'secrets', { name: '' }), false],
    ['changes the secret', wants('update', 'secrets', { name: 'mounted' }), false],
    ['a config map', wants('get', 'configmaps', { name: 'env-map' }), true],
    ['a token for its pod', wants('create', 'serviceaccounts/token', { name: 'sa' }), true],
    ['a token for another account', wants('create', 'serviceaccounts/token', { name: 'admin' }), false],
    [
      'a token of `default` for a pod without account',
      wants('create', 'serviceaccounts/token', { name: 'default' }),
      false,
    ],
    ['a secret of a mirror pod', wants('get', 'secrets', { name: 'mounted', namespace: 'mirrors' }), false],
    ['a config map of a mirror pod', wants('get', 'configmaps', { name: 'map', namespace: 'mirrors' }), false],
    ['a token for a mirror pod', wants('create', 'serviceaccounts/token', { name: 'sa', namespace: 'mirrors' }), false],
    ['its lease', wants('update', 'leases', lease), true],
    ['creates its lease', wants('create', 'leases', { ...lease, name: '' }), true],
    ['another lease', wants('update', 'leases', { ...lease, name: 'b' }), false],
    ['a lease elsewhere', wants('get', 'leases', { ...lease, namespace: 'n' }), false],
    ['reads pods', wants('list', 'pods', { namespace: '', name: '' }), true],
    ['pod status', wants('patch', 'pods/status'), true],
    ['deletes nodes', wants('delete', 'nodes', { namespace: '' }), false],
    ['somebody else', wants('list', 'pods', { user: { ...kubelet, groups: [] } }), false],
    ['a user in the group who is no node', wants('list', 'pods', { user: { ...kubelet, name: 'a' } }), false],
    [
      'a secret its pod mounts, from all namespaces',
      wants('get', 'secrets', { name: 'mounted', namespace: '' }),
      false,
    ],
    ['a node without a name', wants('get', 'secrets', { user: nameless, name: 'mounted' }), false],
    [
      'a user in the group whose name only ends like that of a node',
      wants('get', 'secrets', { user: { ...kubelet, name: 'system:rode:a' }, name: 'mounted' }),
      false,
    ],
    ['secrets of another group', wants('get', 'secrets', { group: 'x.io', name: 'mounted' }), false],
    ['creates another node', wants('create', 'nodes', { namespace: '', name: 'b' }), true],
  ];
  for (const [rule, attributes, allowed] of cases) {
    it(`${allowed ? 'allowed' : 'not allowed'}: ${rule}`, () => {
      assert.equal(authorizer.authorize(attributes).verdict === 'allow', allowed);
    });
  }

  it('says which nodes it may not read', () => {
    const why = (name: string) => authorizer.authorize(wants('get', 'nodes', { namespace: '', name })).reason;
    assert.equal(why('b'), 'node "a" cannot read "b", only its own Node object');
    assert.equal(why(''), 'node "a" cannot read all nodes, only its own Node object');
  });

  it('has no opinion about paths', () => {
    const verdict = authorizer.authorize({ user: kubelet, verb: 'get', path: '/api' }).verdict;
    assert.equal(verdict, 'no-opinion');
  });
});

describe('node restriction', () => {
  const node: Node = { metadata: { name: 'a', uid: 'nu', labels: { 'kubernetes.io/hostname': 'a', team: 'x' } } };
  const mirror: Pod = {
    metadata: {
      name: 'm',
      namespace: 'n',
      annotations: { 'kubernetes.io/config.mirror': 'hash' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'a', uid: 'nu', controller: true }],
    },
    spec: { nodeName: 'a', containers: [] },
  };
  const lister = {
    pod: (_: string, name: string) =>
      name === 'p' ? pod : name === 'other' ? { ...pod, spec: { containers: [], nodeName: 'b' } } : undefined,
    node: (name: string) => (name === 'a' ? node : undefined),
  };
  const write = (
    operation: WriteRequest['operation'],
    resource: string,
    name: string,
    over: Partial<WriteRequest> = {},
  ): WriteRequest => {
    const [plural = '', subresource = ''] = resource.split('/');
    return { user: kubelet, operation, group: '', resource: plural, subresource, namespace: 'n', name, ...over };
  };
  const changed = (over: Partial<Node>): Partial<WriteRequest> => ({
    object: { ...node, ...over },
    oldObject: node,
  });
  const token = (boundObjectRef?: object) => ({
    object: { spec: { audiences: [], ...(boundObjectRef && { boundObjectRef }) } } as object,
  });
  const bound = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'pu' };
  const leases = { group: 'coordination.k8s.io', namespace: 'kube-node-lease' };
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'a', uid: 'nu', controller: true };
  const mirrorOf = (...ownerReferences: OwnerReference[]) =>
    write('CREATE', 'pods', 'm', { object: { ...mirror, metadata: { ...mirror.metadata, ownerReferences } } });
  const mirrorWith = (spec: Partial<PodSpec>) =>
    write('CREATE', 'pods', 'm', { object: { ...mirror, spec: { containers: [], nodeName: 'a', ...spec } } as Pod });
  const ofNode = (name: string, ...ownerReferences: OwnerReference[]) => ({
    user: { ...kubelet, name: `system:node:${name}` },
    object: { metadata: { ...mirror.metadata, ownerReferences }, spec: { containers: [], nodeName: name } } as Pod,
  });
  const notItsOwn = 'pods "m" is forbidden: node "a" can only create pods with an owner reference set to itself';

  const tainted: Node = { ...node, spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } };

  const allowed: [rule: string, request: WriteRequest][] = [
    ['other users', { ...write('DELETE', 'nodes', 'b'), user: { ...kubelet, groups: [] } }],
    ['its own node', write('UPDATE', 'nodes', 'a', changed({ status: {} }))],
    ['deletes its own node, whatever is on it', write('DELETE', 'nodes', 'a', { oldObject: tainted })],
    [
      'its own labels',
      write(
        'UPDATE',
        'nodes',
        'a',
        changed({
          metadata: { ...node.metadata, labels: { ...node.metadata?.labels, team: 'y', 'node.kubernetes.io/x': '1' } },
        }),
      ),
    ],
    ['a mirror pod', write('CREATE', 'pods', 'm', { object: mirror })],
    ['deletes its pod', write('DELETE', 'pods', 'p')],
    ['status of its pod', write('UPDATE', 'pods/status', 'p', { object: pod, oldObject: pod })],
    ['evicts its pod', write('CREATE', 'pods/eviction', 'p')],
    ['a token for its pod', write('CREATE', 'serviceaccounts/token', 'sa', token(bound))],
    ['its lease', write('UPDATE', 'leases', 'a', { group: 'coordination.k8s.io', namespace: 'kube-node-lease' })],
    ['events', write('CREATE', 'events', 'e')],
    ['a service account that is no token', write('CREATE', 'serviceaccounts', 'sa')],
    ['changes a token, which nothing serves', write('UPDATE', 'serviceaccounts/token', 'sa')],
    [
      'a label that is left to kubelets',
      write('UPDATE', 'nodes', 'a', changed({ metadata: { ...node.metadata, labels: { team: 'x' } } })),
    ],
    ['deletes its own node', write('DELETE', 'nodes', 'a')],
    ['creates its lease', write('CREATE', 'leases', '', { ...leases, object: { metadata: { name: 'a' } } })],
  ];
  for (const [rule, request] of allowed) {
    it(`allowed: ${rule}`, () => {
      checkNodeRestriction(request, lister);
    });
  }

  const refused: [rule: string, request: WriteRequest, message: string][] = [
    [
      'another node',
      write('UPDATE', 'nodes', 'b', { object: node, oldObject: node }),
      'nodes "b" is forbidden: node "a" is not allowed to modify node "b"',
    ],
    [
      'taints',
      write('UPDATE', 'nodes', 'a', changed({ spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } })),
      'nodes "a" is forbidden: node "a" is not allowed to modify taints',
    ],
    [
      'owner',
      write(
        'UPDATE',
        'nodes',
        'a',
        changed({
          metadata: { ...node.metadata, ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'u' }] },
        }),
      ),
      'nodes "a" is forbidden: node "a" is not allowed to modify ownerReferences',
    ],
    [
      'labels of Kubernetes',
      write(
        'UPDATE',
        'nodes',
        'a',
        changed({
          metadata: {
            ...node.metadata,
            labels: { 'node-role.kubernetes.io/master': '', 'kubernetes.io/hostname': 'a', team: 'x' },
          },
        }),
      ),
      'nodes "a" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/master',
    ],
    [
      'restricted labels at creation',
      write('CREATE', 'nodes', 'a', { object: { metadata: { labels: { 'x.node-restriction.kubernetes.io/y': '' } } } }),
      'nodes "a" is forbidden: node "a" is not allowed to set the following labels: x.node-restriction.kubernetes.io/y',
    ],
    [
      'pod that is no mirror',
      write('CREATE', 'pods', 'm', { object: { ...mirror, metadata: { name: 'm' } } }),
      'pods "m" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "a" can only create mirror pods',
    ],
    [
      'mirror pod elsewhere',
      write('CREATE', 'pods', 'm', { object: { ...mirror, spec: { containers: [], nodeName: 'b' } } as Pod }),
      'pods "m" is forbidden: node "a" can only create pods with spec.nodeName set to itself',
    ],
    [
      'mirror pod without owner',
      write('CREATE', 'pods', 'm', {
        object: { ...mirror, metadata: { ...mirror.metadata, ownerReferences: [] } },
      }),
      'pods "m" is forbidden: node "a" can only create pods with an owner reference set to itself',
    ],
    [
      'mirror pod of an older node',
      write('CREATE', 'pods', 'm', {
        object: {
          ...mirror,
          metadata: {
            ...mirror.metadata,
            ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'a', uid: 'old', controller: true }],
          },
        },
      }),
      'pods "m" is forbidden: node a UID mismatch: expected old got nu',
    ],
    [
      'mirror pod with a secret',
      write('CREATE', 'pods', 'm', {
        object: {
          ...mirror,
          spec: { containers: [], nodeName: 'a', volumes: [{ name: 'v', secret: { secretName: 's' } }] },
        } as Pod,
      }),
      'pods "m" is forbidden: node "a" can not create pods that reference secrets',
    ],
    [
      'changes a pod',
      write('UPDATE', 'pods', 'p', { object: pod, oldObject: pod }),
      'pods "p" is forbidden: unexpected operation "UPDATE", node "a" can only create and delete mirror pods',
    ],
    [
      'deletes another pod',
      write('DELETE', 'pods', 'other'),
      'pods "other" is forbidden: node "a" can only delete pods with spec.nodeName set to itself',
    ],
    [
      'evicts another pod',
      write('CREATE', 'pods/eviction', 'other'),
      'pods "other" is forbidden: node a can only evict pods with spec.nodeName set to itself',
    ],
    [
      'labels through status',
      write('UPDATE', 'pods/status', 'p', {
        object: { ...pod, metadata: { ...pod.metadata, labels: { a: 'b' } } },
        oldObject: pod,
      }),
      'pods "p" is forbidden: node "a" cannot update labels through pod status',
    ],
    [
      'exec',
      write('CREATE', 'pods/exec', 'p'),
      `pods "p" is forbidden: unexpected pod subresource "exec", only 'status' and 'eviction' are allowed`,
    ],
    [
      'token without pod',
      write('CREATE', 'serviceaccounts/token', 'sa', token()),
      'serviceaccounts "sa" is forbidden: node requested token not bound to a pod',
    ],
    [
      'token without uid',
      write('CREATE', 'serviceaccounts/token', 'sa', token({ ...bound, uid: '' })),
      'serviceaccounts "sa" is forbidden: node requested token with a pod binding without a uid',
    ],
    [
      'token for a pod elsewhere',
      write('CREATE', 'serviceaccounts/token', 'sa', token({ ...bound, name: 'other' })),
      'serviceaccounts "sa" is forbidden: node requested token bound to a pod scheduled on a different node',
    ],
    [
      'another lease',
      write('UPDATE', 'leases', 'b', { group: 'coordination.k8s.io', namespace: 'kube-node-lease' }),
      'leases.coordination.k8s.io "b" is forbidden: can only access node lease with the same name as the requesting node',
    ],
    [
      'a node without a name',
      { ...write('DELETE', 'pods', 'p'), user: { ...kubelet, name: 'system:node:' } },
      'pods "p" is forbidden: could not determine node from user "system:node:"',
    ],
    ['a pod that is gone', write('DELETE', 'pods', 'gone'), 'pods "gone" not found'],
    [
      'mirror pod with a second owner',
      mirrorOf(owner, { ...owner, kind: 'Secret', name: 's', controller: false }),
      'pods "m" is forbidden: node "a" can only create pods with a single owner reference set to itself',
    ],
    [
      'mirror pod that keeps its owner from being deleted',
      mirrorOf({ ...owner, blockOwnerDeletion: true }),
      'pods "m" is forbidden: node "a" must not set blockOwnerDeletion on an owner reference',
    ],
    [
      'mirror pod that its owner does not control',
      mirrorOf({ ...owner, controller: false }),
      'pods "m" is forbidden: node "a" can only create pods with a controller owner reference set to itself',
    ],
    ['mirror pod of a Node in another version', mirrorOf({ ...owner, apiVersion: 'v2' }), notItsOwn],
    ['mirror pod of something else', mirrorOf({ ...owner, kind: 'Pod' }), notItsOwn],
    ['mirror pod of another node', mirrorOf({ ...owner, name: 'b' }), notItsOwn],
    [
      'mirror pod of a node that does not exist',
      { ...mirrorWith({ nodeName: 'c' }), ...ofNode('c', { ...owner, name: 'c' }) },
      'nodes "c" not found',
    ],
    [
      'mirror pod with a config map',
      mirrorWith({ volumes: [{ name: 'v', configMap: { name: 'c' } }] }),
      'pods "m" is forbidden: node "a" can not create pods that reference configmaps',
    ],
    [
      'mirror pod with an account',
      mirrorWith({ serviceAccountName: 'sa' }),
      'pods "m" is forbidden: node "a" can not create pods that reference serviceaccounts',
    ],
    [
      'mirror pod with a claim',
      mirrorWith({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] }),
      'pods "m" is forbidden: node "a" can not create pods that reference persistentvolumeclaims',
    ],
    [
      'status of another pod',
      write('UPDATE', 'pods/status', 'other', { object: pod, oldObject: { ...pod, spec: { containers: [] } } as Pod }),
      'pods "other" is forbidden: node "a" can only update pod status for pods with spec.nodeName set to itself',
    ],
    [
      'token for something else',
      write('CREATE', 'serviceaccounts/token', 'sa', token({ ...bound, kind: 'Secret' })),
      'serviceaccounts "sa" is forbidden: node requested token not bound to a pod',
    ],
    [
      'token for a pod without a name',
      write('CREATE', 'serviceaccounts/token', 'sa', token({ ...bound, name: '' })),
      'serviceaccounts "sa" is forbidden: node requested token not bound to a pod',
    ],
    [
      'token for a pod that is gone',
      write('CREATE', 'serviceaccounts/token', 'sa', token({ ...bound, name: 'gone' })),
      'pods "gone" not found',
    ],
    [
      'token for a pod that was there before',
      write('CREATE', 'serviceaccounts/token', 'sa', token({ ...bound, uid: 'older' })),
      'serviceaccounts "sa" is forbidden: the UID in the bound object reference (older) does not match the UID in record. The object might have been deleted and then recreated',
    ],
    [
      'creates another lease',
      write('CREATE', 'leases', '', { ...leases, object: { metadata: { name: 'b' } } }),
      'leases.coordination.k8s.io is forbidden: can only access node lease with the same name as the requesting node',
    ],
    [
      'a lease elsewhere',
      write('UPDATE', 'leases', 'a', { ...leases, namespace: 'n' }),
      'leases.coordination.k8s.io "a" is forbidden: can only access leases in the "kube-node-lease" system namespace',
    ],
  ];
  for (const [rule, request, message] of refused) {
    it(`refused: ${rule}`, () => {
      assert.throws(() => checkNodeRestriction(request, lister), { name: 'KubeError', message });
    });
  }
});
