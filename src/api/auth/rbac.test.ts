import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Subject } from 'kubernetes-types/rbac/v1.d.ts';
import { staleAggregates } from './aggregation.ts';
import type { ResourceAttributes } from './attributes.ts';
import { type Authorizer, firstDecision, mastersAuthorizer } from './authorize.ts';
import { bootstrapObjects } from './bootstrap.ts';
import { createRbacAuthorizer, rulesFor } from './rbac.ts';
import { binding, listerOf, READ_PODS, role, USER_ALICE, type World } from './rbac-testing.ts';
import { ANONYMOUS, authenticated, serviceAccountUser, type User } from './user.ts';

const alice: User = authenticated({ name: 'alice', uid: '', groups: ['dev'], extra: {} });

function wants(verb: string, resource: string, over: Partial<ResourceAttributes> = {}): ResourceAttributes {
  const [plural = '', subresource = ''] = resource.split('/');
  return {
    user: alice,
    verb,
    group: '',
    version: 'v1',
    resource: plural,
    subresource,
    namespace: 'n',
    name: '',
    ...over,
  };
}

describe('bindings', () => {
  const sa = serviceAccountUser('n', 'robot', 'u');
  const cluster = (subject: Subject): World => ({
    clusterRoles: [role('reader', [READ_PODS])],
    clusterRoleBindings: [binding('b', 'ClusterRole', 'reader', [subject])],
  });
  const local = (kind: string, subject: Subject): World => ({
    roles: [role('reader', [READ_PODS], 'n')],
    clusterRoles: [role('reader', [READ_PODS])],
    roleBindings: [binding('b', kind, 'reader', [{ kind: 'User', name: 'nobody' }, subject], 'n')],
  });
  const cases: [rule: string, world: World, attributes: ResourceAttributes, verdict: string, reason: string][] = [
    [
      'cluster role, user',
      cluster(USER_ALICE),
      wants('get', 'pods'),
      'allow',
      'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to User "alice"',
    ],
    [
      'cluster role, group, any namespace',
      cluster({ kind: 'Group', name: 'dev' }),
      wants('get', 'pods', { namespace: 'other' }),
      'allow',
      'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to Group "dev"',
    ],
    [
      'everybody',
      cluster({ kind: 'Group', name: 'system:authenticated' }),
      wants('get', 'pods', { namespace: '' }),
      'allow',
      'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to Group "system:authenticated"',
    ],
    [
      'service account without a namespace, everywhere',
      cluster({ kind: 'ServiceAccount', name: 'robot' }),
      wants('get', 'pods', { user: serviceAccountUser('', 'robot', 'u') }),
      'no-opinion',
      '',
    ],
    [
      'a role of a namespace, bound everywhere',
      { ...local('Role', USER_ALICE), clusterRoleBindings: [binding('b', 'Role', 'reader', [USER_ALICE])] },
      wants('get', 'pods', { namespace: 'm' }),
      'no-opinion',
      'RBAC: unsupported role reference kind: "Role"',
    ],
    [
      'a role of no known kind',
      local('Group', USER_ALICE),
      wants('get', 'pods'),
      'no-opinion',
      'RBAC: unsupported role reference kind: "Group"',
    ],
    [
      'anonymous is not everybody',
      cluster({ kind: 'Group', name: 'system:authenticated' }),
      wants('get', 'pods', { user: ANONYMOUS }),
      'no-opinion',
      '',
    ],
    [
      'service account',
      cluster({ kind: 'ServiceAccount', namespace: 'n', name: 'robot' }),
      wants('get', 'pods', { user: sa }),
      'allow',
      'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to ServiceAccount "robot/n"',
    ],
    [
      'service account of another namespace',
      cluster({ kind: 'ServiceAccount', namespace: 'm', name: 'robot' }),
      wants('get', 'pods', { user: sa }),
      'no-opinion',
      '',
    ],
    [
      'cluster binding of a service account without namespace',
      cluster({ kind: 'ServiceAccount', name: 'robot' }),
      wants('get', 'pods', { user: sa }),
      'no-opinion',
      '',
    ],
    [
      'role in its namespace',
      local('Role', USER_ALICE),
      wants('get', 'pods'),
      'allow',
      'RBAC: allowed by RoleBinding "b/n" of Role "reader" to User "alice"',
    ],
    [
      'role in another namespace',
      local('Role', USER_ALICE),
      wants('get', 'pods', { namespace: 'other' }),
      'no-opinion',
      '',
    ],
    ['role for all namespaces', local('Role', USER_ALICE), wants('get', 'pods', { namespace: '' }), 'no-opinion', ''],
    [
      'cluster role in one namespace',
      local('ClusterRole', USER_ALICE),
      wants('get', 'pods'),
      'allow',
      'RBAC: allowed by RoleBinding "b/n" of ClusterRole "reader" to User "alice"',
    ],
    [
      'service account of the same namespace',
      local('Role', { kind: 'ServiceAccount', name: 'robot' }),
      wants('get', 'pods', { user: sa }),
      'allow',
      'RBAC: allowed by RoleBinding "b/n" of Role "reader" to ServiceAccount "robot/n"',
    ],
    ['nobody asked', local('Role', { kind: 'Robot', name: 'alice' }), wants('get', 'pods'), 'no-opinion', ''],
    [
      'role that is missing',
      { clusterRoleBindings: [binding('b', 'ClusterRole', 'gone', [USER_ALICE])] },
      wants('get', 'pods'),
      'no-opinion',
      'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found',
    ],
    [
      'cluster binding to a role',
      { clusterRoleBindings: [binding('b', 'Role', 'r', [USER_ALICE])] },
      wants('get', 'pods'),
      'no-opinion',
      'RBAC: unsupported role reference kind: "Role"',
    ],
  ];
  for (const [rule, world, attributes, verdict, reason] of cases) {
    it(rule, () => {
      assert.deepEqual(createRbacAuthorizer(listerOf(world)).authorize(attributes), { verdict, reason });
    });
  }

  it('a broken binding does not stop the others', () => {
    const world = {
      clusterRoles: [role('reader', [READ_PODS])],
      clusterRoleBindings: [
        binding('bad', 'ClusterRole', 'gone', [USER_ALICE]),
        binding('b', 'ClusterRole', 'reader', [USER_ALICE]),
      ],
    };
    assert.equal(createRbacAuthorizer(listerOf(world)).authorize(wants('get', 'pods')).verdict, 'allow');
    assert.deepEqual(rulesFor(listerOf(world), alice, 'n'), {
      rules: [READ_PODS],
      errors: ['clusterrole.rbac.authorization.k8s.io "gone" not found'],
    });
  });

  it('masters need no binding; the first opinion decides', () => {
    const deny: Authorizer = { authorize: () => ({ verdict: 'deny', reason: 'no' }) };
    const master = { ...alice, groups: ['system:masters'] };
    assert.equal(
      firstDecision(mastersAuthorizer, deny).authorize(wants('get', 'pods', { user: master })).verdict,
      'allow',
    );
    assert.deepEqual(firstDecision(mastersAuthorizer, deny).authorize(wants('get', 'pods')), {
      verdict: 'deny',
      reason: 'no',
    });
    assert.equal(firstDecision(mastersAuthorizer).authorize(wants('get', 'pods')).verdict, 'no-opinion');
  });
});

describe('bootstrap objects', () => {
  const { clusterRoles, clusterRoleBindings } = bootstrapObjects();
  const lister = listerOf({
    clusterRoles: [...clusterRoles],
    clusterRoleBindings: [...clusterRoleBindings],
    roleBindings: ['admin', 'edit', 'view'].map(name =>
      binding(name, 'ClusterRole', name, [{ kind: 'User', name }], 'n'),
    ),
  });
  const authorizer = createRbacAuthorizer(lister);
  const as = (name: string): User => authenticated({ name, uid: '', groups: [], extra: {} });

  const cases: [who: User, verb: string, resource: string, over: Partial<ResourceAttributes>, allowed: boolean][] = [
    [as('view'), 'list', 'configmaps', {}, true],
    [as('view'), 'list', 'secrets', {}, false],
    [as('view'), 'get', 'pods/log', {}, true],
    [as('view'), 'list', 'configmaps', { namespace: 'other' }, false],
    [as('edit'), 'update', 'secrets', {}, true],
    [as('edit'), 'list', 'pods', {}, true],
    [as('edit'), 'create', 'rolebindings', { group: 'rbac.authorization.k8s.io' }, false],
    [as('admin'), 'create', 'rolebindings', { group: 'rbac.authorization.k8s.io' }, true],
    [as('admin'), 'create', 'pods/eviction', {}, true],
    [as('admin'), 'create', 'namespaces', { namespace: '' }, false],
    [as('who'), 'create', 'selfsubjectaccessreviews', { group: 'authorization.k8s.io', namespace: '' }, true],
    [as('who'), 'list', 'pods', {}, false],
    [{ ...as('root'), groups: ['system:masters'] }, 'delete', 'nodes', { namespace: '' }, true],
  ];
  for (const [user, verb, resource, over, allowed] of cases) {
    it(`${user.name} ${allowed ? 'may' : 'may not'} ${verb} ${resource}`, () => {
      assert.equal(authorizer.authorize(wants(verb, resource, { ...over, user })).verdict === 'allow', allowed);
    });
  }

  it('anonymous may see health, not discovery', () => {
    const may = (path: string, user: User) => authorizer.authorize({ user, verb: 'get', path }).verdict === 'allow';
    assert.equal(may('/readyz', ANONYMOUS), true);
    assert.equal(may('/api', ANONYMOUS), false);
    assert.equal(may('/api', as('who')), true);
    assert.equal(may('/metrics', as('who')), false);
  });

  it('comes aggregated and as fresh copies', () => {
    assert.deepEqual(staleAggregates(clusterRoles), []);
    assert.notEqual(bootstrapObjects().clusterRoles[0], clusterRoles[0]);
  });
});
