import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { describe, it } from 'node:test';
import { isPathRequest } from '../auth/attributes.ts';
import type { Authorizer } from '../auth/authorize.ts';
import { authenticated } from '../auth/user.ts';
import { effectiveUser } from './impersonate.ts';

const alice = authenticated({ name: 'alice', uid: '1', groups: ['staff'], extra: {} });

/** Allows what is named: `users bob`, `userextras/scopes.authentication.k8s.io read`, with the namespace before it. */
function allowing(...allowed: string[]): Authorizer {
  return {
    authorize(attributes) {
      assert.ok(!isPathRequest(attributes));
      const { user, verb, group, version, resource, subresource, namespace, name } = attributes;
      assert.deepEqual([user, verb, version], [alice, 'impersonate', group === '' ? 'v1' : '']);
      const what = `${resource}${subresource && `/${subresource}`}${group && `.${group}`}`;
      const asked = `${namespace && `${namespace}: `}${what} ${name}`;
      return allowed.includes(asked) ? { verdict: 'allow', reason: '' } : { verdict: 'no-opinion', reason: 'no' };
    },
  };
}

const ALL: IncomingHttpHeaders = {
  'impersonate-user': 'bob',
  'impersonate-group': 'devs,ops',
  'impersonate-uid': '7',
  'impersonate-extra-scopes': 'read',
};
const RIGHTS = [
  'users bob',
  'groups devs',
  'groups ops',
  'uids.authentication.k8s.io 7',
  'userextras/scopes.authentication.k8s.io read',
];

describe('impersonation', () => {
  it('leaves alone who asks for none', () => {
    assert.equal(effectiveUser({}, alice, allowing()), alice);
    assert.equal(effectiveUser({ 'impersonate-user': '' }, alice, allowing()), alice);
  });

  it('makes the other user, with all that is asked for', () => {
    const user = effectiveUser(ALL, alice, allowing(...RIGHTS));
    assert.deepEqual(
      user,
      authenticated({ name: 'bob', uid: '7', groups: ['devs', 'ops'], extra: { scopes: ['read'] } }),
    );
  });

  it('takes a right for every single thing', () => {
    for (const missing of RIGHTS) {
      const rights = RIGHTS.filter(right => right !== missing);
      const [, subject] = missing.split(' ');
      const refused = { code: 403, message: new RegExp(`"${subject}" is forbidden: User "alice" cannot impersonate`) };
      assert.throws(() => effectiveUser(ALL, alice, allowing(...rights)), refused, missing);
    }
  });

  it('asks for service accounts in their namespace, and gives them their groups', () => {
    const headers = { 'impersonate-user': 'system:serviceaccount:web:robot' };
    const user = effectiveUser(headers, alice, allowing('web: serviceaccounts robot'));
    const groups = ['system:serviceaccounts', 'system:serviceaccounts:web'];
    assert.deepEqual(user, authenticated({ name: 'system:serviceaccount:web:robot', uid: '', groups, extra: {} }));
    const rights = allowing('serviceaccounts robot', 'users system:serviceaccount:web:robot');
    assert.throws(() => effectiveUser(headers, alice, rights), { code: 403 });
  });

  it('refuses to add to a user that is not named', () => {
    const { 'impersonate-user': _, ...rest } = ALL;
    for (const [name, value] of Object.entries(rest)) {
      const refused = { code: 400, message: 'requested impersonation without a user name' };
      assert.throws(() => effectiveUser({ [name]: value }, alice, allowing(...RIGHTS)), refused, name);
    }
  });

  it('takes repeated headers apart', () => {
    const headers = { 'impersonate-user': 'bob', 'impersonate-extra-scopes': ['read', 'write'] };
    const rights = allowing('users bob', 'userextras/scopes.authentication.k8s.io read');
    assert.throws(() => effectiveUser(headers, alice, rights), { code: 403, message: /"write" is forbidden/ });
  });
});
