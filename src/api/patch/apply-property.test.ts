import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { KubeObject } from '../../kube/resource.ts';
import { builtinSchema } from '../schema/builtin.ts';
import type { Schema } from '../schema/schema.ts';
import { type ApplyRequest, applyConfiguration } from './apply.ts';

type Anything = KubeObject & Record<string, unknown>;

const CONFIG_MAP = builtinSchema('v1', 'ConfigMap') as Schema;
const POD = builtinSchema('v1', 'Pod') as Schema;
const NOW = new Date('2026-11-15T12:00:00Z');
const LATER = new Date('2026-11-15T13:00:00Z');

const configMap = (data: Record<string, string>, labels: Record<string, string>): Anything => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'test', labels },
  data,
});

function apply(
  schema: Schema,
  manager: string,
  applied: Anything,
  live?: KubeObject,
  options: Partial<ApplyRequest> = {},
): Anything {
  const request = { schema, live, applied, apiVersion: 'v1', manager, force: false, now: NOW };
  return applyConfiguration({ ...request, ...options }) as Anything;
}

const hasEntry = (object: KubeObject, manager: string) =>
  object.metadata?.managedFields?.some(entry => entry.manager === manager) ?? false;

/** Random configurations of one pod. */
const name = fc.constantFrom('a', 'b', 'c');
const word = fc.constantFrom('x', 'y');
const labels = fc.dictionary(name, word);
const container = fc.record(
  {
    name,
    image: word,
    args: fc.array(word, { maxLength: 2 }),
    env: fc.uniqueArray(fc.record({ name, value: word }, { requiredKeys: ['name'] }), { selector: env => env.name }),
  },
  { requiredKeys: ['name'] },
);
const configuration = fc
  .record(
    {
      metadata: fc.record({ labels, finalizers: fc.uniqueArray(fc.constantFrom('f/1', 'f/2')) }, { requiredKeys: [] }),
      spec: fc.record(
        {
          containers: fc.uniqueArray(container, { selector: ({ name }) => name }),
          nodeSelector: labels,
          hostNetwork: fc.boolean(),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: ['metadata'] },
  )
  .map(
    ({ metadata, spec }): Anything => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, name: 'p' },
      ...(spec === undefined ? {} : { spec }),
    }),
  );

describe('server-side apply, for any configurations', () => {
  test('applying the same again is a no-op, the very same object', () => {
    fc.assert(
      fc.property(configuration, configuration, configuration, (first, second, third) => {
        const live = apply(POD, 'other', second, apply(POD, 'm', first), { force: true });
        const once = apply(POD, 'm', third, live, { force: true });
        assert.equal(apply(POD, 'm', third, once, { now: LATER }), once);
      }),
      { numRuns: 300 },
    );
  });

  test('managers of disjoint fields never conflict, and each one finds its own', () => {
    const own = (manager: string, data: Record<string, string>) =>
      Object.fromEntries(Object.entries(data).map(([key, value]) => [`${manager}-${key}`, value]));
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.dictionary(name, word)), { maxLength: 8 }), steps => {
        let live: Anything | undefined;
        const wanted = new Map<string, Record<string, string>>();
        for (const [manager, data] of steps) {
          wanted.set(manager, own(manager, data));
          live = apply(CONFIG_MAP, manager, configMap(own(manager, data), own(manager, data)), live);
        }
        const all = Object.assign({}, ...wanted.values()) as Record<string, string>;
        assert.deepEqual({ ...(live?.['data'] as object) }, all);
        assert.deepEqual({ ...live?.metadata?.labels }, all);
      }),
      { numRuns: 200 },
    );
  });

  test('whoever applies nothing any more leaves nothing behind', () => {
    fc.assert(
      fc.property(configuration, configuration, (mine, other) => {
        const theirs = apply(POD, 'other', other);
        const both = apply(POD, 'm', mine, theirs, { force: true });
        const empty: Anything = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } };
        const left = apply(POD, 'm', empty, both);
        assert.equal(hasEntry(left, 'm'), false);
        const alone = apply(POD, 'other', empty, left);
        assert.deepEqual(alone, empty);
      }),
      { numRuns: 300 },
    );
  });

  test('after a forced apply the object says what was applied', () => {
    fc.assert(
      fc.property(configuration, configuration, (mine, other) => {
        const live = apply(POD, 'm', mine, apply(POD, 'other', other), { force: true });
        assert.equal(apply(POD, 'm', mine, live), live);
        assert.doesNotThrow(() => apply(POD, 'third', mine, live), 'the same values conflict with nobody');
      }),
      { numRuns: 300 },
    );
  });
});
