import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { startEngine } from '../api/api.ts';
import { createLog } from '../controller/log.ts';
import { VirtualClock } from '../kube/clock.ts';
import { hours, minutes } from '../kube/duration.ts';
import { recordingEvents } from '../kube/events.ts';
import { Informer } from '../kube/informer.ts';
import { CONFIG_MAPS, NAMESPACES, SECRETS } from '../kube/resource.ts';
import { seededKeys } from '../pki/keys.ts';
import { HOSTNAMES, NOT_AFTER } from './annotations.ts';
import type { SignerConfig } from './config.ts';
import { certRotationController } from './controller.ts';
import { servingCreator } from './creator.ts';
import { HostnameSource } from './hostname-source.ts';
import { ObjectLocks } from './locks.ts';
import { NOW, UNIT } from './testing.ts';

test('section 9: a controller makes its unit, follows host names, deletions and due times, and rests in between', async t => {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  const { kube } = engine;
  await kube.create(NAMESPACES, { metadata: { name: 'ns' } });
  const secrets = new Informer<Secret>(kube, SECRETS, { selection: { namespace: 'ns' }, clock }).start();
  const configMaps = new Informer<ConfigMap>(kube, CONFIG_MAPS, { selection: { namespace: 'ns' }, clock }).start();
  const hostnames = new HostnameSource(['a.example']);
  const creator = servingCreator({ hostnames: () => hostnames.get(), changes: signal => hostnames.changes(signal) });
  const reports: string[] = [];
  const stop = new AbortController();
  const running = certRotationController({
    unit: { ...UNIT, signer: inHours(UNIT.signer), target: { ...inHours(UNIT.target), creator } },
    rotation: { kube, clock, keys: seededKeys('controller'), locks: new ObjectLocks() },
    caches: { secrets: () => secrets, configMaps: () => configMaps },
    report: async (unit, error) => {
      reports.push(`${unit}: ${error?.message ?? 'fine'}`);
      return false;
    },
    events: recordingEvents(),
    log: createLog({ name: 'test', destination: { write: () => {} } }),
  }).run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
    await Promise.all([secrets.stop(), configMaps.stop()]);
    await engine.close();
  });

  const target = () => kube.get(SECRETS, UNIT.target).catch(() => undefined);
  const first = await until(clock, target);

  hostnames.set(['b.example']);
  const renamed = await until(clock, async () => {
    const secret = await target();
    return secret?.metadata?.annotations?.[HOSTNAMES] === 'b.example' ? secret : undefined;
  });
  assert.notEqual(renamed.metadata?.uid, undefined);
  assert.equal(renamed.metadata?.uid, first.metadata?.uid);

  await kube.delete(SECRETS, UNIT.target);
  await until(clock, target);

  const before = (await kube.get(SECRETS, UNIT.signer)).metadata?.annotations?.[NOT_AFTER];
  await clock.advance(hours(15) + minutes(1));
  await until(clock, async () => (await kube.get(SECRETS, UNIT.signer)).metadata?.annotations?.[NOT_AFTER] !== before);
  assert.ok(
    reports.every(report => report === 'Unit: fine'),
    reports.join(),
  );
});

/** Hours instead of days: enough for every rule, and fewer idle minutes to go through. */
function inHours<T extends SignerConfig>(config: T): T {
  return { ...config, validityMs: hours(30), refreshMs: hours(15) };
}

/** Lets the controller work, a millisecond at a time, until `look` finds something. */
async function until<T>(clock: VirtualClock, look: () => Promise<T | undefined | false>): Promise<T> {
  for (let turn = 0; turn < 10_000; turn++) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    await clock.advance(1);
  }
  throw new Error('waited in vain');
}
