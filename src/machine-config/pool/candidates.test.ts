import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import {
  CURRENT_CONFIG,
  DAEMON_STATE,
  DESIRED_CONFIG,
  MASTER_POOL,
  ZONE_LABEL,
} from '../../machine-config-api/names.ts';
import { customPool } from '../testing.ts';
import { candidatesOf, chooseNodes, inRolloutOrder } from './candidates.ts';

const names = (nodes: readonly Node[]) => nodes.map(({ metadata }) => metadata?.name);
const heading = (config: string, pool = 'worker') => ({
  ...customPool(pool),
  spec: { configuration: { name: config } },
});

/** Done with its config, or under way from `current` in this state. */
function node(name: string, current = 'old', desired = current, state = 'Done'): Node {
  const annotations = { [CURRENT_CONFIG]: current, [DESIRED_CONFIG]: desired, [DAEMON_STATE]: state };
  return { metadata: { name, annotations } };
}

describe('candidates (ND-21 to ND-23)', () => {
  test('a node that fails costs one as long as the pool still wants that config; else it is a way back', () => {
    const failing = node('n', 'old', 'bad', 'Degraded');
    assert.deepEqual(candidatesOf(heading('bad'), [failing], 1), { nodes: [], capacity: 0 });
    assert.deepEqual(candidatesOf(heading('old'), [failing], 1), { nodes: [failing], capacity: 1 });
  });

  test('a node that is promised costs one, and is no candidate', () => {
    const { nodes, capacity } = candidatesOf(heading('new'), [node('a'), node('b'), node('c')], 2, new Set(['b']));
    assert.deepEqual([names(nodes), capacity], [['a', 'c'], 1]);
  });
});

describe('the choice among them (ND-24 and ND-25)', () => {
  const nodes = [node('a'), node('b'), node('c')];
  const choose = (pool: string, found: Node[], capacity: number) => {
    const choice = chooseNodes(heading('new', pool), { nodes: found, capacity }, 'a');
    return { ...choice, nodes: names(choice.nodes) };
  };

  test("the operator's own node comes last in pool master, and only there", () => {
    assert.deepEqual(choose(MASTER_POOL, nodes, 3), { nodes: ['b', 'c'], deferred: nodes[0] });
    assert.deepEqual(choose(MASTER_POOL, [node('a')], 3), { nodes: ['a'] });
    assert.deepEqual(choose(MASTER_POOL, [node('b'), node('c')], 3), { nodes: ['b', 'c'] });
    assert.deepEqual(choose('worker', nodes, 3), { nodes: ['a', 'b', 'c'] });
  });

  test('zone by zone, the oldest first, those without a zone at the end', () => {
    const placed = (name: string, zone: string | undefined, creationTimestamp?: string): Node => ({
      metadata: {
        name,
        labels: zone === undefined ? {} : { [ZONE_LABEL]: zone },
        ...(creationTimestamp && { creationTimestamp }),
      },
    });
    const wanted = [
      placed('timeless', 'a'),
      placed('old', 'a', '2026-01-01T00:00:00Z'),
      placed('young', 'a', '2026-01-01T00:00:01Z'),
      placed('b', 'b', '2025-01-01T00:00:00Z'),
      placed('nowhere', undefined, '2024-01-01T00:00:00Z'),
      placed('nowhere either', undefined, '2024-02-01T00:00:00Z'),
    ];
    for (let turn = 0; turn < wanted.length; turn++) {
      const turned = [...wanted.slice(turn), ...wanted.slice(0, turn)];
      assert.deepEqual(names(inRolloutOrder(turned)), names(wanted));
      assert.deepEqual(names(inRolloutOrder(turned.toReversed())), names(wanted));
      assert.deepEqual(choose('worker', turned, 2).nodes, ['timeless', 'old']);
    }
  });
});
