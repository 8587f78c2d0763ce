import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { systemClock } from '../../kube/clock.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { PODS } from '../../kube/resource.ts';
import { systemKeys } from '../../pki/keys.ts';
import { startSecureHealth } from './secure-health.ts';
import { kubeApiserverReadiness, podReadiness } from './startup-readiness.ts';

const pod = (revision: string, ready = true): Pod => ({
  metadata: {
    namespace: 'openshift-kube-apiserver',
    name: 'kube-apiserver-m0',
    labels: { revision, apiserver: 'true' },
  },
  spec: { nodeName: 'm0', containers: [] },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
});

describe('the mirror pod', () => {
  const context = { nodeName: 'm0', revision: 3 };
  for (const [what, pods, mustRun, reason] of [
    ['none', [], true, 'PodNotRunning'],
    ['two', [pod('3'), pod('3')], true, 'PodListError'],
    ['an older revision', [pod('2')], false, 'UnexpectedRevision'],
    ['no revision', [pod('')], false, 'InvalidPod'],
    ['not ready', [pod('3', false)], true, 'PodNotReady'],
    ['not ready, which does not matter yet', [pod('3', false)], false, ''],
    ['as it should be', [pod('3')], true, ''],
    ['unknown, because the list failed', undefined, false, ''],
  ] as [string, Pod[] | undefined, boolean, string][]) {
    test(what, () => assert.equal(podReadiness(pods, context, mustRun).reason, reason));
  }
});

test('a server that does not answer is unhealthy, with the reason; the API being away is no excuse to call it old', async () => {
  const kube = new MemoryKube();
  await kube.create(PODS, pod('3'));
  const signal = new AbortController().signal;
  const outcome = await kubeApiserverReadiness({
    kube,
    nodeName: 'm0',
    revision: 3,
    signal,
    url: 'https://127.0.0.1:1',
  });
  assert.deepEqual([outcome.ready, outcome.reason], [false, 'UnhealthyEtcdError']);
  assert.match(outcome.message, /ECONNREFUSED/);
});

test('what a server answers other than 200 is the message', async t => {
  const kube = new MemoryKube();
  await kube.create(PODS, pod('3'));
  // It knows /healthz only, so the first question is answered with 404.
  const server = await startSecureHealth({ host: '127.0.0.1', port: 0, clock: systemClock, keys: systemKeys });
  t.after(() => server.stop());
  const signal = new AbortController().signal;
  const outcome = await kubeApiserverReadiness({
    kube,
    nodeName: 'm0',
    revision: 3,
    signal,
    url: `https://127.0.0.1:${server.port}`,
  });
  assert.deepEqual([outcome.reason, outcome.message], ['UnhealthyEtcd', 'not found\n']);
});
