import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Engine, startEngine } from '../../api/engine.ts';
import { NOT_AFTER } from '../../certrotation/annotations.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { liveObjects } from '../../certrotation/ensure.ts';
import { ObjectLocks } from '../../certrotation/locks.ts';
import { reconcileOnce } from '../../certrotation/reconcile.ts';
import { loadSecret } from '../../certrotation/secret.ts';
import { silentLog } from '../../controller/log.ts';
import type { VirtualClock } from '../../kube/clock.ts';
import { days, minutes } from '../../kube/duration.ts';
import { recordingEvents } from '../../kube/events.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, LEASES, SECRETS } from '../../kube/resource.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { verifyChain } from '../../pki/chain.ts';
import { seededKeys, systemKeys } from '../../pki/keys.ts';
import { readCertificates } from '../../pki/pem.ts';
import { KUBE_APISERVER_CHAINS } from '../chains.ts';
import { CLIENT_CA, ensureCombinedBundle } from '../combined-bundles.ts';
import { CLUSTER, INFRASTRUCTURES, NETWORKS } from '../resources.ts';
import { hostnameSources } from '../rotation/follow-hostnames.ts';
import { decideHostnames } from '../rotation/hostnames.ts';
import { rotationUnits } from '../rotation/units.ts';
import { eventually, NOW, prepareCluster, testClock } from '../testing.ts';
import { REGENERATION_LEASE, runCertRegeneration } from './cert-regeneration.ts';

test('offline expiry: everything has ended; the controller alone brings all chains and the client CA back, signers first', async t => {
  const clock = testClock();
  const { engine, events, stop } = await started(clock, days(365 * 11));
  t.after(stop);
  const { kube } = engine;
  for (const { target } of KUBE_APISERVER_CHAINS) {
    await eventually(clock, async () => notAfter(await kube.get(SECRETS, target)) > clock.now());
  }
  for (const { controller, bundle, target } of KUBE_APISERVER_CHAINS) {
    const roots = certificatesIn(await kube.get(CONFIG_MAPS, bundle));
    const [leaf] = loadSecret(await kube.get(SECRETS, target)).chain as [Certificate];
    assert.ok(verifyChain({ leaf, roots, now: clock.now() }).ok, controller);
    assert.ok(
      roots.every(certificate => certificate.notAfter > clock.now()),
      controller,
    );
  }
  await eventually(clock, async () => {
    const certificates = certificatesIn(await kube.get(CONFIG_MAPS, CLIENT_CA.destination));
    return certificates.length === 3 && certificates.every(certificate => certificate.notAfter > clock.now());
  });
  for (const { signer, target } of KUBE_APISERVER_CHAINS) {
    const at = (object: { name: string }) =>
      events.findIndex(({ message }) => message.startsWith(`"${object.name}" in`));
    assert.ok(at(signer) >= 0 && at(signer) < at(target), `${signer.name} before ${target.name}`);
  }
  assert.equal((await kube.get(LEASES, REGENERATION_LEASE)).spec?.holderIdentity, 'master-0');
});

test('beside a healthy cluster it changes nothing, also not what is past its refresh time', async t => {
  const clock = testClock();
  // Leaves are due for a refresh since day 15 and 24; none has ended.
  const { engine, stop } = await started(clock, days(29));
  t.after(stop);
  const { kube } = engine;
  const before = await Promise.all(KUBE_APISERVER_CHAINS.map(({ target }) => kube.get(SECRETS, target)));
  await eventually(clock, () => getIfPresent(kube, LEASES, REGENERATION_LEASE));
  await clock.advance(minutes(10));
  const after = await Promise.all(KUBE_APISERVER_CHAINS.map(({ target }) => kube.get(SECRETS, target)));
  assert.deepEqual(after, before);
});

test('annotations that somebody took away to get a new certificate are left to the operator', async t => {
  const clock = testClock();
  const { engine, stop } = await started(clock, days(1));
  t.after(stop);
  const { kube } = engine;
  const { target } = KUBE_APISERVER_CHAINS[0]!;
  const secret = await kube.get(SECRETS, target);
  const { [NOT_AFTER]: _gone, ...annotations } = secret.metadata?.annotations ?? {};
  await kube.update(SECRETS, { ...secret, metadata: { ...secret.metadata, annotations } });
  await eventually(clock, () => getIfPresent(kube, LEASES, REGENERATION_LEASE));
  await clock.advance(minutes(10));
  assert.equal((await kube.get(SECRETS, target)).data?.['tls.crt'], secret.data?.['tls.crt']);
});

for (const [topology, seconds] of [
  ['SingleReplica', 270],
  ['HighlyAvailable', 137],
] as const) {
  test(`${topology}: the lease lasts ${seconds} s (spec 20, 5.2.1)`, async t => {
    const clock = testClock();
    const { engine, stop } = await started(clock, days(1), topology);
    t.after(stop);
    const lease = await eventually(clock, () => getIfPresent(engine.kube, LEASES, REGENERATION_LEASE));
    assert.equal(lease.spec?.leaseDurationSeconds, seconds);
  });
}

test('a topology that cannot be asked for keeps nobody from recovering', async t => {
  const clock = testClock();
  const engine = await startEngine({ clock });
  await prepareCluster(engine);
  const stop = new AbortController();
  const kube = { ...methodsOf(engine.kube), list: refusedList(engine.kube) };
  const deps = { kube, clock, keys: seededKeys('refused'), events: recordingEvents(), log: silentLog };
  const running = runCertRegeneration({ ...deps, identity: 'master-0', keyAlgorithm: 'P-256' }, stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
    await engine.close();
  });
  const lease = await eventually(clock, () => getIfPresent(engine.kube, LEASES, REGENERATION_LEASE));
  assert.equal(lease.spec?.leaseDurationSeconds, 137);
});

function methodsOf(kube: Kube): Kube {
  return {
    get: (...given) => kube.get(...given),
    list: (...given) => kube.list(...given),
    watch: (...given) => kube.watch(...given),
    create: (...given) => kube.create(...given),
    update: (...given) => kube.update(...given),
    updateStatus: (...given) => kube.updateStatus(...given),
    patch: (...given) => kube.patch(...given),
    delete: (...given) => kube.delete(...given),
    evict: (...given) => kube.evict(...given),
  };
}

/** Refuses the first question about the Infrastructure: afterwards it is watched. */
function refusedList(kube: Kube): Kube['list'] {
  let isAsked = false;
  return async (resource, options) => {
    if (resource.plural === INFRASTRUCTURES.plural && !isAsked) {
      isAsked = true;
      throw new Error('refused');
    }
    return kube.list(resource, options);
  };
}

/** A cluster whose operator worked once and then not for `offlineMs`; now the regeneration controller starts. */
async function started(clock: VirtualClock, offlineMs: number, controlPlaneTopology = 'HighlyAvailable') {
  const engine = await startEngine({ clock });
  await prepareCluster(engine);
  const infrastructure = await engine.kube.get(INFRASTRUCTURES, CLUSTER);
  const status = { ...infrastructure.status, controlPlaneTopology };
  await engine.kube.updateStatus(INFRASTRUCTURES, { ...infrastructure, status });
  await workOnce(engine, clock);
  await clock.advanceTo(new Date(NOW.getTime() + offlineMs));
  const recorder = recordingEvents();
  const ended = new AbortController();
  const deps = {
    kube: engine.kube,
    clock,
    keys: seededKeys('regeneration'),
    events: recorder,
    log: silentLog,
    identity: 'master-0',
    keyAlgorithm: 'P-256',
  } as const;
  const running = runCertRegeneration(deps, ended.signal);
  return {
    engine,
    events: recorder.events,
    stop: async () => {
      ended.abort();
      await running;
      await engine.close();
    },
  };
}

async function workOnce({ kube }: Engine, clock: VirtualClock): Promise<void> {
  const inputs = {
    network: await kube.get(NETWORKS, CLUSTER),
    infrastructure: await kube.get(INFRASTRUCTURES, CLUSTER),
  };
  const hostnames = hostnameSources();
  for (const [name, source] of Object.entries(hostnames)) {
    const answer = decideHostnames(name as keyof typeof hostnames, inputs);
    if (answer.ok) source.set(answer.hostnames);
  }
  const units = rotationUnits({ dayMs: days(1), hostnames, keyAlgorithm: 'P-256' });
  const events = recordingEvents();
  await reconcileOnce(units, {
    kube,
    objects: liveObjects(kube),
    clock,
    keys: systemKeys,
    events,
    locks: new ObjectLocks(),
  });
  await ensureCombinedBundle(
    CLIENT_CA,
    source => getIfPresent(kube, CONFIG_MAPS, source),
    { kube, events },
    clock.now(),
  );
}

function notAfter(secret: { metadata?: { annotations?: Record<string, string> } }): Date {
  return new Date(secret.metadata?.annotations?.[NOT_AFTER] ?? 0);
}

function certificatesIn(bundle: { data?: Record<string, string> }): Certificate[] {
  return readCertificates(bundle.data?.[BUNDLE_KEY] ?? '').certificates;
}
