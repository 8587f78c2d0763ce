/** The alerts fire when they should and not before, and every query of rules and dashboard is one that Prometheus takes. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { dump } from 'js-yaml';
import { PATIENCE_MS } from '../tools/eventually.ts';
import { dashboard, queriesOf, ruleFiles } from './manifests.ts';
import { findPromtool } from './promtool.ts';

const promtool = findPromtool();

/** An hour in a cluster: a leaf was replaced 58 minutes in, another is overdue; master-1 is behind; a member is down; worker-1 has drifted. */
const SERIES: Record<string, string> = {
  'rotunda_certificate_not_after_timestamp_seconds{namespace="n",name="new",role="target",superseded="false"}':
    '7200x57 90000x5',
  'rotunda_certificate_not_before_timestamp_seconds{namespace="n",name="new",role="target",superseded="false"}':
    '0x57 3480x5',
  'rotunda_certificate_refresh_timestamp_seconds{namespace="n",name="new",role="target",superseded="false"}':
    '3480x57 45000x5',
  'rotunda_certificate_not_after_timestamp_seconds{namespace="n",name="late",role="target",superseded="false"}':
    '9000x62',
  'rotunda_certificate_not_before_timestamp_seconds{namespace="n",name="late",role="target",superseded="false"}':
    '0x62',
  'rotunda_certificate_refresh_timestamp_seconds{namespace="n",name="late",role="target",superseded="false"}':
    '1800x62',
  'rotunda_etcd_leaf_not_after_timestamp_seconds{namespace="e",name="peer",node="master-0",issuer="i"}': '99000x62',
  'rotunda_static_pod_latest_revision{operand="etcd"}': '5x62',
  'rotunda_static_pod_node_revision{operand="etcd",node="master-0"}': '5x62',
  'rotunda_static_pod_node_revision{operand="etcd",node="master-1"}': '4x62',
  'rotunda_operator_condition{operand="etcd",condition="EtcdMembersAvailable"}': '1x62',
  'rotunda_operator_condition{operand="etcd",condition="EtcdMembersDegraded"}': '1x62',
  'mcd_config_drift{node="worker-0"}': '0x62',
  'mcd_config_drift{node="worker-1"}': '1800x62',
};

/** What the panels say then. */
const SHOWN: Record<string, number> = {
  'First to end': 9000 - 3600,
  Overdue: 1,
  'Degraded conditions': 1,
  'etcd quorum': 0,
  'Nodes behind': 1,
  'Drifted nodes': 1,
  Rotations: 1,
};

describe('promtool', { skip: 'missing' in promtool ? promtool.missing : false }, () => {
  let dir: string;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-rules-'));
    for (const { file, spec } of ruleFiles()) writeFileSync(join(dir, file), dump(spec));
  });
  after(() => rmSync(dir, { recursive: true }));

  for (const { file } of ruleFiles()) {
    test(`takes ${file}`, () => run('check', 'rules', '--lint-fatal', file));
  }

  for (const path of globSync(join(import.meta.dirname, 'alerts/*.yaml'))) {
    test(`finds that the alerts of ${basename(path)} fire when they should`, () => {
      const name = `test-${basename(path)}`;
      copyFileSync(path, join(dir, name));
      run('test', 'rules', name);
    });
  }

  test('takes the queries of the dashboard', () => {
    const rules = queriesOf(dashboard()).map((expr, index) => ({ record: `dashboard:query:${index}`, expr }));
    writeFileSync(join(dir, 'dashboard.yaml'), dump({ groups: [{ name: 'dashboard', rules }] }));
    run('check', 'rules', '--lint-fatal', 'dashboard.yaml');
  });

  test('finds that the dashboard shows what is so', () => {
    const { panels } = dashboard();
    const query = (title: string) => queriesOf({ panels: panels.filter(panel => panel.title === title) })[0] ?? '';
    const shows = Object.entries(SHOWN).map(([title, value]) => ({
      expr: `sum(${query(title)})`,
      eval_time: '1h',
      exp_samples: [{ labels: '{}', value }],
    }));
    const input_series = Object.entries(SERIES).map(([series, values]) => ({ series, values }));
    const tests = [{ interval: '1m', input_series, promql_expr_test: shows }];
    writeFileSync(join(dir, 'shown.yaml'), dump({ evaluation_interval: '1m', tests }));
    run('test', 'rules', 'shown.yaml');
  });

  function run(...args: string[]): void {
    const { status, stdout, stderr } = spawnSync('promtool', args, {
      cwd: dir,
      encoding: 'utf8',
      timeout: PATIENCE_MS,
    });
    assert.equal(status, 0, stdout + stderr);
  }
});
