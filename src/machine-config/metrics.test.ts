import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRegistry } from '../controller/metrics.ts';
import { controllerGauges, operatorMetrics } from './metrics.ts';

describe('what is counted', () => {
  test('pools as they are now: a pool that is gone is gone', async () => {
    const registry = createRegistry();
    const count = operatorMetrics(registry);
    const pool = (name: string, machineCount: number) => ({
      metadata: { name },
      status: {
        machineCount,
        conditions: [
          { type: 'Updated', status: 'True' as const, lastTransitionTime: '2026-01-01T00:00:00Z' },
          { type: 'Updating', status: 'False' as const, lastTransitionTime: '2026-01-02T00:00:00Z' },
        ],
      },
    });
    count(
      [
        { pool: pool('a', 3), nodes: ['n'] },
        { pool: pool('b', 1), nodes: [] },
      ],
      5,
    );
    assert.match(await registry.metrics(), /mco_machine_count\{pool="b"\} 1/);
    count([{ pool: pool('a', 4), nodes: ['n'] }], 6);
    const text = await registry.metrics();
    assert.match(text, /mco_machine_count\{pool="a"\} 4/);
    assert.match(text, /mco_state\{node="n",pool="a",state="Updated",reason=""\} 6/);
    assert.doesNotMatch(text, /pool="b"/);
  });

  test('a drain that is over is not counted any more', async () => {
    const registry = createRegistry();
    const gauges = controllerGauges(registry);
    gauges.drainOverdue('n', true);
    assert.match(await registry.metrics(), /mcc_drain_err\{node="n"\} 1/);
    gauges.drainOverdue('n', false);
    assert.doesNotMatch(await registry.metrics(), /mcc_drain_err\{/);
  });
});
