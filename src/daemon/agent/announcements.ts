import type { EventRecorder, EventType } from '../../kube/events.ts';

/** One event of the agent, ready to be recorded. */
export interface Announcement {
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
}

/** Records an announcement. Texts are data, never formats (D-25). */
export function announce(events: Pick<EventRecorder, 'event'>, { type, reason, message }: Announcement): void {
  events.event(type, reason, message);
}

/** The events of the agent that no decision brings along, with the words people and tools search for (spec 60, section 12). */
export const announcements = {
  driftMonitorStarted: (config: string) =>
    normal('ConfigDriftMonitorStarted', `Config Drift Monitor started, watching against ${config}`),
  driftMonitorStopped: () => normal('ConfigDriftMonitorStopped', 'Config Drift Monitor stopped'),
  driftDetected: (problem: string) => warning('ConfigDriftDetected', problem),
  preflightFailed: (problem: string) => warning('PreflightConfigDriftCheckFailed', problem),
  diskValidationFailed: (problem: string) => warning('OnDiskStateValidationFailed', problem),
  finalizationFailed: (problem: string) => warning('FailedFinalization', problem),
  bootResync: (node: string, current: string, desired: string) =>
    normal('BootResync', `Booting node ${node}, currentConfig ${current}, desiredConfig ${desired}`),
  nodeDone: (node: string, config: string) =>
    normal('NodeDone', `Setting node ${node}, currentConfig ${config} to Done`),
  cordon: () => normal('Cordon', 'Cordoned node to apply update'),
  drain: () => normal('Drain', 'Draining node to update config.'),
  drainSkipped: (why: string) => normal('Drain', why),
  uncordon: (config: string) =>
    normal('Uncordon', `Update completed for config ${config} and node has been uncordoned`),
  irreconcilable: (problem: string) => warning('FailedToReconcile', problem),
  actionFailed: (reason: 'FailedServiceReload' | 'FailedServiceRestart', what: string, problem: string) =>
    warning(reason, `${what} failed. Error: ${problem}`),
} satisfies Record<string, (...parts: never[]) => Announcement>;

function normal(reason: string, message: string): Announcement {
  return { type: 'Normal', reason, message };
}

function warning(reason: string, message: string): Announcement {
  return { type: 'Warning', reason, message };
}
