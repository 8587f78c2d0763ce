import type { BuiltInAction } from '../../machine-config-api/built-in-actions.ts';
import type { NodeActions } from '../../machine-config-api/disruption.ts';
import type { DisruptionAction } from '../../machine-config-api/machine-configuration.ts';

/** One thing done on the host, or only told. */
export interface ActionStep {
  readonly operation: HostOperation | undefined;
  /** The event of its success, and what it says; undefined where success is not told. */
  readonly done: PlannedEvent | undefined;
  /** The event of its failure, which ends the plan and undoes the update. */
  readonly failed: 'FailedServiceReload' | 'FailedServiceRestart' | undefined;
}

export type HostOperation =
  | { readonly verb: 'reload' | 'restart'; readonly service: string }
  | { readonly verb: 'daemon-reload' | 'update-ca-trust' };

export interface PlannedEvent {
  readonly reason: 'SkipReboot' | 'ServiceReload' | 'ServiceRestart' | 'Reboot';
  readonly message: string;
}

export interface ActionPlan {
  readonly steps: readonly ActionStep[];
  readonly ending: 'finish-rebootless' | 'reboot';
  /** Shown to people when it reboots. */
  readonly rationale: string;
}

const NO_REBOOT = 'Config changes do not require reboot.';

/** What is done on the node once a config is on its disk, in order (spec 60, 9.1 and 9.4, "Execution"). Drains came before. `image` is a layered one. */
export function planActions(actions: NodeActions, config: string, image = ''): ActionPlan {
  const rationale = `Node will reboot into ${image === '' ? `config ${config}` : `image ${image} / MachineConfig ${config}`}`;
  if (actions.engine === 'built-in') {
    return actions.action === 'reboot' ? reboot(rationale) : finish(builtInSteps(actions.action), rationale);
  }
  const at = actions.actions.findIndex(({ type }) => type === 'Reboot');
  const steps = actions.actions.slice(0, at === -1 ? undefined : at).flatMap(policySteps);
  return at === -1 ? finish(steps, rationale) : reboot(rationale, steps);
}

function finish(steps: readonly ActionStep[], rationale: string): ActionPlan {
  return { steps, ending: 'finish-rebootless', rationale };
}

function reboot(rationale: string, before: readonly ActionStep[] = []): ActionPlan {
  const told: ActionStep = { operation: undefined, done: { reason: 'Reboot', message: rationale }, failed: undefined };
  return { steps: [...before, told], ending: 'reboot', rationale };
}

const TOLD: ActionStep = {
  operation: undefined,
  done: { reason: 'SkipReboot', message: NO_REBOOT },
  failed: undefined,
};

function builtInSteps(action: Exclude<BuiltInAction, 'reboot'>): ActionStep[] {
  switch (action) {
    case 'none':
      return [TOLD];
    case 'reload crio':
      return [
        {
          operation: { verb: 'reload', service: 'crio' },
          done: { reason: 'SkipReboot', message: `${NO_REBOOT} Service crio was reloaded.` },
          failed: 'FailedServiceReload',
        },
      ];
    case 'restart crio':
      return [
        { operation: { verb: 'update-ca-trust' }, done: undefined, failed: 'FailedServiceReload' },
        { operation: { verb: 'restart', service: 'crio' }, done: undefined, failed: 'FailedServiceReload' },
      ];
  }
}

function policySteps({ type, reload, restart }: DisruptionAction): ActionStep[] {
  switch (type) {
    case 'None':
      return [TOLD];
    case 'Special':
      return [reloaded('crio')];
    case 'Reload':
      return [reloaded(reload?.serviceName ?? '')];
    case 'Restart': {
      const service = restart?.serviceName ?? '';
      const message = `${NO_REBOOT} Service ${service} was restarted.`;
      return [
        {
          operation: { verb: 'restart', service },
          done: { reason: 'ServiceRestart', message },
          failed: 'FailedServiceRestart',
        },
      ];
    }
    case 'DaemonReload':
      return [
        {
          operation: { verb: 'daemon-reload' },
          done: { reason: 'ServiceReload', message: `${NO_REBOOT} Service manager was reloaded.` },
          failed: 'FailedServiceReload',
        },
      ];
    case 'Drain':
    case 'Reboot':
      return [];
  }
}

function reloaded(service: string): ActionStep {
  return {
    operation: { verb: 'reload', service },
    done: { reason: 'ServiceReload', message: `${NO_REBOOT} Service ${service} was reloaded.` },
    failed: 'FailedServiceReload',
  };
}

/** The command line of an operation, for logs and for hosts that run commands. */
export function commandOf(operation: HostOperation): readonly string[] {
  switch (operation.verb) {
    case 'reload':
    case 'restart':
      return ['systemctl', operation.verb, operation.service];
    case 'daemon-reload':
      return ['systemctl', 'daemon-reload'];
    case 'update-ca-trust':
      return ['update-ca-trust'];
  }
}

/** A service as the host port wants it: with its suffix (`crio` is `crio.service`). */
export function unitName(service: string): string {
  return UNIT_SUFFIX.test(service) ? service : `${service}.service`;
}

const UNIT_SUFFIX = /\.(?:service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)$/;
