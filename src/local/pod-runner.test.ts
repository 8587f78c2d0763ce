import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { silentLog } from '../controller/log.ts';
import { systemClock } from '../kube/clock.ts';
import { recordingEvents } from '../kube/events.ts';
import type { Kube } from '../kube/port.ts';
import { type PodDeps, PodRunner } from './pod-runner.ts';

test('volumes that are brought up to date while the pod goes leave nothing behind', async t => {
  const root = mkdtempSync(join(tmpdir(), 'rotunda-pod-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const asked = Promise.withResolvers<void>();
  const secret = Promise.withResolvers<Secret>();
  const kube = {
    get: () => {
      asked.resolve();
      return secret.promise;
    },
  } as unknown as Kube;
  const deps = { root, kube, clock: systemClock, log: silentLog, address: '127.0.0.1', nodeName: 'n' };
  const pod: Pod = {
    metadata: { namespace: 'ns', name: 'p' },
    spec: { containers: [], volumes: [{ name: 'v', secret: { secretName: 's' } }] },
  };
  const runner = new PodRunner(pod, 'uid', deps as unknown as PodDeps, recordingEvents(), () => {});
  const refreshing = runner.refresh();
  await asked.promise;
  await runner.stop();
  const discarding = runner.discard();
  // Time enough for a removal that waits for nobody.
  for (let turn = 0; turn < 1000; turn++) await new Promise(resolve => setImmediate(resolve));
  secret.resolve({ data: { key: 'eA==' } });
  await Promise.all([refreshing, discarding]);
  assert.deepEqual(readdirSync(join(root, 'var/lib/kubelet/pods')), []);
});
