import { readRotationScale, rotationDay } from '../../certrotation/scale.ts';
import { Controller, runAll } from '../../controller/controller.ts';
import type { Log } from '../../controller/log.ts';
import type { Reconcile } from '../../controller/reconcile.ts';
import { onChange } from '../../controller/trigger.ts';
import type { Clock } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { acquireLease } from '../../kube/lease.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import type { KeyAlgorithm, Keys } from '../../pki/keys.ts';
import { cachedObjects, type Objects, writeIfNeeded } from '../../staticpod/objects.ts';
import { configCaches, ObjectCaches } from '../caches.ts';
import { CLIENT_CA, ensureCombinedBundle } from '../combined-bundles.ts';
import { CONFIG_NAMESPACE, OPERAND_NAMESPACE, WATCHED_NAMESPACES } from '../namespaces.ts';
import { CLUSTER, INFRASTRUCTURES } from '../resources.ts';
import { rotationControllers } from '../rotation/controllers.ts';
import { followHostnames, hostnameSources } from '../rotation/follow-hostnames.ts';
import { rotationUnits } from '../rotation/units.ts';

export interface CertRegenerationDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly keys: Keys;
  readonly events: EventRecorder;
  readonly log: Log;
  /** Tells this process from those on the other nodes. */
  readonly identity: string;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
}

/** Only one control-plane node acts at a time. */
export const REGENERATION_LEASE = { namespace: OPERAND_NAMESPACE, name: 'cert-regeneration-controller-lock' };
/** A single node has nobody else to lead, and an API that is away for longer. */
const SINGLE_NODE_LEASE = { leaseDurationMs: seconds(270), renewDeadlineMs: seconds(240), retryMs: seconds(60) };

/** Enough for the operator, if it is there, to do the work itself. */
const BUNDLE_DELAY_MS = seconds(10);
const BUNDLE_RESYNC_MS = minutes(10);

/**
 * `cert-regeneration-controller`: brings an expired cluster back, beside the operator or without it (spec 20, 5.2). Replaces what
 * is expired or unusable in all chains and rebuilds the client CA; copies and revisions are left to the operator. Resolves when
 * `signal` aborts, rejects when the leadership is lost.
 */
export async function runCertRegeneration(deps: CertRegenerationDeps, signal: AbortSignal): Promise<void> {
  const { kube, clock, events, log, identity } = deps;
  const lease = {
    kube,
    lease: REGENERATION_LEASE,
    identity,
    clock,
    events,
    onError: (error: unknown) => log.warn({ err: error }, 'the lease could not be renewed'),
    ...((await isSingleNode(kube, log, signal)) ? SINGLE_NODE_LEASE : {}),
  };
  const leadership = await acquireLease(lease, signal).catch((error: unknown) => {
    if (signal.aborted) return undefined;
    throw error;
  });
  if (leadership === undefined) return;
  try {
    const either = AbortSignal.any([signal, leadership.signal]);
    await runRegeneration({ ...deps, kube: leadership.fenced(kube) }, either);
    if (!signal.aborted) throw leadership.signal.reason;
  } finally {
    await leadership.release();
  }
}

/** What the Infrastructure says; false when it cannot be asked, because recovery must begin all the same. */
async function isSingleNode(kube: Kube, log: Log, signal: AbortSignal): Promise<boolean> {
  try {
    const { items } = await kube.list(INFRASTRUCTURES, { signal });
    return (
      items.find(({ metadata }) => metadata?.name === CLUSTER.name)?.status?.controlPlaneTopology === 'SingleReplica'
    );
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error }, 'the topology of the control plane is not known');
    return false;
  }
}

/** The same without asking who leads. */
export async function runRegeneration(deps: CertRegenerationDeps, signal: AbortSignal): Promise<void> {
  const { kube, clock, events, log, keyAlgorithm } = deps;
  const scale = await readRotationScale(kube, CONFIG_NAMESPACE, clock, message => log.warn({}, message));
  const options = { clock, onError: (error: unknown) => log.warn({ err: error }, 'watching failed') };
  const objects = new ObjectCaches(kube, options);
  const { networks, infrastructures } = configCaches(kube, options);
  const hostnames = hostnameSources();
  const stopFollowing = followHostnames(hostnames, networks, infrastructures);
  const units = rotationUnits({ dayMs: rotationDay(scale), hostnames, onlyWhenExpired: true, keyAlgorithm });
  const ready = Promise.all([networks.synced, infrastructures.synced]);
  ready.catch(() => {});
  const cached = cachedObjects(kube, objects.resources);
  const controllers = [
    ...rotationControllers(units, objects.forRotation(ready), deps),
    new Controller({
      name: 'CABundleRecoveryController',
      clock,
      events: events.withComponent('manage-client-ca-bundle-recovery-controller'),
      log,
      resyncMs: BUNDLE_RESYNC_MS,
      triggers: WATCHED_NAMESPACES.map(namespace => onChange(objects.in(namespace).configMaps)),
      reconcile: clientCAReconcile(kube, cached),
    }),
  ];
  const informers = [...objects.informers, networks, infrastructures];
  for (const informer of informers) informer.start();
  try {
    await runAll(controllers, signal);
  } finally {
    stopFollowing();
    await Promise.all(informers.map(informer => informer.stop()));
  }
}

/** Looks ten seconds after the first news, at all of them together. */
function clientCAReconcile(kube: Kube, cached: Objects): Reconcile {
  let due: Date | undefined;
  return async (_key, { clock, events, signal, log }) => {
    due ??= new Date(clock.now().getTime() + BUNDLE_DELAY_MS);
    if (clock.now() < due) return { againAt: due };
    due = undefined;
    const read = (source: { namespace: string; name: string }) => cached.get(CONFIG_MAPS, source);
    const { changed, until } = await writeIfNeeded(cached, { kube, events, signal }, context =>
      ensureCombinedBundle(CLIENT_CA, read, context, clock.now()),
    );
    if (changed) log.info({}, 'Refreshed client CA bundle.');
    return { againAt: until };
  };
}
