import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../controller/log.ts';
import { VirtualClock } from '../kube/clock.ts';
import { minutes, seconds } from '../kube/duration.ts';
import { ConnectionError } from '../kube/error.ts';
import { MemoryKube } from '../kube/memory.ts';
import { LEASES } from '../kube/resource.ts';
import { leadOnAndOn } from './leading.ts';

const LEASE = { namespace: 'ns', name: 'operator-lock' };
const WORK = { ready: true, text: 'at work' };

test('an operator of the cluster works while it leads, says who leads instead, and leads again', async () => {
  const kube = new MemoryKube();
  const clock = new VirtualClock('2030-01-01T00:00:00Z');
  const stop = new AbortController();
  const waiting = new Set<() => void>();
  let begun = 0;
  const leading = leadOnAndOn(
    {
      kube,
      lease: LEASE,
      identity: 'us',
      clock,
      random: () => 0,
      log: silentLog,
      changed: () => {
        for (const look of waiting) look();
      },
    },
    async (_kube, signal) => {
      begun++;
      await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
    },
    stop.signal,
  );
  const until = (is: () => boolean) =>
    new Promise<void>(resolve => {
      const look = () => {
        if (is()) resolve();
      };
      waiting.add(look);
      look();
    });
  const give = async (holderIdentity: string) => {
    const lease = await kube.get(LEASES, LEASE);
    await kube.update(LEASES, { ...lease, spec: { ...lease.spec, holderIdentity } });
    await clock.advance(minutes(1));
  };

  await until(() => leading.state(WORK) === WORK);
  await give('them');
  await until(() => leading.state(WORK).text.endsWith('which them holds'));
  assert.deepEqual(leading.state(WORK), {
    ready: false,
    text: 'waiting for the lease ns/operator-lock, which them holds',
  });
  await give('');
  await until(() => leading.state(WORK) === WORK);
  assert.equal(begun, 2);
  stop.abort();
  await leading.done;
  assert.equal((await kube.get(LEASES, LEASE)).spec?.holderIdentity, '');
});

test('an operator whose work ends because the API is away leads again; any other failure is final', async () => {
  const clock = new VirtualClock('2030-01-01T00:00:00Z');
  const stop = new AbortController();
  const failures = [new ConnectionError('ECONNREFUSED', 'nobody listens'), new Error('broken')];
  let isOver = false;
  const options = { kube: new MemoryKube(), lease: LEASE, identity: 'us', clock, random: () => 0, log: silentLog };
  const leading = leadOnAndOn({ ...options, changed: () => {} }, () => Promise.reject(failures.shift()), stop.signal);
  const outcome = leading.done.catch((error: Error) => error.message).finally(() => (isOver = true));
  while (!isOver) await clock.advance(seconds(1));
  assert.equal(await outcome, 'broken');
});
