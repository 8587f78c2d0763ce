import { errorText } from '../../controller/aggregate-error.ts';
import type { Log } from '../../controller/log.ts';
import type { Host } from '../../host/port.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { type ActionPlan, commandOf, type HostOperation, unitName } from '../decide/action-plan.ts';
import { announce, announcements } from './announcements.ts';

export interface ActionParts {
  readonly host: Host;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly log: Log;
}

/**
 * Does on the host what a config that is on its disk asks for, short of the reboot (spec 60, section 9, "Execution"). Throws at the
 * first step that fails; the update is then undone.
 */
export async function performActions(
  { host, events, log }: ActionParts,
  plan: ActionPlan,
  config: string,
): Promise<void> {
  for (const { operation, done, failed } of plan.steps) {
    if (operation !== undefined) {
      const command = commandOf(operation).join(' ');
      log.info({ command }, `Performing post config change action: ${operation.verb} for config ${config}`);
      try {
        await perform(host, operation);
      } catch (error) {
        if (failed !== undefined) announce(events, announcements.actionFailed(failed, command, errorText(error)));
        throw new Error(`could not apply update: ${command} failed: ${errorText(error)}`, { cause: error });
      }
    }
    if (done !== undefined) events.event('Normal', done.reason, done.message);
  }
}

async function perform(host: Host, operation: HostOperation): Promise<void> {
  switch (operation.verb) {
    case 'reload':
      return host.services.reload(unitName(operation.service));
    case 'restart':
      return host.services.restart(unitName(operation.service));
    case 'daemon-reload':
      return host.services.daemonReload();
    case 'update-ca-trust':
      // Systems without the program have no store to bring up to date.
      return host.updateCaTrust?.();
  }
}
