import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { load as parseYaml } from 'js-yaml';
import { NOT_AFTER } from '../../certrotation/annotations.ts';
import { reconcileUnit } from '../../certrotation/reconcile.ts';
import { at, NOW, SIGNER, testRotation, UNIT } from '../../certrotation/testing.ts';
import { controllerMetrics, createRegistry } from '../../controller/metrics.ts';
import { SECRETS } from '../../kube/resource.ts';
import { certificateMetrics } from './certificates.ts';
import { clusterMetrics, terminationMetrics } from './cluster.ts';
import { connectivityMetrics } from './connectivity.ts';
import { reportCertificates } from './managed-certificates.ts';

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; description: string };
}

test('the alert rules ask for metrics that exist, and each says what to do', async () => {
  const file = new URL('../../../manifests/monitoring/kube-apiserver-rules.yaml', import.meta.url);
  const { spec } = parseYaml(readFileSync(file, 'utf8')) as { spec: { groups: { rules: Rule[] }[] } };
  const registry = createRegistry();
  certificateMetrics(registry, { report: () => ({ certificates: [], unreadable: [] }), isUp: () => false });
  clusterMetrics(registry, '1', { infrastructure: () => undefined, proxy: () => undefined });
  connectivityMetrics(registry, 'x');
  terminationMetrics(registry);
  controllerMetrics(registry)('CertRotationController_X');
  const known = new Set(registry.getMetricsAsArray().map(({ name }) => name));
  const rules = spec.groups.flatMap(group => group.rules);
  assert.ok(rules.length >= 6);
  for (const { alert, expr, labels, annotations } of rules) {
    const asked = expr.match(/\b(?:rotunda|controller_runtime|openshift|pod_network)_[a-z_]+/g) ?? [];
    assert.ok(asked.length > 0, alert);
    for (const name of asked) assert.ok(known.has(name), `${alert} asks for ${name}`);
    assert.match(alert, /^KubeAPIServer[A-Z]/);
    assert.match(labels.severity, /^(warning|critical)$/);
    assert.ok(annotations.summary && annotations.description, alert);
  }
  assert.match(await registry.metrics(), /rotunda_certificate_source_up 0/);
});

test('a static pod that is replaced shows only in its time of creation; late connections are counted', async () => {
  const registry = createRegistry();
  const metrics = terminationMetrics(registry);
  const pod = (creationTimestamp: string) => ({
    metadata: { name: 'kube-apiserver-m0', labels: { apiserver: 'true' }, creationTimestamp },
  });
  const event = (reason: string, name = 'kube-apiserver-m0') => ({
    metadata: {},
    involvedObject: { kind: 'Pod', name },
    reason,
    lastTimestamp: '2026-01-01T00:00:10Z',
  });
  metrics.pod(pod('2026-01-01T00:00:00Z'));
  metrics.pod(pod('2026-01-01T00:00:00Z'));
  metrics.pod(pod('2026-01-01T01:00:00Z'));
  metrics.event(event('TerminationStart'));
  metrics.event(event('LateConnections'));
  metrics.event(event('LateConnections', 'somebody-else'));
  metrics.event(event('Killing'));
  const text = await registry.metrics();
  assert.match(text, /termination_count\{name="kube-apiserver-m0"\} 1\n/);
  assert.match(text, /lateconnections_count\{name="kube-apiserver-m0"\} 1\n/);
  assert.match(text, /termination_event_time\{name="kube-apiserver-m0",eventName="TerminationStart"\} 1767225610/);
  assert.match(text, /eventName="StaticPodRecreated"\} 1767229200/);
  assert.doesNotMatch(text, /somebody-else|Killing/);
});

test('a certificate that is not replaced stays due since it was', async () => {
  const rotation = testRotation();
  await reconcileUnit(UNIT, rotation);
  const stored = await rotation.kube.get(SECRETS, SIGNER);
  const refreshAt = (secret: typeof stored, now: Date) =>
    reportCertificates([UNIT], ({ name }) => (name === SIGNER.name ? secret : undefined), now).certificates[0]
      ?.refreshAt;
  const due = refreshAt(stored, NOW) as Date;
  assert.ok(due > NOW && due < at(SIGNER.validityMs / 1000));
  assert.deepEqual(refreshAt(stored, new Date(due.getTime() + 3_600_000)), due);
  const { [NOT_AFTER]: _, ...annotations } = stored.metadata?.annotations ?? {};
  const forced = { ...stored, metadata: { ...stored.metadata, annotations } };
  assert.ok((refreshAt(forced, at(60)) as Date) <= NOW, 'what is asked for is due at once');
});
