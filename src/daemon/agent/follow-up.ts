import { errorText } from '../../controller/aggregate-error.ts';
import { finishUpdate, revertConfig } from '../apply/apply-config.ts';
import type { ActionPlan } from '../decide/action-plan.ts';
import { performActions } from './actions.ts';
import { complete } from './completion.ts';
import { removeForceFile } from './force-file.ts';
import type { AgentParts } from './parts.ts';
import { rebootNode } from './reboot.ts';

/** How an update ended: with a reboot under way, in the wanted config, or with another one wanted by now. */
export type UpdateOutcome = 'rebooting' | 'done' | 'again';

/**
 * Does what has to follow a config that is committed to the disk: services are told, or the machine is rebooted (spec 60, 8.1 step 16).
 * What fails takes the whole update back. After a crash, or where we are told to end in the middle of it, it is done again, which does no
 * harm (D-41).
 */
export async function followUp(parts: AgentParts, plan: ActionPlan, config: string): Promise<UpdateOutcome> {
  const { host, log, clock, stop } = parts;
  try {
    await performActions(parts, plan, config);
    await removeForceFile(host.files);
    if (plan.ending === 'reboot') await rebootNode(parts, plan.rationale);
  } catch (error) {
    // Who is told to end takes along what it has started: a reboot that has begun has failed in nothing.
    if (stop.aborted) throw error;
    const { undoErrors } = await revertConfig(host, { log, clock });
    const undo = undoErrors.map(({ message }) => `; undo failed: ${message}`).join('');
    throw new Error(`${errorText(error)}${undo}`, { cause: error });
  }
  if (plan.ending === 'reboot') return 'rebooting';
  await finishUpdate(host);
  return (await complete(parts)) ? 'done' : 'again';
}
