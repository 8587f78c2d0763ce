import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configMap, secret } from '../testing.ts';
import { compareRevision, type RevisionedPair } from './compare.ts';

type Data = Record<string, string> | undefined;

function pair(kind: 'configmap' | 'secret', name: string, source: Data, copy: Data, optional = false): RevisionedPair {
  const make = kind === 'secret' ? secret : configMap;
  return { kind, name, optional, source: source && make(name, source), copy: copy && make(`${name}-3`, copy) };
}

const A = { a: '1' };
const B = { a: '2' };
const OK = pair('configmap', 'ok', A, A);

const CASES: [what: string, pairs: RevisionedPair[], outcome: string, reason?: string][] = [
  ['nothing differs', [OK, pair('secret', 's', A, A)], 'current'],
  ['no objects at all', [], 'current'],
  [
    'a required source is missing',
    [pair('configmap', 'c', undefined, A)],
    'source missing',
    'configmaps "c" not found',
  ],
  [
    'all missing sources are named, before any missing copy counts (T03)',
    [pair('configmap', 'c', A, undefined), pair('configmap', 'd', undefined, A), pair('secret', 's', undefined, A)],
    'source missing',
    '[configmaps "d" not found, secrets "s" not found]',
  ],
  ['a required copy is missing', [pair('secret', 's', A, undefined)], 'changed', 'secrets "s-3" not found'],
  ['a key changed', [pair('configmap', 'c', B, A)], 'changed', 'required configmap/c has changed'],
  ['a key was added', [pair('configmap', 'c', { ...A, b: '' }, A)], 'changed', 'required configmap/c has changed'],
  ['a key went', [pair('secret', 's', {}, A)], 'changed', 'required secret/s has changed'],
  ['the copy was empty', [pair('secret', 's', A, {})], 'changed', 'required secret/s has been created'],
  [
    'Secrets come first in the reason',
    [pair('configmap', 'c', B, A), pair('secret', 's', B, A)],
    'changed',
    'required secret/s has changed,required configmap/c has changed',
  ],
  ['an optional object is missing on both sides', [pair('secret', 'o', undefined, undefined, true)], 'current'],
  ['an optional source without data is like a missing copy', [pair('secret', 'o', {}, undefined, true)], 'current'],
  [
    'an optional object came',
    [pair('configmap', 'o', A, undefined, true)],
    'changed',
    'optional configmap/o has been created',
  ],
  ['an optional object went', [pair('secret', 'o', undefined, A, true)], 'changed', 'optional secret/o has changed'],
];

describe('comparing a revision with its sources (spec 30, 8.3)', () => {
  for (const [what, pairs, outcome, reason] of CASES) {
    test(what, () =>
      assert.deepEqual(compareRevision(3, pairs), reason === undefined ? { outcome } : { outcome, reason }),
    );
  }

  test('only data counts', () => {
    const source = { ...configMap('c', A), binaryData: { b: 'AA==' } };
    const copy = configMap('c-3', A, { some: 'annotation' });
    assert.equal(compareRevision(3, [{ kind: 'configmap', name: 'c', source, copy }]).outcome, 'current');
  });
});
