import { RetryRequest } from '../../controller/reconcile.ts';
import { type Disruption, decideDisruption, layeredDisruption } from '../../machine-config-api/disruption.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { cannotReconcile } from '../../machine-config-api/reconciliation.ts';
import { applyConfig } from '../apply/apply-config.ts';
import type { Json } from '../apply/journal.ts';
import { osRefusal } from '../apply/os.ts';
import type { StoredState } from '../apply/stored.ts';
import { planActions } from '../decide/action-plan.ts';
import { FIPS_ENABLED, reconcile, UnreconcilableError } from '../decide/reconcile.ts';
import { decideUpdatePath } from '../decide/update-needed.ts';
import { announce, announcements } from './announcements.ts';
import { stopDriftMonitor, wantedBy } from './completion.ts';
import { drainNode } from './drain.ts';
import { followUp, type UpdateOutcome } from './follow-up.ts';
import { hasForceFile } from './force-file.ts';
import type { AgentParts } from './parts.ts';
import { disruptionOptions } from './policies.ts';

/**
 * Brings the node from one config to the other (spec 60, 8.1). Nothing is touched before the change is known to be possible and, where
 * it needs that, the node is drained; what fails afterwards is undone.
 */
export async function update(parts: AgentParts, from: StoredState, to: StoredState): Promise<UpdateOutcome> {
  const { host, log, report, clock, metrics } = parts;
  const [before, after] = [nameOf(from), nameOf(to)];
  const path = decideUpdatePath(from.image, to.image);
  if (path.kind === 'error') throw new Error(path.message);
  await report.working();
  const isForced = await hasForceFile(host.files);
  const disruption = await possibleDisruption(parts, from, to, { isForced, isLayered: path.kind === 'image' });
  await stopDriftMonitor(parts);
  log.info({ difference: disruption.difference }, `Starting update from ${before} to ${after}`);
  if (disruption.needsDrain) {
    log.info({ reasons: disruption.drainReasons }, 'the node is drained first');
    await drainNode(parts);
    assertStillWanted(parts, to);
  } else {
    log.info({}, 'Changes do not require drain, skipping.');
  }
  const plan = planActions(disruption.actions, after, to.image);
  const isOsTouched = disruption.difference.osUpdate && host.os !== undefined;
  try {
    await applyConfig(host, withImage(from), withImage(to), {
      image: to.image,
      hasForceFile: isForced,
      pendingAction: plan as unknown as Json,
      log,
      clock,
      report: ({ reason, message }) =>
        (reason === 'OSUpdateStaged' ? parts.agentEvents : parts.events).event('Normal', reason, message),
    });
  } catch (error) {
    if (isOsTouched) metrics.pivot(true);
    throw error;
  }
  if (isOsTouched) metrics.pivot(false);
  return followUp(parts, plan, after);
}

/** What the change will do to the node. Throws `UnreconcilableError` where it cannot be made in place (spec 60, section 7). */
async function possibleDisruption(
  parts: AgentParts,
  from: StoredState,
  to: StoredState,
  { isForced, isLayered }: { readonly isForced: boolean; readonly isLayered: boolean },
): Promise<Disruption> {
  const { host, log, events } = parts;
  const [before, after] = [nameOf(from), nameOf(to)];
  log.info({}, `Checking Reconcilable for config ${before} to ${after}`);
  const fips = await host.files.read(FIPS_ENABLED, LARGEST_FIPS_BYTES);
  const result = reconcile(withImage(from), withImage(to), fips?.toString('utf8'));
  const refusal = result.isPossible ? osRefusal(host, result.before, result.after) : undefined;
  const reason = result.isPossible ? refusal && cannotReconcile(before, after, refusal) : result.reason;
  if (!result.isPossible || reason !== undefined) {
    announce(events, announcements.irreconcilable(reason ?? ''));
    throw new UnreconcilableError(reason);
  }
  if (isLayered) return layeredDisruption(result.before, result.after, isForced);
  return decideDisruption(result.before, result.after, { ...(await disruptionOptions(parts)), hasForceFile: isForced });
}

const LARGEST_FIPS_BYTES = 64;

/** The node controller may have changed its mind while pods were leaving; nothing is lost yet by beginning again. */
function assertStillWanted({ node }: AgentParts, to: StoredState): void {
  const { config, image } = wantedBy(node.annotations());
  if (config !== nameOf(to) || image !== to.image) {
    throw new RetryRequest(`config ${config} is wanted by now instead of ${nameOf(to)}`);
  }
}

/** A layered image takes the place of the one in the config, so that it is staged, compared and undone like any other. */
function withImage({ config, image }: StoredState): MachineConfig {
  return image === '' ? config : { ...config, spec: { ...config.spec, osImageURL: image } };
}

function nameOf({ config }: StoredState): string {
  return config.metadata?.name ?? '';
}
