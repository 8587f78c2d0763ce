import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  answerLocalSubjectAccessReview,
  answerSelfSubjectAccessReview,
  answerSelfSubjectRulesReview,
  answerSubjectAccessReview,
} from './access-review.ts';
import type { Authorizer } from './authorize.ts';
import type { RbacLister } from './rbac.ts';
import { answerSelfSubjectReview, answerTokenReview } from './token-review.ts';
import { serviceAccountUser } from './user.ts';

const user = { name: 'u', uid: '', groups: ['g'], extra: {} };
/** Allows what has the verb get, denies delete, and tells what it was asked. */
const authorizer: Authorizer = {
  authorize: attributes => ({
    verdict: attributes.verb === 'get' ? 'allow' : attributes.verb === 'delete' ? 'deny' : 'no-opinion',
    reason: JSON.stringify({ ...attributes, user: attributes.user.name }),
  }),
};
const resourceAttributes = { verb: 'get', resource: 'pods', namespace: 'n' };

describe('access reviews', () => {
  it('SubjectAccessReview asks for the subject', () => {
    const review = { spec: { user: 'other', groups: ['x'], resourceAttributes } };
    const { status } = answerSubjectAccessReview(review, authorizer);
    const asked = {
      user: 'other',
      verb: 'get',
      group: '',
      version: '*',
      resource: 'pods',
      subresource: '',
      namespace: 'n',
      name: '',
    };
    assert.deepEqual({ ...status, reason: JSON.parse(status?.reason ?? '') }, { allowed: true, reason: asked });
  });

  it('SubjectAccessReview takes groups without a user, and a version', () => {
    const versioned = { ...resourceAttributes, version: 'v1' };
    const { status } = answerSubjectAccessReview(
      { spec: { groups: ['x'], resourceAttributes: versioned } },
      authorizer,
    );
    const { user: asked, version } = JSON.parse(status?.reason ?? '') as Record<string, string>;
    assert.deepEqual([asked, version], ['', 'v1']);
  });

  it('SelfSubjectAccessReview asks for the caller, a path too', () => {
    const { status } = answerSelfSubjectAccessReview(
      { spec: { nonResourceAttributes: { path: '/x', verb: 'post' } } },
      user,
      authorizer,
    );
    assert.deepEqual(
      { ...status, reason: JSON.parse(status?.reason ?? '') },
      { allowed: false, reason: { user: 'u', verb: 'post', path: '/x' } },
    );
  });

  it('a denial is told apart from nobody allowing it', () => {
    const { status } = answerSelfSubjectAccessReview(
      { spec: { resourceAttributes: { verb: 'delete' } } },
      user,
      authorizer,
    );
    assert.deepEqual([status?.allowed, status?.denied], [false, true]);
  });

  it('LocalSubjectAccessReview stays in its namespace', () => {
    const review = { metadata: { namespace: 'n' }, spec: { user: 'a', resourceAttributes } };
    assert.equal(answerLocalSubjectAccessReview(review, 'n', authorizer).status?.allowed, true);
    assert.throws(() => answerLocalSubjectAccessReview(review, 'm', authorizer), { code: 400 });
    assert.throws(
      () =>
        answerLocalSubjectAccessReview(
          { ...review, spec: { user: 'a', resourceAttributes: { verb: 'get', namespace: 'm' } } },
          'n',
          authorizer,
        ),
      { code: 422, message: /spec.resourceAttributes.namespace: Invalid value: "m": must match metadata.namespace/ },
    );
    assert.throws(
      () =>
        answerLocalSubjectAccessReview(
          { ...review, spec: { user: 'a', nonResourceAttributes: { path: '/' } } },
          'n',
          authorizer,
        ),
      { code: 422, message: /disallowed on this kind of request/ },
    );
  });

  const bad: [rule: string, act: () => unknown, message: RegExp][] = [
    [
      'neither',
      () => answerSelfSubjectAccessReview({ spec: {} }, user, authorizer),
      /^SelfSubjectAccessReview\.authorization\.k8s\.io "" is invalid: spec: Invalid value: .*: exactly one of nonResourceAttributes or resourceAttributes must be specified/,
    ],
    [
      'both',
      () =>
        answerSelfSubjectAccessReview({ spec: { resourceAttributes, nonResourceAttributes: {} } }, user, authorizer),
      /exactly one of/,
    ],
    [
      'nobody',
      () => answerSubjectAccessReview({ spec: { resourceAttributes } }, authorizer),
      /spec.user: Invalid value: "": at least one of user or group must be specified/,
    ],
  ];
  for (const [rule, act, message] of bad) {
    it(`refused: ${rule}`, () => {
      assert.throws(act, { code: 422, reason: 'Invalid', message });
    });
  }

  it('SelfSubjectRulesReview lists what one may do', () => {
    const lister: RbacLister = {
      role: () => undefined,
      clusterRole: name =>
        name === 'r'
          ? {
              rules: [
                { apiGroups: [''], resources: ['pods'], resourceNames: ['a'], verbs: ['get'] },
                { nonResourceURLs: ['/x'], verbs: ['get'] },
              ],
            }
          : undefined,
      roleBindings: () => [],
      clusterRoleBindings: () =>
        ['r', 'gone'].map(name => ({
          roleRef: { apiGroup: '', kind: 'ClusterRole', name },
          subjects: [{ kind: 'User', name: 'u' }],
        })),
    };
    assert.deepEqual(answerSelfSubjectRulesReview({ spec: { namespace: 'n' } }, user, lister).status, {
      resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: ['a'] }],
      nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }],
      incomplete: false,
      evaluationError: 'clusterrole.rbac.authorization.k8s.io "gone" not found',
    });
    assert.throws(() => answerSelfSubjectRulesReview({ spec: {} }, user, lister), {
      code: 400,
      message: 'no namespace on request',
    });
  });
});

describe('token and self reviews', () => {
  const account = serviceAccountUser('n', 's', 'uid', { 'authentication.kubernetes.io/pod-name': ['p'] });
  const authenticator = {
    authenticateToken: (token: string, audiences: readonly string[]) =>
      token === 'good'
        ? ({ ok: true, user: account, audiences } as const)
        : ({ ok: false, why: 'secret reason' } as const),
  };

  it('a good token tells its user and audiences', () => {
    const { status } = answerTokenReview({ spec: { token: 'good', audiences: ['a'] } }, authenticator, ['api']);
    assert.equal(status?.authenticated, true);
    assert.equal(status.user?.username, 'system:serviceaccount:n:s');
    assert.deepEqual(status.user?.extra, { 'authentication.kubernetes.io/pod-name': ['p'] });
    assert.deepEqual(status.audiences, ['a']);
    assert.deepEqual(answerTokenReview({ spec: { token: 'good' } }, authenticator, ['api']).status?.audiences, ['api']);
  });

  it('a bad one is an answer, without details', () => {
    const { status } = answerTokenReview({ spec: { token: 'bad' } }, authenticator, ['api']);
    assert.deepEqual(status, { authenticated: false, error: 'invalid bearer token' });
    assert.throws(() => answerTokenReview({ spec: {} }, authenticator, []), { code: 400 });
  });

  it('whoami', () => {
    assert.deepEqual(answerSelfSubjectReview({}, user).status, { userInfo: { username: 'u', groups: ['g'] } });
  });
});
