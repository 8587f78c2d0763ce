import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { isWaived } from '../hand-over/waiver.ts';
import type { MachineConfigPool } from '../machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DAEMON_REASON, DAEMON_STATE, DESIRED_CONFIG } from '../machine-config-api/names.ts';
import { readNodeStatus } from '../staticpod/node-status.ts';
import type { StaticPodOperatorResource } from '../staticpod/operator.ts';
import { isReadyRevision, revisionOfStatus } from '../staticpod/revision/number.ts';
import { byPlace, metadataOf } from './certificates.ts';
import type { NodeItem, PoolItem, RevisionItem } from './model.ts';

/** A static-pod operator's resource and the static pod it keeps. */
export interface StaticPodState {
  readonly operand: string;
  readonly namespace: string;
  readonly resource: StaticPodOperatorResource | undefined;
}

const ROLE_PREFIX = 'node-role.kubernetes.io/';

export function nodeItems(nodes: readonly Node[], operands: readonly StaticPodState[]): NodeItem[] {
  return nodes.map(node => nodeItem(node, operands)).sort(byPlace);
}

function nodeItem(node: Node, operands: readonly StaticPodState[]): NodeItem {
  const { name = '', labels = {}, annotations = {} } = node.metadata ?? {};
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  const revisions: Record<string, { current: number; target: number }> = {};
  for (const { operand, resource } of operands) {
    const stored = resource?.status?.nodeStatuses?.find(({ nodeName }) => nodeName === name);
    if (stored === undefined) continue;
    const { currentRevision: current, targetRevision: target } = readNodeStatus(stored);
    revisions[operand] = { current, target };
  }
  const [current, desired] = [annotations[CURRENT_CONFIG], annotations[DESIRED_CONFIG]];
  return {
    metadata: metadataOf(node),
    roles: Object.keys(labels)
      .filter(label => label.startsWith(ROLE_PREFIX))
      .map(label => label.slice(ROLE_PREFIX.length))
      .sort(),
    ready: ready === undefined ? undefined : ready === 'True',
    unschedulable: node.spec?.unschedulable ?? false,
    ...(isWaived(node) ? { isWaived: true } : {}),
    version: node.status?.nodeInfo?.kubeletVersion,
    addresses: (node.status?.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address),
    revisions,
    ...(current === undefined && desired === undefined
      ? {}
      : {
          machineConfig: {
            current: current ?? '',
            desired: desired ?? '',
            state: annotations[DAEMON_STATE] ?? '',
            ...(annotations[DAEMON_REASON] ? { reason: annotations[DAEMON_REASON] } : {}),
          },
        }),
  };
}

export function revisionItems(configMaps: readonly ConfigMap[], operands: readonly StaticPodState[]): RevisionItem[] {
  const items = configMaps.flatMap(configMap => {
    const revision = revisionOfStatus(configMap);
    const namespace = configMap.metadata?.namespace ?? '';
    if (revision === undefined) return [];
    const state = operands.find(candidate => candidate.namespace === namespace);
    const statuses = (state?.resource?.status?.nodeStatuses ?? []).map(readNodeStatus);
    const nodes = statuses
      .filter(({ currentRevision }) => currentRevision === revision)
      .map(({ nodeName }) => nodeName);
    const rollingOutTo = statuses
      .filter(({ targetRevision, currentRevision }) => targetRevision === revision && currentRevision !== revision)
      .map(({ nodeName }) => nodeName);
    const item: RevisionItem = {
      metadata: metadataOf(configMap),
      operand: state?.operand ?? namespace.replace(/^openshift-/, ''),
      revision,
      reason: configMap.data?.reason ?? '',
      state: !isReadyRevision(configMap)
        ? 'Building'
        : rollingOutTo.length > 0
          ? 'RollingOut'
          : nodes.length > 0
            ? 'Current'
            : 'Kept',
      nodes,
      rollingOutTo,
    };
    return [item];
  });
  return items.sort((a, b) => (a.operand < b.operand ? -1 : a.operand > b.operand ? 1 : a.revision - b.revision));
}

export function poolItems(pools: readonly MachineConfigPool[]): PoolItem[] {
  return pools.map(poolItem).sort(byPlace);
}

function poolItem(pool: MachineConfigPool): PoolItem {
  const { spec = {}, status = {} } = pool;
  const condition = (type: string) => status.conditions?.find(candidate => candidate.type === type);
  const message = (['Degraded', 'Updating'] as const)
    .map(condition)
    .find(found => found?.status === 'True' && found.message)?.message;
  return {
    metadata: metadataOf(pool),
    configuration: status.configuration?.name ?? '',
    updated: condition('Updated')?.status === 'True',
    updating: condition('Updating')?.status === 'True',
    degraded: condition('Degraded')?.status === 'True',
    paused: spec.paused ?? false,
    machineCount: status.machineCount ?? 0,
    readyCount: status.readyMachineCount ?? 0,
    updatedCount: status.updatedMachineCount ?? 0,
    unavailableCount: status.unavailableMachineCount ?? 0,
    degradedCount: status.degradedMachineCount ?? 0,
    ...(message === undefined ? {} : { message }),
  };
}
