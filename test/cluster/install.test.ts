/** `kubectl apply -k manifests/` on a real API that has never heard of us. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { PATIENCE_MS } from '../tools/eventually.ts';
import { startControlPlane } from './control-plane.ts';
import { findNeeds, MANIFESTS, MONITORING_DEFINITIONS } from './installed.ts';

const found = await findNeeds();
const LIMIT_MS = PATIENCE_MS;

test('applied without and with the kinds of the Prometheus Operator, and applied again', {
  skip: 'missing' in found && found.missing,
}, async t => {
  if ('missing' in found) return;
  const cluster = await startControlPlane(found.binaries);
  t.after(() => cluster.stop());
  const kubectl = (args: readonly string[], input?: string) =>
    spawnSync(found.kubectl, ['--kubeconfig', cluster.kubeconfig, ...args], {
      encoding: 'utf8',
      timeout: LIMIT_MS,
      maxBuffer: 1 << 26,
      input,
    });
  const apply = () => kubectl(['apply', '-k', MANIFESTS]);

  const without = apply();
  assert.notEqual(without.status, 0);
  const unknown = [...without.stderr.matchAll(/no matches for kind "(\w+)"/g)].map(([, kind]) => kind);
  assert.deepEqual(new Set(unknown), new Set(['PodMonitor', 'PrometheusRule']), without.stderr);
  const complaints = without.stderr.split('\n').filter(line => /^(Warning|Error|error)/.test(line));
  assert.deepEqual(
    complaints.filter(line => !line.includes('resource mapping not found') && !line.includes('ensure CRDs')),
    [],
  );

  assert.equal(kubectl(['apply', '-f', '-'], MONITORING_DEFINITIONS).status, 0);
  assert.equal(kubectl(['wait', '--for=condition=Established', '--timeout=10m', 'crd', '--all']).status, 0);
  const complete = apply();
  assert.equal(complete.status, 0, complete.stderr);
  // Pod security of the namespaces would be warned about here.
  assert.equal(complete.stderr, '');

  const again = apply();
  assert.equal(again.status, 0, again.stderr);
  const changed = again.stdout.split('\n').filter(line => line !== '' && !line.endsWith(' unchanged'));
  // kubectl sends the selector of a budget each time.
  assert.deepEqual(
    changed.filter(line => !line.startsWith('poddisruptionbudget')),
    [],
  );
});
