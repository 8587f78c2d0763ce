import type { Log } from '../../controller/log.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import type { DisruptionOptions } from '../../machine-config-api/disruption.ts';
import { policiesInForce } from '../../machine-config-api/disruption-policy.ts';
import { type DisruptionPolicies, MACHINE_CONFIGURATIONS } from '../../machine-config-api/machine-configuration.ts';
import { CLUSTER, DRAIN_OVERRIDE, MCO_NAMESPACE } from '../../machine-config-api/names.ts';

export interface PolicyParts {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly log: Log;
  readonly stop: AbortSignal;
}

const PUBLISHED_WITHIN_MS = minutes(2);
const LOOK_EVERY_MS = seconds(5);

/** What the cluster says about the disruption an update may cause (spec 60, 9.2 and 9.4), read live. */
export async function disruptionOptions(parts: PolicyParts): Promise<DisruptionOptions> {
  const policies = await publishedPolicies(parts);
  if (policies !== undefined) return { policies };
  const override = await getIfPresent(parts.kube, CONFIG_MAPS, { namespace: MCO_NAMESPACE, name: DRAIN_OVERRIDE });
  return { hasDrainOverride: override !== undefined };
}

/**
 * The merged policies in the status of MachineConfiguration; undefined where they are not in force. Where a user asked for some and
 * the operator has not published them yet, that is waited for; the built-in table never disrupts less than it must.
 */
async function publishedPolicies({ kube, clock, log, stop }: PolicyParts): Promise<DisruptionPolicies | undefined> {
  const end = clock.now().getTime() + PUBLISHED_WITHIN_MS;
  for (;;) {
    const found = await getIfPresent(kube, MACHINE_CONFIGURATIONS, { name: CLUSTER }, { signal: stop });
    const policies = policiesInForce(found);
    if (policies !== undefined) return policies;
    if (found?.spec?.nodeDisruptionPolicy === undefined) return undefined;
    if (clock.now().getTime() >= end) {
      log.warn({}, 'NodeDisruptionPolicies are asked for but not published; the built-in actions count');
      return undefined;
    }
    await sleep(clock, LOOK_EVERY_MS, stop);
  }
}
