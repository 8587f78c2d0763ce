import { errorText } from '../../controller/aggregate-error.ts';
import { POST_CONFIG_ACTION } from '../../machine-config-api/names.ts';
import { REBOOTING } from '../decide/sync-gate.ts';
import type { AgentParts } from './parts.ts';

/** Has the machine rebooted (spec 60, 10.3). Returns once that is queued; throws when the machine refuses. */
export async function rebootNode(
  { host, writer, log, metrics }: Pick<AgentParts, 'host' | 'writer' | 'log' | 'metrics'>,
  rationale: string,
): Promise<void> {
  try {
    await writer.annotate({ [POST_CONFIG_ACTION]: REBOOTING });
  } catch (error) {
    // Only people read it.
    log.warn({ err: error }, 'the node could not be told that it reboots');
  }
  log.info({}, `initiating reboot: ${rationale}`);
  try {
    await host.reboot(rationale);
  } catch (error) {
    metrics.rebootFailed();
    log.error({ err: error }, `failed to run reboot: ${errorText(error)}`);
    throw error;
  }
  log.info({}, 'reboot successful');
}
