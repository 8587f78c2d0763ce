import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ClusterRole, PolicyRule } from 'kubernetes-types/rbac/v1.d.ts';
import { aggregatedRules, staleAggregates } from './aggregation.ts';
import { firstDecision, mastersAuthorizer } from './authorize.ts';
import { checkBindingWrite, checkRoleWrite, type EscalationContext } from './escalation.ts';
import { createRbacAuthorizer } from './rbac.ts';
import { binding, listerOf, READ_PODS, role, USER_ALICE } from './rbac-testing.ts';
import { authenticated, type User } from './user.ts';

const alice: User = authenticated({ name: 'alice', uid: '', groups: ['dev'], extra: {} });

describe('aggregation', () => {
  const labelled = (name: string, labels: Record<string, string>, rules: PolicyRule[]): ClusterRole => ({
    metadata: { name, labels },
    rules,
  });
  const gather = (name: string, labels: Record<string, string>, match: Record<string, string>): ClusterRole => ({
    metadata: { name, labels },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: match }] },
  });
  const listPods: PolicyRule = { ...READ_PODS, verbs: ['list'] };

  it('joins the rules of matching roles once, in order of names, without itself', () => {
    const roles = [
      labelled('b', { to: 'view' }, [listPods, READ_PODS]),
      labelled('a', { to: 'view' }, [READ_PODS]),
      labelled('c', { to: 'other' }, [{ ...READ_PODS, verbs: ['watch'] }]),
      gather('view', { to: 'view' }, { to: 'view' }),
    ];
    assert.deepEqual(aggregatedRules(roles[3] as ClusterRole, roles), [READ_PODS, listPods]);
  });

  it('chains settle in one go and then stay', () => {
    const roles = [
      gather('admin', {}, { to: 'admin' }),
      gather('edit', { to: 'admin' }, { to: 'edit' }),
      labelled('x', { to: 'edit' }, [READ_PODS]),
    ];
    const stale = staleAggregates(roles);
    assert.deepEqual(
      stale.map(({ metadata, rules }) => [metadata?.name, rules]),
      [
        ['admin', [READ_PODS]],
        ['edit', [READ_PODS]],
      ],
    );
    assert.deepEqual(staleAggregates([...stale, roles[2] as ClusterRole]), []);
  });

  it('a rule that was changed is gathered anew', () => {
    const stored = { ...gather('edit', {}, { to: 'edit' }), rules: [READ_PODS] };
    const stale = staleAggregates([stored, labelled('x', { to: 'edit' }, [listPods])]);
    assert.deepEqual(
      stale.map(({ rules }) => rules),
      [[listPods]],
    );
  });

  it('a role that is no longer there takes its rules with it', () => {
    assert.deepEqual(
      staleAggregates([{ ...gather('edit', {}, { to: 'edit' }), rules: [READ_PODS] }]).map(({ rules }) => rules),
      [[]],
    );
  });

  it('a selector that cannot be read gathers nothing', () => {
    const bad: ClusterRole = {
      metadata: { name: 'bad' },
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { '@': '' } }] },
    };
    assert.deepEqual(staleAggregates([bad]), []);
  });
});

describe('escalation', () => {
  const world = (rules: PolicyRule[]): EscalationContext => {
    const lister = listerOf({
      clusterRoles: [role('own', rules), role('reader', [READ_PODS]), role('strong', [{ ...READ_PODS, verbs: ['*'] }])],
      clusterRoleBindings: [binding('b', 'ClusterRole', 'own', [USER_ALICE])],
    });
    return { lister, authorizer: firstDecision(mastersAuthorizer, createRbacAuthorizer(lister)), user: alice };
  };
  const everything: PolicyRule[] = [
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ];
  const rbacVerb = (verb: string, resources: string[], resourceNames: string[] = []): PolicyRule => ({
    apiGroups: ['rbac.authorization.k8s.io'],
    resources,
    verbs: [verb],
    resourceNames,
  });
  const write = (rules: PolicyRule[]) => role('new', rules);
  const aggregating: ClusterRole = { metadata: { name: 'new' }, aggregationRule: { clusterRoleSelectors: [{}] } };

  const allowed: [rule: string, own: PolicyRule[], act: (context: EscalationContext) => void][] = [
    ['grants what the user has', [READ_PODS], c => checkRoleWrite(c, write([READ_PODS]))],
    [
      'grants a part of it',
      [{ ...READ_PODS, verbs: ['*'], resources: ['*'] }],
      c => checkRoleWrite(c, write([{ ...READ_PODS, resources: ['pods/log'] }])),
    ],
    ['grants one name of all', [READ_PODS], c => checkRoleWrite(c, write([{ ...READ_PODS, resourceNames: ['a'] }]))],
    [
      'grants a path below',
      [{ nonResourceURLs: ['/a/*'], verbs: ['get'] }],
      c => checkRoleWrite(c, write([{ nonResourceURLs: ['/a/b'], verbs: ['get'] }])),
    ],
    ['may escalate', [rbacVerb('escalate', ['clusterroles'])], c => checkRoleWrite(c, write(everything))],
    [
      'is a master',
      [],
      c => checkRoleWrite({ ...c, user: { ...alice, groups: ['system:masters'] } }, write(everything)),
    ],
    ['aggregates with full authority', everything, c => checkRoleWrite(c, aggregating)],
    ['changes one that does not aggregate', [READ_PODS], c => checkRoleWrite(c, write([READ_PODS]), write([]))],
    [
      'only removes a finalizer',
      [],
      c =>
        checkRoleWrite(c, write(everything), {
          ...write(everything),
          metadata: { name: 'new', finalizers: ['f'], resourceVersion: '1' },
        }),
    ],
    [
      'aggregates nothing',
      [READ_PODS],
      c => checkRoleWrite(c, { ...write([READ_PODS]), aggregationRule: { clusterRoleSelectors: [] } }),
    ],
    [
      'only removes a finalizer of a binding, even to a role that is gone',
      [],
      c => {
        const bound = binding('x', 'ClusterRole', 'gone', [USER_ALICE]);
        const held = { ...bound, metadata: { ...bound.metadata, finalizers: ['f'], resourceVersion: '1' } };
        checkBindingWrite(c, bound, held);
      },
    ],
    [
      'binds a role it has',
      [READ_PODS],
      c => checkBindingWrite(c, binding('x', 'ClusterRole', 'reader', [USER_ALICE])),
    ],
    [
      'may bind',
      [rbacVerb('bind', ['clusterroles'], ['strong'])],
      c => checkBindingWrite(c, binding('x', 'ClusterRole', 'strong', [USER_ALICE])),
    ],
  ];
  for (const [rule, own, act] of allowed) {
    it(`allowed: ${rule}`, () => {
      act(world(own));
    });
  }

  const refused: [rule: string, own: PolicyRule[], act: (context: EscalationContext) => void, message: string][] = [
    [
      'verbs of one resource are shown together',
      [READ_PODS],
      c => checkRoleWrite(c, write([{ ...READ_PODS, verbs: ['get', 'list', 'watch'] }])),
      'clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}',
    ],
    [
      'all names when it has one',
      [{ ...READ_PODS, resourceNames: ['a'] }],
      c => checkRoleWrite(c, role('new', [READ_PODS], 'n')),
      'roles.rbac.authorization.k8s.io "new" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
    ],
    [
      'a label that may pull the role into another',
      [],
      c =>
        checkRoleWrite(
          c,
          { ...write([READ_PODS]), metadata: { name: 'new', labels: { to: 'view' } } },
          write([READ_PODS]),
        ),
      'clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
    ],
    [
      'aggregates',
      [READ_PODS],
      c => checkRoleWrite(c, aggregating),
      'clusterroles.rbac.authorization.k8s.io "new" is forbidden: must have cluster-admin privileges to use the aggregationRule',
    ],
    [
      'ends an aggregation',
      [READ_PODS],
      c => checkRoleWrite(c, write([READ_PODS]), aggregating),
      'clusterroles.rbac.authorization.k8s.io "new" is forbidden: must have cluster-admin privileges to use the aggregationRule',
    ],
    [
      'binds more people to what is bound already',
      [],
      c =>
        checkBindingWrite(
          c,
          binding('x', 'ClusterRole', 'reader', [USER_ALICE], 'n'),
          binding('x', 'ClusterRole', 'reader', [], 'n'),
        ),
      'rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
    ],
    [
      'may bind another',
      [rbacVerb('bind', ['clusterroles'], ['reader'])],
      c => checkBindingWrite(c, binding('x', 'ClusterRole', 'strong', [USER_ALICE], 'n')),
      'rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["*"]}',
    ],
    [
      'binds what is not there',
      [],
      c => checkBindingWrite(c, binding('x', 'ClusterRole', 'gone', [USER_ALICE])),
      'clusterroles.rbac.authorization.k8s.io "gone" not found',
    ],
  ];
  for (const [rule, own, act, message] of refused) {
    it(`refused: ${rule}`, () => {
      assert.throws(() => act(world(own)), { name: 'KubeError', message });
    });
  }

  const values = (count: number) => Array.from({ length: count }, (_, index) => `v${index}`);

  it('refused: rules with more combinations than can be compared', () => {
    const list = values(1000);
    const huge: PolicyRule = { apiGroups: list, resources: list, verbs: list, resourceNames: list };
    assert.throws(() => checkRoleWrite(world([READ_PODS]), write([huge])), {
      code: 400,
      message:
        'the rules have 1000000000000 combinations of API group, resource, name and verb, at most 10000 can be compared',
    });
    checkRoleWrite(world(everything), write([huge]));
  });

  it('the message does not grow with the combinations', () => {
    const long: PolicyRule = { apiGroups: ['g'.repeat(100_000)], resources: values(5000), verbs: ['get'] };
    assert.throws(
      () => checkRoleWrite(world([READ_PODS]), write([long])),
      (error: Error) => error.message.length < 400_000 && error.message.endsWith('}\n... and more'),
    );
  });
});
