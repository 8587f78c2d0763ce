import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { load } from 'js-yaml';
import { createRegistry } from '../controller/metrics.ts';
import { controllerGauges, operatorMetrics } from './metrics.ts';

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}

const root = new URL('../../', import.meta.url).pathname;

describe('the alert rules', () => {
  const text = readFileSync(`${root}manifests/monitoring/machine-config-rules.yaml`, 'utf8');
  const { spec } = load(text) as { spec: { groups: { rules: Rule[] }[] } };
  const rules = spec.groups.flatMap(group => group.rules);

  test('ask for metrics that exist', () => {
    const registry = createRegistry();
    operatorMetrics(registry);
    controllerGauges(registry);
    const ours = new Set(registry.getMetricsAsArray().map(({ name }) => name));
    const agent = globSync('src/daemon/**/*.ts', { cwd: root, exclude: path => path.endsWith('.test.ts') })
      .map(file => readFileSync(`${root}${file}`, 'utf8'))
      .join('\n');
    for (const { expr } of rules) {
      for (const name of expr.match(/\b(?:mco|mcc|os_image)_[a-z_]+/g) ?? []) assert.ok(ours.has(name), name);
      for (const name of expr.match(/\bmcd_[a-z_]+/g) ?? []) assert.ok(agent.includes(`'${name}'`), name);
    }
  });

  // Spec 50, section 12.
  const cases: [alert: string, threshold: RegExp, forTime: string | undefined, severity: string][] = [
    ['MCCDrainError', /^mcc_drain_err > 0$/, undefined, 'warning'],
    ['MCCPoolAlert', /^mcc_pool_alert > 0$/, undefined, 'warning'],
    ['MCDRebootError', /^mcd_reboots_failed_total > 0$/, '5m', 'critical'],
    ['MCDPivotError', /^mcd_pivot_errors_total > 0$/, '2m', 'warning'],
    ['KubeletHealthState', /^mcd_kubelet_state > 2$/, undefined, 'warning'],
    ['MissingMachineConfig', /^mcd_missing_mc > 0$/, undefined, 'warning'],
    ['SystemMemoryExceedsReservation', /\* 0\.95$/, '15m', 'warning'],
    ['HighOverallControlPlaneMemory', /> 60$/, '1h', 'warning'],
    ['ExtremelyHighIndividualControlPlaneMemory', /> 90$/, '45m', 'critical'],
  ];
  for (const [name, threshold, forTime, severity] of cases) {
    test(`${name} fires as upstream's, and says what to do`, () => {
      const rule = rules.find(({ alert }) => alert === name);
      assert.match(rule?.expr.trim() ?? '', threshold);
      assert.deepEqual([rule?.for, rule?.labels.severity], [forTime, severity]);
      assert.ok(rule?.annotations.summary && rule.annotations.description);
    });
  }

  test('there are no others', () =>
    assert.deepEqual(
      rules.flatMap(({ alert, record }) => alert ?? record ?? []).sort(),
      ['os_image_url_override:sum', ...cases.map(([name]) => name)].sort(),
    ));
});

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
