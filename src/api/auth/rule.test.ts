import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyRule } from 'kubernetes-types/rbac/v1.d.ts';
import type { Attributes, ResourceAttributes } from './attributes.ts';
import { notCoveredByOne, partCount, ruleAllows, uncovered } from './rule.ts';
import { authenticated, type User } from './user.ts';

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

describe('one rule', () => {
  const pods: PolicyRule = { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] };
  const cases: [rule: string, policy: PolicyRule, attributes: Attributes, allowed: boolean][] = [
    ['exact', pods, wants('get', 'pods'), true],
    ['other verb', pods, wants('delete', 'pods'), false],
    ['other resource', pods, wants('get', 'secrets'), false],
    ['other group', pods, wants('get', 'pods', { group: 'apps' }), false],
    ['subresource is not included', pods, wants('get', 'pods/log'), false],
    ['subresource', { ...pods, resources: ['pods/log'] }, wants('get', 'pods/log'), true],
    ['resource is not included in its subresource', { ...pods, resources: ['pods/log'] }, wants('get', 'pods'), false],
    ['subresource of everything', { ...pods, resources: ['*/log'] }, wants('get', 'pods/log'), true],
    ['other subresource of everything', { ...pods, resources: ['*/log'] }, wants('get', 'pods/exec'), false],
    ['all resources include subresources', { ...pods, resources: ['*'] }, wants('get', 'pods/log'), true],
    ['all verbs', { ...pods, verbs: ['*'] }, wants('escalate', 'pods'), true],
    ['all groups', { ...pods, apiGroups: ['*'] }, wants('get', 'pods', { group: 'x' }), true],
    ['name', { ...pods, resourceNames: ['a'] }, wants('get', 'pods', { name: 'a' }), true],
    ['other name', { ...pods, resourceNames: ['a'] }, wants('get', 'pods', { name: 'b' }), false],
    ['name and no name', { ...pods, resourceNames: ['a'] }, wants('list', 'pods'), false],
    ['no names at all', { ...pods, resourceNames: [] }, wants('get', 'pods', { name: 'b' }), true],
    ['path', { nonResourceURLs: ['/metrics'], verbs: ['get'] }, { user: alice, verb: 'get', path: '/metrics' }, true],
    [
      'other path',
      { nonResourceURLs: ['/metrics'], verbs: ['get'] },
      { user: alice, verb: 'get', path: '/metrics/x' },
      false,
    ],
    [
      'path below',
      { nonResourceURLs: ['/healthz/*'], verbs: ['get'] },
      { user: alice, verb: 'get', path: '/healthz/etcd' },
      true,
    ],
    ['every path', { nonResourceURLs: ['*'], verbs: ['*'] }, { user: alice, verb: 'post', path: '/x' }, true],
    ['paths are not resources', { nonResourceURLs: ['*'], verbs: ['*'] }, wants('get', 'pods'), false],
    ['resources are not paths', { ...pods, resources: ['*'] }, { user: alice, verb: 'get', path: '/x' }, false],
  ];
  for (const [rule, policy, attributes, allowed] of cases) {
    it(rule, () => {
      assert.equal(ruleAllows(policy, attributes), allowed);
    });
  }
});

describe('rules against rules', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);

  it('a rule is covered by one rule, or by several together, or in part', () => {
    const wanted: PolicyRule = {
      apiGroups: [''],
      resources: ['pods'],
      verbs: ['get', 'list'],
      resourceNames: ['a', 'b'],
    };
    const [get, list] = ['get', 'list'].map(verb => ({ apiGroups: [''], resources: ['*'], verbs: [verb] }));
    const both: PolicyRule = { ...wanted, resourceNames: ['b', 'c', 'a'] };
    assert.deepEqual(notCoveredByOne([both], [wanted]), []);
    assert.deepEqual(notCoveredByOne([get, list] as PolicyRule[], [wanted]), [wanted]);
    assert.deepEqual([...uncovered([get, list] as PolicyRule[], [wanted])], []);
    assert.deepEqual(
      [...uncovered([get] as PolicyRule[], [wanted])],
      ['a', 'b'].map(name => ({ ...wanted, verbs: ['list'], resourceNames: [name] })),
    );
  });

  it('a rule is not covered when one of its sides is not', () => {
    const owned: PolicyRule = {
      apiGroups: [''],
      resources: ['pods', '*/log'],
      verbs: ['get'],
      resourceNames: ['a', 'b'],
    };
    const wanted: PolicyRule = { ...owned, resources: ['pods'] };
    const paths: PolicyRule = { nonResourceURLs: ['/a/*'], verbs: ['get'] };
    assert.deepEqual(notCoveredByOne([owned], [wanted, { ...wanted, resources: ['nodes/log'] }]), []);
    const uncoveredOnes: [PolicyRule, PolicyRule][] = [
      [owned, { ...wanted, verbs: ['get', 'list'] }],
      [owned, { ...wanted, apiGroups: ['', 'apps'] }],
      [owned, { ...wanted, resources: ['pods', 'secrets'] }],
      [{ ...owned, resources: ['*/log', '*s'] }, wanted],
      [owned, { ...wanted, resourceNames: ['a', 'c'] }],
      [owned, { ...wanted, resourceNames: ['c'] }],
      [owned, { ...wanted, resourceNames: [] }],
      [paths, { ...paths, nonResourceURLs: ['/a/b', '/b'] }],
    ];
    for (const [mine, theirs] of uncoveredOnes) assert.deepEqual(notCoveredByOne([mine], [theirs]), [theirs]);
  });

  it('parts are counted as they are listed', () => {
    const rules: PolicyRule[] = [
      { apiGroups: names(2), resources: names(3), verbs: names(5) },
      { apiGroups: names(2), resources: names(3), verbs: names(5), resourceNames: names(7) },
      { nonResourceURLs: names(3), verbs: names(2) },
      { apiGroups: names(2), resources: names(3), nonResourceURLs: names(3), verbs: names(2) },
      { apiGroups: names(2), verbs: names(2) },
    ];
    assert.deepEqual(
      rules.map(partCount),
      rules.map(rule => [...uncovered([], [rule])].length),
    );
  });

  it('stars that are not at the end of a path cost nothing', () => {
    const rule: PolicyRule = { nonResourceURLs: [`/a${'*'.repeat(1_000_000)}b***`], verbs: ['get'] };
    assert.equal(ruleAllows(rule, { user: alice, verb: 'get', path: '/a' }), false);
    const below: PolicyRule = { nonResourceURLs: ['/a/***'], verbs: ['get'] };
    assert.equal(ruleAllows(below, { user: alice, verb: 'get', path: '/a/b' }), true);
  });
});
