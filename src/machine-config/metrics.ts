import { Gauge, type Registry } from '@prometheus-io/client';
import type { Condition } from '../controller/condition.ts';
import type { MachineConfigPool } from '../machine-config-api/machine-config.ts';

/** A pool and the names of its nodes. */
export interface CountedPool {
  readonly pool: MachineConfigPool;
  readonly nodes: readonly string[];
}

/** What the operator counts (spec 50, section 12): all pools as they are now. */
export type OperatorMetrics = (pools: readonly CountedPool[], nowSeconds: number) => void;

/** What the controllers count (spec 50, section 12). */
export interface ControllerGauges {
  /** A drain that has lasted longer than it should. */
  drainOverdue(node: string, isOverdue: boolean): void;
  /** A node of a custom pool that `master` took; undefined: there is no such node any more. */
  poolAlert(node: string, value: number | undefined): void;
  osImageOverridden(pool: string, isOverridden: boolean): void;
  state(subcontroller: string, state: string, object: string, nowSeconds: number): void;
}

export function operatorMetrics(registry: Registry): OperatorMetrics {
  const registers = [registry];
  const counts = {
    machineCount: new Gauge({
      name: 'mco_machine_count',
      help: 'Machines of a pool.',
      labelNames: ['pool'],
      registers,
    }),
    updatedMachineCount: new Gauge({
      name: 'mco_updated_machine_count',
      help: 'Machines that run the config of their pool.',
      labelNames: ['pool'],
      registers,
    }),
    degradedMachineCount: new Gauge({
      name: 'mco_degraded_machine_count',
      help: 'Machines that report failure.',
      labelNames: ['pool'],
      registers,
    }),
    unavailableMachineCount: new Gauge({
      name: 'mco_unavailable_machine_count',
      help: 'Machines that are not available.',
      labelNames: ['pool'],
      registers,
    }),
  };
  const state = new Gauge({
    name: 'mco_state',
    help: 'When a machine was last seen in the state of its pool.',
    labelNames: ['node', 'pool', 'state', 'reason'],
    registers,
  });
  return (pools, nowSeconds) => {
    for (const gauge of [...Object.values(counts), state]) gauge.reset();
    for (const { pool, nodes } of pools) {
      const name = pool.metadata?.name ?? '';
      for (const [field, gauge] of Object.entries(counts)) {
        gauge.set({ pool: name }, pool.status?.[field as keyof typeof counts] ?? 0);
      }
      const { type, reason = '' } = newestCondition(pool) ?? { type: '' };
      for (const node of nodes) state.set({ node, pool: name, state: type, reason }, nowSeconds);
    }
  };
}

/** The condition that became true last. Looked for in each pool by itself, where 4.16 carries it from one to the next. */
function newestCondition({ status }: MachineConfigPool): Condition | undefined {
  return (status?.conditions ?? [])
    .filter(condition => condition.status === 'True')
    .toSorted((a, b) => ((a.lastTransitionTime ?? '') < (b.lastTransitionTime ?? '') ? 1 : -1))[0];
}

export function controllerGauges(registry: Registry): ControllerGauges {
  const registers = [registry];
  const drain = new Gauge({
    name: 'mcc_drain_err',
    help: 'Drains that last too long.',
    labelNames: ['node'],
    registers,
  });
  const alert = new Gauge({
    name: 'mcc_pool_alert',
    help: 'Nodes whose custom pool is overruled by master.',
    labelNames: ['node'],
    registers,
  });
  const override = new Gauge({
    name: 'os_image_url_override',
    help: 'Pools whose OS image is not the default.',
    labelNames: ['pool'],
    registers,
  });
  const state = new Gauge({
    name: 'mcc_sub_controller_state',
    help: 'When a part of the controller last did something.',
    labelNames: ['subcontroller', 'state', 'object'],
    registers,
  });
  return {
    drainOverdue(node, isOverdue) {
      if (isOverdue) drain.set({ node }, 1);
      else drain.remove({ node });
    },
    poolAlert(node, value) {
      if (value === undefined) alert.remove({ node });
      else alert.set({ node }, value);
    },
    osImageOverridden: (pool, isOverridden) => override.set({ pool }, isOverridden ? 1 : 0),
    state: (subcontroller, name, object, nowSeconds) => state.set({ subcontroller, state: name, object }, nowSeconds),
  };
}

/** For whoever does not count. */
export const noGauges: ControllerGauges = {
  drainOverdue: () => {},
  poolAlert: () => {},
  osImageOverridden: () => {},
  state: () => {},
};
