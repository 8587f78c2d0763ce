import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { ETCD_NAMESPACE } from '../etcd/names.ts';
import { OPERAND_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import { type RolloutEffect, rolloutEffect } from '../machine-config/effect.ts';
import { nodesOfPool } from '../machine-config/pool/membership.ts';
import type { MachineConfig } from '../machine-config-api/machine-config.ts';
import { CONTROL_PLANE_NODE_LABEL, CURRENT_CONFIG, MASTER_NODE_LABEL } from '../machine-config-api/names.ts';
import { effectOfChange } from '../trust/effect.ts';
import { deliveriesOf, type NodeSet, type TrustGraph } from '../trust/graph.ts';
import type { ObjectRef } from '../trust/object.ts';
import type { PlanEffect, PlanEvent } from './model.ts';
import type { PlanObjects } from './objects.ts';

/** What a change of this object does where its own files lie; objects that follow from it have events of their own. */
export function effectsAt(graph: TrustGraph, object: ObjectRef, nodes: readonly Node[]): PlanEffect[] {
  return (
    effectOfChange(graph, object)
      // What a revision carries restarts pods when it is rolled out, and that is an event of its own.
      .filter(({ path, kind }) => path.length === 1 && kind !== 'restart')
      .map(({ kind, delivery, uses }) => ({
        kind,
        process: [...new Set(uses.map(({ process }) => process))].join(', '),
        nodes: nodeNames(nodes, delivery.nodes),
        files: delivery.files.map(file => `${delivery.hostDirectory}/${file}`),
      }))
  );
}

export function nodeNames(nodes: readonly Node[], set: NodeSet): string[] {
  return nodes
    .filter(({ metadata }) => set === 'all' || isControlPlane(metadata?.labels ?? {}))
    .map(({ metadata }) => metadata?.name ?? '')
    .sort();
}

function isControlPlane(labels: Readonly<Record<string, string>>): boolean {
  return MASTER_NODE_LABEL in labels || CONTROL_PLANE_NODE_LABEL in labels;
}

/** The static pods that get a new revision because of these changes, and which of them are to blame. */
export function operandsToRollOut(
  graph: TrustGraph,
  changed: readonly ObjectRef[],
): { operand: 'kube-apiserver' | 'etcd'; because: ObjectRef[] }[] {
  const revisioned = changed.filter(object =>
    deliveriesOf(graph, object).some(({ carrier }) => carrier === 'revision'),
  );
  return (
    [
      ['etcd', ETCD_NAMESPACE],
      ['kube-apiserver', OPERAND_NAMESPACE],
    ] as const
  ).flatMap(([operand, namespace]) => {
    const because = revisioned.filter(object => object.namespace === namespace);
    return because.length === 0 ? [] : [{ operand, because }];
  });
}

/** Pools whose nodes are not yet where they should be: what the agents are about to do. */
export function pendingReboots({ pools, nodes, machineConfigs }: PlanObjects, now: Date, notes: string[]): PlanEvent[] {
  const configs = new Map(machineConfigs.map(config => [config.metadata?.name ?? '', config]));
  return pools.flatMap(pool => {
    const name = pool.metadata?.name ?? '';
    const wanted = pool.spec?.configuration?.name ?? '';
    const behind = nodesOfPool(name, nodes, pools).filter(
      ({ metadata }) => metadata?.annotations?.[CURRENT_CONFIG] !== wanted && wanted !== '',
    );
    if (behind.length === 0) return [];
    if (pool.spec?.paused) {
      notes.push(`machineconfigpool/${name} is paused: ${behind.length} nodes stay behind ${wanted}`);
      return [];
    }
    const effects = behind.map((node): PlanEffect => {
      const [from, to] = [configs.get(node.metadata?.annotations?.[CURRENT_CONFIG] ?? ''), configs.get(wanted)];
      const action = from === undefined || to === undefined ? 'reboot' : actionBetween(from, to, notes);
      const kind =
        action === 'reboot'
          ? 'reboot'
          : action === 'restart crio'
            ? 'restart'
            : action === 'reload crio'
              ? 'reload'
              : 'write';
      return { kind, process: 'machine-config-daemon', nodes: [node.metadata?.name ?? ''] };
    });
    const reason = `machineconfigpool/${name} goes to ${wanted}`;
    return [{ at: now.toISOString(), change: 'reboot' as const, reason, effects }];
  });
}

/** A config that cannot be read is reported; what it does is then the worst that can happen. */
function actionBetween(from: MachineConfig, to: MachineConfig, notes: string[]): RolloutEffect['action'] {
  try {
    return rolloutEffect(from, to).action;
  } catch (error) {
    const note = `what ${to.metadata?.name} does cannot be told: ${(error as Error).message}`;
    if (!notes.includes(note)) notes.push(note);
    return 'reboot';
  }
}
