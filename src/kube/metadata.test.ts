import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import { mergeKeys, mergeMetadata, mergeOwnerReferences, metadataForCreate } from './metadata.ts';

const owner = (name: string, uid: string, rest: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: 'group/v1',
  kind: 'Kind',
  name,
  uid,
  ...rest,
});

describe('mergeOwnerReferences', () => {
  const one = owner('test1', 'uid1');
  const two = owner('test2', 'uid2');
  const bare = { kind: 'Kind', name: 'bare' } as OwnerReference;
  const cases: [
    rule: string,
    existing: OwnerReference[] | undefined,
    required: OwnerReference[] | undefined,
    result: OwnerReference[],
    changed: boolean,
  ][] = [
    ['nothing and nothing', undefined, undefined, [], false],
    ['first owner', undefined, [one], [one], true],
    ['owners that are there', [one, two], [one, two], [one, two], false],
    ['others stay', [two], [one], [two, one], true],
    ['removal', [one, two], [owner('test1', 'uid1-')], [two], true],
    ['removal of any uid', [one, two], [owner('test1', '-')], [two], true],
    ['removal of what is not there', [two], [owner('test1', 'uid1-')], [two], false],
    ['another uid replaces (O-1)', [owner('test1', 'old'), two], [one], [one, two], true],
    ['another version of the group replaces', [owner('test1', 'uid1', { apiVersion: 'group/v2' })], [one], [one], true],
    [
      'another group is another owner',
      [owner('test1', 'uid1', { apiVersion: 'other/v1' })],
      [one],
      [owner('test1', 'uid1', { apiVersion: 'other/v1' }), one],
      true,
    ],
    [
      'the core group is no prefix',
      [owner('test1', 'uid1', { apiVersion: 'v1' })],
      [one],
      [owner('test1', 'uid1', { apiVersion: 'v1' }), one],
      true,
    ],
    [
      'controller counts by value (14.6)',
      [owner('test1', 'uid1', { controller: true })],
      [owner('test1', 'uid1', { controller: true })],
      [owner('test1', 'uid1', { controller: true })],
      false,
    ],
    [
      'a changed controller flag replaces',
      [one],
      [owner('test1', 'uid1', { controller: true })],
      [owner('test1', 'uid1', { controller: true })],
      true,
    ],
    [
      'blockOwnerDeletion counts',
      [one],
      [owner('test1', 'uid1', { blockOwnerDeletion: true })],
      [owner('test1', 'uid1', { blockOwnerDeletion: true })],
      true,
    ],
    ['an owner that lacks uid and version is one of the core group', [two], [bare], [two, bare], true],
    ['such an owner is recognised', [bare, two], [bare], [bare, two], false],
    ['copies that upstream left are cleaned up', [one, two, one, one], [one], [one, two], true],
  ];
  for (const [rule, existing, required, result, changed] of cases) {
    it(rule, () => {
      assert.deepEqual(mergeOwnerReferences(existing, required), { result, changed });
    });
  }

  it('merging twice changes nothing more, and never the input', () => {
    const reference = fc
      .tuple(fc.constantFrom('v1', 'a/v1', 'a/v2', 'b/v1'), fc.constantFrom('x', 'y'), fc.constantFrom('1', '2'))
      .map(([apiVersion, name, uid]) => owner(name, uid, { apiVersion }));
    const selector = ({ apiVersion, name }: OwnerReference) => `${apiVersion.replace(/\/?v\d$/, '')} ${name}`;
    fc.assert(
      fc.property(fc.array(reference), fc.uniqueArray(reference, { selector, maxLength: 3 }), (existing, required) => {
        const before = structuredClone(existing);
        const { result } = mergeOwnerReferences(existing, required);
        assert.deepEqual(existing, before);
        assert.equal(mergeOwnerReferences(result, required).changed, false);
      }),
    );
  });
});

describe('labels and annotations', () => {
  it('sets, removes and leaves alone', () => {
    const existing = { keep: '1', change: '1', drop: '1' };
    assert.deepEqual(mergeKeys(existing, { change: '2', 'drop-': '', 'absent-': '' }), {
      result: { keep: '1', change: '2' },
      changed: true,
    });
    assert.deepEqual(mergeKeys(existing, { keep: '1' }), { result: existing, changed: false });
    assert.deepEqual(mergeKeys(undefined, { a: '' }), { result: { a: '' }, changed: true });
  });

  it('nothing else of the metadata is touched', () => {
    const existing = { name: 'a', namespace: 'ns', finalizers: ['f'], labels: { l: '1' }, resourceVersion: '7' };
    const required = { name: 'a', finalizers: [], annotations: { n: '1' } };
    assert.deepEqual(mergeMetadata(existing, required), {
      result: { ...existing, annotations: { n: '1' } },
      changed: true,
    });
    assert.equal(mergeMetadata(existing, {}).result, existing);
  });

  it('on create, removals are dropped', () => {
    const required = {
      name: 'a',
      resourceVersion: '7',
      uid: 'u',
      labels: { 'a-': '', b: '1' },
      annotations: { 'c-': '' },
      ownerReferences: [owner('x', '-')],
    };
    assert.deepEqual(metadataForCreate(required), {
      name: 'a',
      labels: { b: '1' },
      annotations: {},
      ownerReferences: [],
    });
  });
});
