import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatFieldError } from './field-error.ts';
import { identityErrors, metadataUpdateErrors } from './metadata.ts';
import {
  dns1035Label,
  dnsLabel,
  dnsSubdomain,
  labelValue,
  type NameRule,
  nameRuleOf,
  pathSegment,
  qualifiedName,
} from './name.ts';

describe('names', () => {
  const cases: [rule: string, check: NameRule, good: string[], bad: string[]][] = [
    ['DNS label', dnsLabel, ['a', 'a-1', '1a'], ['', '-a', 'A', 'a.b', 'a'.repeat(64), 'a_b']],
    ['DNS subdomain', dnsSubdomain, ['a.b-c.d', 'x'.repeat(63)], ['', 'a..b', '../a', 'a/b', 'a'.repeat(254), 'é']],
    ['DNS-1035 label', dns1035Label, ['a1'], ['1a', 'A']],
    ['path segment', pathSegment, ['system:node', 'A b'], ['.', '..', 'a/b', 'a%b']],
    ['label value', labelValue, ['', 'A_b.c-1'], ['-a', 'a ', 'a'.repeat(64)]],
    [
      'qualified name',
      qualifiedName,
      ['a', 'example.com/A_b'],
      ['', '/a', 'a/', 'a/b/c', 'UPPER.com/a', 'a'.repeat(64)],
    ],
  ];
  for (const [name, rule, good, bad] of cases) {
    test(name, () => {
      for (const value of good) assert.deepEqual(rule(value), [], value);
      for (const value of bad) assert.notDeepEqual(rule(value), [], value);
    });
  }

  test('of kinds', () => {
    assert.deepEqual(nameRuleOf('rbac.authorization.k8s.io', 'ClusterRole')('system:x'), []);
    assert.notDeepEqual(nameRuleOf('', 'ConfigMap')('system:x'), []);
    assert.deepEqual(nameRuleOf('', 'ConfigMap')('a.b'), []);
    assert.notDeepEqual(nameRuleOf('', 'Namespace')('a.b'), []);
  });

  test('that are absurdly long are refused without effort', () => {
    assert.equal(dnsSubdomain('a-'.repeat(500_000)).length, 2);
  });
});

describe('identity', () => {
  const lines = (metadata: object, namespaced: boolean) =>
    identityErrors({ ...metadata }, namespaced, dnsSubdomain).map(formatFieldError);

  test('is a name, and a namespace where there are namespaces', () => {
    assert.deepEqual(lines({ name: 'a', namespace: 'n' }, true), []);
    assert.deepEqual(lines({}, true), [
      'metadata.name: Required value: name or generateName is required',
      'metadata.namespace: Required value',
    ]);
    assert.deepEqual(lines({ name: 'a', namespace: 'n' }, false), [
      'metadata.namespace: Forbidden: not allowed on this type',
    ]);
    assert.match(lines({ name: '../a' }, false).join(), /metadata\.name: Invalid value: "\.\.\/a"/);
    assert.deepEqual(lines({ name: 'a-x', generateName: 'a-' }, false), []);
    assert.match(lines({ name: 'a', generateName: 'ABC-' }, false).join(), /metadata\.generateName/);
  });

  test('does not change in updates, and the dying take no new finalizers', () => {
    const old = { name: 'a', uid: '1', deletionTimestamp: 't', finalizers: ['x/y'] };
    const lines = (change: object) => metadataUpdateErrors({ ...old, ...change }, old).map(formatFieldError);
    assert.deepEqual(lines({ labels: {} }), []);
    assert.deepEqual(lines({ finalizers: [] }), []);
    assert.deepEqual(lines({ uid: '2' }), ['metadata.uid: Invalid value: "2": field is immutable']);
    assert.match(
      lines({ finalizers: ['x/y', 'x/z'] }).join(),
      /no new finalizers can be added if the object is being deleted/,
    );
  });
});
