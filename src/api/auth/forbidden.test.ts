import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Attributes } from './attributes.ts';
import { forbiddenError, forbiddenObject, unauthorizedError } from './forbidden.ts';

describe('refusals in the words of the real API', () => {
  const user = { name: 'u', uid: '', groups: [], extra: {} };
  const secret = {
    user,
    verb: 'get',
    group: '',
    version: 'v1',
    resource: 'secrets',
    subresource: '',
    namespace: 'ns',
    name: 'x',
  };
  const cases: [rule: string, attributes: Attributes, reason: string, message: string][] = [
    [
      'object in a namespace',
      secret,
      '',
      'secrets "x" is forbidden: User "u" cannot get resource "secrets" in API group "" in the namespace "ns"',
    ],
    [
      'collection',
      { ...secret, verb: 'list', name: '' },
      '',
      'secrets is forbidden: User "u" cannot list resource "secrets" in API group "" in the namespace "ns"',
    ],
    [
      'all namespaces',
      { ...secret, verb: 'list', name: '', namespace: '' },
      '',
      'secrets is forbidden: User "u" cannot list resource "secrets" in API group "" at the cluster scope',
    ],
    [
      'group and subresource',
      { ...secret, group: 'apps', resource: 'deployments', subresource: 'scale', verb: 'patch' },
      '',
      'deployments.apps "x" is forbidden: User "u" cannot patch resource "deployments/scale" in API group "apps" in the namespace "ns"',
    ],
    [
      'with a reason',
      secret,
      'RBAC: why',
      'secrets "x" is forbidden: User "u" cannot get resource "secrets" in API group "" in the namespace "ns": RBAC: why',
    ],
    ['path', { user, verb: 'get', path: '/metrics' }, '', 'forbidden: User "u" cannot get path "/metrics"'],
    [
      'markup is escaped',
      { user, verb: 'get', path: '/<a&b>' },
      '',
      'forbidden: User "u" cannot get path "/&lt;a&amp;b&gt;"',
    ],
  ];
  for (const [rule, attributes, reason, message] of cases) {
    it(rule, () => {
      const error = forbiddenError(attributes, reason);
      assert.deepEqual([error.code, error.reason, error.message], [403, 'Forbidden', message]);
    });
  }

  it('details name the object', () => {
    assert.deepEqual(forbiddenObject('apps', 'deployments', 'x', 'why').details, {
      name: 'x',
      group: 'apps',
      kind: 'deployments',
    });
    assert.deepEqual(forbiddenObject('', 'pods', '', 'why').details, { kind: 'pods' });
  });

  it('401 says nothing', () => {
    const error = unauthorizedError();
    assert.deepEqual([error.code, error.reason, error.message], [401, 'Unauthorized', 'Unauthorized']);
  });
});
