import type { RotationUnit } from '../../certrotation/config.ts';
import { certRotationController, type RotationCaches } from '../../certrotation/controller.ts';
import { ObjectLocks } from '../../certrotation/locks.ts';
import { operatorStatusReporter } from '../../certrotation/reporter.ts';
import type { Sync } from '../../certrotation/unit.ts';
import type { Controller } from '../../controller/controller.ts';
import type { Log } from '../../controller/log.ts';
import type { ControllerMetrics } from '../../controller/metrics.ts';
import type { Trigger } from '../../controller/trigger.ts';
import type { Clock } from '../../kube/clock.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Kube } from '../../kube/port.ts';
import type { Keys } from '../../pki/keys.ts';
import { CLUSTER, KUBE_API_SERVERS } from '../resources.ts';

export interface RotationOptions {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly keys: Keys;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly metrics?: ((controller: string) => ControllerMetrics) | undefined;
  /** How a pass over a unit goes; by upstream's clock unless told otherwise. */
  readonly sync?: Sync | undefined;
  /** Further reasons for a pass over a unit. */
  readonly triggers?: ((unit: RotationUnit) => readonly Trigger[]) | undefined;
}

/** One controller for each unit, with one set of locks for the signers and bundles they share. */
export function rotationControllers(
  units: readonly RotationUnit[],
  caches: RotationCaches,
  { kube, clock, keys, events, log, metrics, sync, triggers }: RotationOptions,
): Controller[] {
  const locks = new ObjectLocks();
  const report = operatorStatusReporter(kube, KUBE_API_SERVERS, CLUSTER, clock);
  return units.map(unit =>
    certRotationController({
      unit,
      rotation: { kube, clock, keys, locks },
      caches,
      report,
      events,
      log,
      metrics: metrics?.(`CertRotationController_${unit.name}`),
      sync,
      triggers: triggers?.(unit),
    }),
  );
}
