import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOT_AFTER } from '../../certrotation/annotations.ts';
import { reconcileUnit } from '../../certrotation/reconcile.ts';
import { at, NOW, SIGNER, testRotation, UNIT } from '../../certrotation/testing.ts';
import { createRegistry } from '../../controller/metrics.ts';
import { handOverMetrics } from '../../hand-over/metrics.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { SECRETS } from '../../kube/resource.ts';
import type { Infrastructure, Proxy } from '../resources.ts';
import { certificateMetrics } from './certificates.ts';
import { clusterMetrics, terminationMetrics } from './cluster.ts';
import { reportCertificates } from './managed-certificates.ts';

test('a source that has not been read yet says so', async () => {
  const registry = createRegistry();
  certificateMetrics(registry, { report: () => ({ certificates: [], unreadable: [] }), isUp: () => false });
  assert.match(await registry.metrics(), /rotunda_certificate_source_up 0/);
});

test('a certificate names the processes that its change reaches (spec 70, 9.10)', async () => {
  const registry = createRegistry();
  const certificate = {
    object: { kind: 'Secret', namespace: 'openshift-kube-apiserver', name: 'kubelet-client' },
    role: 'target',
    subject: 's',
    issuer: 'i',
    owner: 'o',
    notBefore: NOW,
    notAfter: NOW,
    isSuperseded: false,
  } as const;
  certificateMetrics(registry, {
    report: () => ({ certificates: [certificate], unreadable: [] }),
    isUp: () => true,
  });
  assert.match(
    await registry.metrics(),
    /not_after_timestamp_seconds\{.*name="kubelet-client",.*owner="o",consumers="kube-apiserver[^"]*",superseded="false"\}/,
  );
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

test('facts about the cluster: platform with region or name, proxy by kind (spec 20, 9.2)', async () => {
  const text = async (infrastructure?: Infrastructure, proxy?: Proxy) => {
    const registry = createRegistry();
    clusterMetrics(registry, '1', { infrastructure: () => infrastructure, proxy: () => proxy });
    return (await registry.metrics()).split('\n').filter(line => line.startsWith('cluster_'));
  };
  const external = { platformSpec: { external: { platformName: 'mine' } } };
  for (const [infrastructure, labels, value] of [
    [
      { status: { platformStatus: { type: 'AWS', aws: { region: 'eu-1' } } } },
      'type="AWS",region="eu-1",external=""',
      1,
    ],
    [
      { status: { platformStatus: { type: 'GCP', gcp: { region: 'us-2' } } } },
      'type="GCP",region="us-2",external=""',
      1,
    ],
    [
      { spec: external, status: { platformStatus: { type: 'External' } } },
      'type="External",region="",external="mine"',
      1,
    ],
    [{ status: { platformStatus: { type: 'None' } } }, 'type="None",region="",external=""', 0],
  ] as [Infrastructure, string, number][]) {
    assert.deepEqual(await text(infrastructure), [`cluster_infrastructure_provider{${labels}} ${value}`]);
  }
  assert.deepEqual(await text(undefined, { spec: { httpProxy: 'http://p', trustedCA: { name: 'ca' } } }), [
    'cluster_proxy_enabled{type="http"} 1',
    'cluster_proxy_enabled{type="https"} 0',
    'cluster_proxy_enabled{type="trusted_ca"} 1',
  ]);
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

test('a hand-over: its phase, how long it waits and for how many; nothing of those who verify at rest (spec 90)', async () => {
  const registry = createRegistry();
  const receipt = (node: string, isLoaded: boolean, isWaived = false) =>
    ({ verifier: `kubelet on ${node}`, node, kind: 'asked', isLoaded, evidence: '', isWaived }) as const;
  const rest = { waitingFor: [], isForPresenters: false, leftBehind: [], waitingSince: undefined, receipts: [] };
  handOverMetrics(registry, new VirtualClock(at(90)), () => [
    { ...rest, signer: 'quiet', phase: 'Steady' },
    {
      ...rest,
      signer: 'new',
      phase: 'Distributing',
      waitingSince: NOW,
      waitingFor: Array.from({ length: 30 }, (_, index) => `kubelet on n${index}`),
      receipts: [receipt('a', true), receipt('b', false), receipt('c', false, true)],
    },
  ]);
  const lines = (await registry.metrics()).split('\n').filter(line => line.startsWith('rotunda_handover'));
  for (const line of [
    'rotunda_handover_phase{signer="quiet",phase="Steady"} 1',
    'rotunda_handover_phase{signer="new",phase="Steady"} 0',
    'rotunda_handover_phase{signer="new",phase="Distributing"} 1',
    'rotunda_handover_waiting_seconds{signer="quiet"} 0',
    'rotunda_handover_waiting_seconds{signer="new"} 90',
    'rotunda_handover_missing{signer="new",verifier="kubelet on n0"} 1',
    'rotunda_handover_verifiers{signer="new",state="loaded"} 1',
    'rotunda_handover_verifiers{signer="new",state="waiting"} 1',
    'rotunda_handover_verifiers{signer="new",state="waived"} 1',
  ]) {
    assert.ok(lines.includes(line), line);
  }
  assert.equal(lines.filter(line => line.startsWith('rotunda_handover_missing')).length, 20);
});
