import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../controller/log.ts';
import { VirtualClock } from '../kube/clock.ts';
import { hours } from '../kube/duration.ts';
import { recordingEvents } from '../kube/events.ts';
import { MemoryKube } from '../kube/memory.ts';
import { SECRETS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { certCleanerReconcile } from './cert-cleaner.ts';
import { ETCD_NAMESPACE, GRACE_START } from './names.ts';
import { NOW } from './testing.ts';

test('a mark that cannot be read keeps the cleaner from deleting anything in that run; marking goes on (X-3)', async () => {
  const kube = new MemoryKube();
  const old = formatRfc3339(new Date(NOW.getTime() - hours(100)));
  for (const [name, mark] of Object.entries({ a: old, b: 'yesterday', c: old, d: undefined })) {
    await kube.create(SECRETS, {
      metadata: {
        namespace: ETCD_NAMESPACE,
        name: `etcd-peer-${name}`,
        ...(mark === undefined ? {} : { annotations: { [GRACE_START]: mark } }),
      },
    });
  }
  const { signal } = new AbortController();
  const context = {
    signal,
    clock: new VirtualClock(NOW),
    events: recordingEvents(),
    log: silentLog,
    enqueue: () => {},
  };
  const run = async () => certCleanerReconcile(kube)('key', context);
  await assert.rejects(run(), /expected a time .* of secret etcd-peer-b, found "yesterday"/);
  const secrets = async () => (await kube.list(SECRETS, { namespace: ETCD_NAMESPACE })).items;
  assert.equal((await secrets()).length, 4);
  assert.ok((await secrets())[3]?.metadata?.annotations?.[GRACE_START]);
  await kube.delete(SECRETS, { namespace: ETCD_NAMESPACE, name: 'etcd-peer-b' });
  await run();
  assert.deepEqual(
    (await secrets()).map(({ metadata }) => metadata?.name),
    ['etcd-peer-d'],
  );
});
