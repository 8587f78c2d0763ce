/** Rules and dashboard ask for what the code exports, and every alert says what to do. Whether they fire: promtool.test.ts. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { load } from 'js-yaml';
import { exportedMetrics } from './exported.ts';
import { alerts, allRules, dashboard, metricNames, queriesOf, ROOT } from './manifests.ts';
import { headingAnchors } from './operations.ts';

/** What others export, and who. */
const OTHERS: Record<string, readonly string[]> = {
  'the kubelet': ['container_memory_rss'],
  etcd: [
    'etcd_network_peer_round_trip_time_seconds_bucket',
    'etcd_server_has_leader',
    'etcd_server_is_leader',
    'etcd_server_proposals_failed_total',
    'grpc_server_handled_total',
  ],
  'kube-state-metrics': ['kube_node_role', 'kube_node_status_allocatable', 'kube_node_status_capacity'],
  'node-exporter': [
    'node_memory_Buffers_bytes',
    'node_memory_Cached_bytes',
    'node_memory_MemFree_bytes',
    'node_memory_MemTotal_bytes',
  ],
};

const HISTOGRAM_PARTS = ['_bucket', '_count', '_sum'];

const known = new Set([
  ...Object.values(OTHERS).flat(),
  ...allRules().flatMap(({ record }) => record ?? []),
  ...[...exportedMetrics().values()]
    .flat()
    .flatMap(({ name, type }) => (type === 'histogram' ? HISTOGRAM_PARTS.map(part => name + part) : [name])),
]);

test('the names of metrics are found in a query', () => {
  const query =
    'sum by (le) (rate(a_b{x=~"c_d"}[5m:1m])) > on (node) group_left (y) clamp_max(e:f, 3 * 86400) or vector(0)';
  assert.deepEqual([...metricNames(query)], ['a_b', 'e:f']);
});

test('rules and dashboard ask only for metrics that exist', () => {
  for (const query of [...allRules().map(({ expr }) => expr), ...queriesOf(dashboard())]) {
    const names = metricNames(query);
    assert.ok(names.size > 0, query);
    for (const name of names) assert.ok(known.has(name), `${name} in ${query}`);
  }
});

test('everything we export about certificates, revisions, pools and agents is watched by a rule or shown on the dashboard', () => {
  const asked = new Set(
    [...allRules().map(({ expr }) => expr), ...queriesOf(dashboard())].flatMap(query => [...metricNames(query)]),
  );
  const ours = [...exportedMetrics().values()].flat().map(({ name }) => name);
  const unseen = ours.filter(
    name =>
      /^(rotunda_(?!certificates$)|openshift_etcd|mcd_|mco_(?!state)|mcc_(?!sub_))/.test(name) && !asked.has(name),
  );
  assert.deepEqual(unseen, []);
});

describe('every alert', () => {
  const anchors = headingAnchors();
  for (const { alert, labels = {}, annotations = {}, expr } of alerts()) {
    test(`${alert} has a severity, says what is wrong and leads to its runbook`, () => {
      assert.match(labels.severity ?? '', /^(warning|critical)$/);
      for (const field of ['summary', 'description']) assert.match(annotations[field] ?? '', /^\S.+\.$/s, field);
      assert.equal(annotations.runbook_url, `docs/operations.md#${alert.toLowerCase()}`);
      assert.ok(anchors.has(alert.toLowerCase()), `docs/operations.md has no heading ${alert}`);
      const named = Object.values(annotations).flatMap(text =>
        [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label ?? ''),
      );
      for (const label of named)
        assert.ok(labelsAfter(expr).has(label) || label === 'node', `${label} is not a label of ${expr}`);
    });
  }

  test('is there once', () => {
    const names = alerts().map(({ alert }) => alert);
    assert.deepEqual(names.toSorted(), [...new Set(names)].toSorted());
  });

  test('is seen firing in a test', () => {
    const files = globSync(join(import.meta.dirname, 'alerts/*.yaml')).map(path => readFileSync(path, 'utf8'));
    const fired = new Set(files.flatMap(text => [...text.matchAll(/alertname="(\w+)"/g)].map(([, name]) => name)));
    assert.deepEqual(
      alerts().flatMap(({ alert }) => (fired.has(alert) ? [] : [alert])),
      [],
    );
  });
});

/** The labels an alert can have: those its expression names, else those of its metrics. */
function labelsAfter(expr: string): Set<string> {
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/));
  if (grouped.length > 0) return new Set(grouped);
  const metrics = [...exportedMetrics().values()].flat();
  return new Set(metrics.filter(({ name }) => metricNames(expr).has(name)).flatMap(({ labels }) => labels));
}

// Spec 40, A-1 and A-2; spec 50, section 12; spec 60, 13.2.
const UPSTREAM: [alert: string, threshold: RegExp, forTime: string | undefined, severity: string][] = [
  ['etcdSignerCAExpirationWarning', /< 730$/, '1h', 'warning'],
  ['etcdSignerCAExpirationCritical', /< 365$/, '1h', 'critical'],
  ['etcdNoLeader', /== 0$/, '1m', 'critical'],
  ['etcdHighNumberOfLeaderChanges', /^avg\(changes\(.*\[10m\]\)\) > 5$/, '5m', 'warning'],
  ['etcdHighNumberOfFailedGRPCRequests', /> 10$/, '10m', 'warning'],
  ['etcdHighNumberOfFailedGRPCRequestsCritical', /> 50$/, '10m', 'critical'],
  ['etcdMemberCommunicationSlow', /^histogram_quantile\(0\.99, .* > 0\.15$/, '10m', 'warning'],
  ['etcdHighNumberOfFailedProposals', /\[15m\]\)\) > 5$/, '15m', 'warning'],
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

for (const [name, threshold, forTime, severity] of UPSTREAM) {
  test(`${name} fires as upstream's`, () => {
    const rule = alerts().find(({ alert }) => alert === name);
    assert.match(rule?.expr.trim() ?? '', threshold);
    assert.deepEqual([rule?.for, rule?.labels?.severity], [forTime, severity]);
  });
}

describe('the dashboard', () => {
  const { panels, uid, title } = dashboard();

  test('has a name, and panels with titles that do not lie on each other', () => {
    assert.ok(uid && title && panels.length > 10);
    for (const [index, { title, gridPos: a }] of panels.entries()) {
      assert.ok(title && a.x + a.w <= 24, title);
      for (const { title: other, gridPos: b } of panels.slice(index + 1)) {
        const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
        assert.ok(apart, `${title} lies on ${other}`);
      }
    }
  });

  test('is brought along, with all rules', () => {
    const text = readFileSync(join(ROOT, 'manifests/monitoring/kustomization.yaml'), 'utf8');
    const { resources, configMapGenerator } = load(text) as {
      resources: string[];
      configMapGenerator: { files: string[] }[];
    };
    const inFolder = globSync('*.yaml', { cwd: join(ROOT, 'manifests/monitoring') });
    assert.deepEqual(resources.toSorted(), inFolder.filter(file => file !== 'kustomization.yaml').toSorted());
    assert.deepEqual(configMapGenerator[0]?.files, ['grafana-dashboard.json']);
  });
});
