import { Counter, Gauge, type Registry } from '@prometheus-io/client';

/** What the agent counts (spec 60, 13.1), with the names alerts and dashboards know. */
export interface AgentMetrics {
  hostOs(os: string, version: string): void;
  /** A staged OS change failed (true) or went well. */
  pivot(failed: boolean): void;
  state(state: string, reason: string, at: Date): void;
  /** An update was completed, or failed with that text. */
  updated(config: string, error: string, at: Date): void;
  kubeletFailures(inARow: number): void;
  rebootFailed(): void;
  /** When the disk was last found to differ from the config; undefined: it does not. */
  drift(since: Date | undefined): void;
  unsupportedPackages(count: number): void;
  /** The configs this node is told to reach or to be in that the cluster does not have. */
  missingConfigs(names: readonly string[]): void;
  login(): void;
}

export function agentMetrics(registry: Registry, nodeName: string): AgentMetrics {
  const registers = [registry];
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers });
  const hostOs = gauge('mcd_host_os_and_version', 'The operating system of the host.', ['os', 'version']);
  const pivotErrors = gauge('mcd_pivot_errors_total', 'OS changes that failed since the last one that went well.');
  const state = gauge('mcd_state', 'When the agent last changed its state.', ['state', 'reason']);
  const updateState = gauge('mcd_update_state', 'When the last update ended, and how.', ['config', 'err']);
  const kubelet = gauge('mcd_kubelet_state', 'Health checks of the kubelet that failed in a row.');
  const drift = gauge('mcd_config_drift', 'When the disk was last found to differ from the config; 0: it does not.');
  const packages = gauge('mcd_local_unsupported_packages', 'Packages layered by hand that no extension knows.', [
    'node',
  ]);
  // 4.16 forgets to register this one, so that its alert cannot fire (D-27).
  const missing = gauge('mcd_missing_mc', 'Configs that are named but missing.', ['mc']);
  const rebootsFailed = new Counter({
    name: 'mcd_reboots_failed_total',
    help: 'Reboot commands that failed.',
    registers,
  });
  const logins = new Counter({ name: 'ssh_accesses_total', help: 'Login sessions seen on the host.', registers });
  drift.set(0);
  kubelet.set(0);
  pivotErrors.set(0);
  return {
    hostOs(os, version) {
      hostOs.reset();
      hostOs.set({ os, version }, 1);
    },
    pivot: failed => (failed ? pivotErrors.inc() : pivotErrors.set(0)),
    state(name, reason, at) {
      state.reset();
      state.set({ state: name, reason }, at.getTime() / 1000);
    },
    updated(config, err, at) {
      updateState.reset();
      updateState.set({ config, err }, at.getTime() / 1000);
    },
    kubeletFailures: inARow => kubelet.set(inARow),
    rebootFailed: () => rebootsFailed.inc(),
    drift: since => drift.set(since === undefined ? 0 : since.getTime() / 1000),
    unsupportedPackages: count => packages.set({ node: nodeName }, count),
    missingConfigs(names) {
      missing.reset();
      for (const mc of names) missing.set({ mc }, 1);
    },
    login: () => logins.inc(),
  };
}

/** For whoever does not count. */
export const noAgentMetrics: AgentMetrics = {
  hostOs: () => {},
  pivot: () => {},
  state: () => {},
  updated: () => {},
  kubeletFailures: () => {},
  rebootFailed: () => {},
  drift: () => {},
  unsupportedPackages: () => {},
  missingConfigs: () => {},
  login: () => {},
};
