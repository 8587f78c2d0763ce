import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { NodeStatus } from '../node-status.ts';
import { node } from '../testing.ts';
import { protectedRevisions } from './protect.ts';

const at = (currentRevision: number, entry = {}) => node('n', { currentRevision, ...entry });
const LIMITS = { failed: 1, succeeded: 1 };

const CASES: [
  what: string,
  nodes: NodeStatus[],
  published: number,
  limits: typeof LIMITS,
  expected: number[] | undefined,
][] = [
  ['no nodes: keep everything', [], 9, LIMITS, undefined],
  ['the current one', [at(9)], 9, LIMITS, [9]],
  ['as many as have succeeded', [at(9)], 9, { failed: 1, succeeded: 3 }, [7, 8, 9]],
  ['0 stands for 5', [at(9)], 9, { failed: 0, succeeded: 0 }, [5, 6, 7, 8, 9]],
  ['while a node lags, the published one with the larger window', [at(2)], 9, { failed: 2, succeeded: 1 }, [2, 8, 9]],
  [
    'a target with the larger window',
    [at(4, { targetRevision: 7 }), at(9)],
    9,
    { failed: 2, succeeded: 1 },
    [4, 6, 7, 8, 9],
  ],
  ['a failure with its own', [at(9, { lastFailedRevision: 5 })], 9, { failed: 2, succeeded: 1 }, [4, 5, 9]],
  ['windows end at 1', [at(2), at(9)], 9, { failed: 3, succeeded: 3 }, [1, 2, 7, 8, 9]],
  ['unlimited successes: keep everything', [at(9)], 9, { failed: 1, succeeded: -1 }, undefined],
  ['unlimited failures: keep everything while a node lags', [at(8)], 9, { failed: -1, succeeded: 1 }, undefined],
  [
    'unlimited failures: all up to the failure (T13)',
    [at(9, { lastFailedRevision: 4 })],
    9,
    { failed: -1, succeeded: 1 },
    [1, 2, 3, 4, 9],
  ],
  [
    'unlimited failures: all up to the target (T13)',
    [at(9, { targetRevision: 3 })],
    9,
    { failed: -1, succeeded: 1 },
    [1, 2, 3, 9],
  ],
  ['unlimited failures without any', [at(9)], 9, { failed: -1, succeeded: 1 }, [9]],
  ['a set with gaps is not complete (T14)', [at(1), at(9)], 9, LIMITS, [1, 9]],
  ['a set without gaps is', [at(3)], 3, { failed: 5, succeeded: 5 }, undefined],
  ['nothing is published', [at(0)], 0, LIMITS, undefined],
  ['the largest number there is', [at(2147483647)], 2147483647, { failed: 1, succeeded: 2 }, [2147483646, 2147483647]],
  [
    'more than a pruner can be told: keep everything',
    [at(2147483647, { lastFailedRevision: 2147483646 })],
    2147483647,
    { failed: -1, succeeded: 1 },
    undefined,
  ],
  ['a limit as large as can be', [at(9), at(3)], 9, { failed: 2147483647, succeeded: 1 }, undefined],
];

describe('what pruning keeps (spec 30, 14.1)', () => {
  for (const [what, nodes, published, limits, expected] of CASES) {
    test(what, () => assert.deepEqual(protectedRevisions(nodes, published, limits), expected));
  }

  test('always what runs, what is on its way, and what failed last', () => {
    const revision = fc.nat(30);
    const entry = fc.record({ currentRevision: revision, targetRevision: revision, lastFailedRevision: revision });
    const limit = fc.integer({ min: -1, max: 6 });
    fc.assert(
      fc.property(
        fc.array(entry, { maxLength: 4 }),
        revision,
        limit,
        limit,
        (entries, published, failed, succeeded) => {
          const kept = protectedRevisions(
            entries.map(fields => node('n', fields)),
            published,
            { failed, succeeded },
          );
          if (kept === undefined) return;
          for (const { currentRevision, targetRevision, lastFailedRevision } of entries) {
            for (const needed of [currentRevision, targetRevision, lastFailedRevision]) {
              if (needed > 0) assert.ok(kept.includes(needed));
            }
          }
          assert.deepEqual(
            kept,
            [...new Set(kept)].sort((a, b) => a - b),
          );
          if (entries.some(({ currentRevision }) => currentRevision < published)) assert.ok(kept.includes(published));
        },
      ),
    );
  });
});
