import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { Controller } from '../controller/controller.ts';
import type { Log } from '../controller/log.ts';
import type { ControllerMetrics } from '../controller/metrics.ts';
import { ONLY_KEY } from '../controller/reconcile.ts';
import { named, onChange, type Source, type Trigger } from '../controller/trigger.ts';
import { minutes } from '../kube/duration.ts';
import type { EventRecorder } from '../kube/events.ts';
import { CONFIG_MAPS, type KubeObject, type ObjectKey, SECRETS } from '../kube/resource.ts';
import type { RotationUnit } from './config.ts';
import type { CertCreator } from './creator.ts';
import type { Objects, Rotation } from './ensure.ts';
import { type Reporter, reconcileUnit } from './reconcile.ts';
import type { Sync } from './unit.ts';

/** A cache of one kind of object, of one namespace or of all. */
export interface Cached<T extends KubeObject> extends Source<T> {
  get(key: ObjectKey): T | undefined;
  remember(object: T): void;
}

/** The caches a unit reads from and is woken by, by namespace. */
export interface RotationCaches {
  secrets(namespace: string): Cached<Secret>;
  configMaps(namespace: string): Cached<ConfigMap>;
}

export interface RotationControllerOptions {
  readonly unit: RotationUnit;
  readonly rotation: Omit<Rotation, 'objects' | 'events' | 'log'>;
  readonly caches: RotationCaches;
  readonly report: Reporter;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly metrics?: ControllerMetrics | undefined;
  /** How a pass goes; by upstream's clock unless told otherwise. */
  readonly sync?: Sync | undefined;
  /** Further reasons for a pass. */
  readonly triggers?: readonly Trigger[] | undefined;
}

/** The safety net below the triggers and the due times (spec 10, 9). */
const RESYNC_MS = minutes(1);

/** Keeps one unit in order: woken by its three objects, by its host names and by the time the next rule is due. */
export function certRotationController(options: RotationControllerOptions): Controller {
  const { unit, caches, report, metrics } = options;
  const { signer, bundle, target } = unit;
  // The source component of R-6; the controller adds its own name.
  const events = options.events.withComponent(`cert-rotation-controller-${unit.name}`);
  const log = options.log.child({ unit: unit.name });
  const rotation: Rotation = { ...options.rotation, objects: cachedObjects(caches), events: options.events, log };
  return new Controller({
    name: 'CertRotationController',
    clock: rotation.clock,
    events,
    log,
    metrics,
    resyncMs: RESYNC_MS,
    triggers: [
      onChange(caches.secrets(signer.namespace), { when: named(signer.name) }),
      onChange(caches.configMaps(bundle.namespace), { when: named(bundle.name) }),
      onChange(caches.secrets(target.namespace), { when: named(target.name) }),
      onHostnames(target.creator),
      ...(options.triggers ?? []),
    ],
    reconcile: async (_, context) => {
      const againAt = await reconcileUnit(unit, rotation, report, context.events, options.sync);
      return { againAt };
    },
  });
}

/** Reads from caches that are told of every write, so that no decision goes back behind it (W-4). */
export function cachedObjects(caches: RotationCaches): Objects {
  const cacheOf = (kind: string, namespace = ''): Cached<KubeObject> =>
    kind === SECRETS.kind ? caches.secrets(namespace) : caches.configMaps(namespace);
  return {
    read: async ({ kind }, key) => {
      if (kind !== SECRETS.kind && kind !== CONFIG_MAPS.kind) throw new TypeError(`no cache of ${kind}`);
      return cacheOf(kind, key.namespace).get(key) as never;
    },
    wrote: ({ kind }, object) => cacheOf(kind, object.metadata?.namespace).remember(object),
  };
}

/** Turns every notice of the creator into a pass; a stream that ends is not read again (C-1, trap 14.11). */
function onHostnames(creator: CertCreator): Trigger {
  return {
    synced: Promise.resolve(),
    start(enqueue) {
      const stop = new AbortController();
      const forward = async () => {
        for await (const _ of creator.changes?.(stop.signal) ?? []) enqueue(ONLY_KEY);
      };
      // Losing notices costs at most a minute: the resync asks anyway.
      forward().catch(() => {});
      return () => stop.abort();
    },
  };
}
