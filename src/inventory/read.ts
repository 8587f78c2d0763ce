import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { parseScale, rotationDay, SCALE_CONFIG_MAP } from '../certrotation/scale.ts';
import { ETCD_NAMESPACE } from '../etcd/names.ts';
import { KubeError } from '../kube/error.ts';
import { CONFIG_MAPS, NODES, resource, SECRETS } from '../kube/resource.ts';
import { CONFIG_NAMESPACE, OPERAND_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import { MACHINE_CONFIG_POOLS, type MachineConfigPool } from '../machine-config-api/machine-config.ts';
import type { StaticPodOperatorResource } from '../staticpod/operator.ts';
import { certificatesAndBundles } from './certificates.ts';
import type { HandOverItem, Inventory } from './model.ts';
import { nodeItems, poolItems, revisionItems, type StaticPodState } from './nodes.ts';
import type { PublicSecret } from './public-secret.ts';
import type { ObjectSource } from './source.ts';

/** Which objects an answer needs; nothing else is read. */
export type InventoryPart = 'certificates' | 'nodes' | 'revisions' | 'pools' | 'hand-overs';

/** The objects an inventory is made from, free of private data. */
export interface InventoryObjects {
  readonly secrets: readonly PublicSecret[];
  readonly configMaps: readonly ConfigMap[];
  readonly nodes: readonly Node[];
  readonly operands: readonly StaticPodState[];
  readonly pools: readonly MachineConfigPool[];
}

export interface ReadOptions {
  readonly parts: readonly InventoryPart[];
  readonly namespace?: string | undefined;
  /** Says where hand-overs stand, for the part of that name. */
  readonly handOvers?: ((objects: InventoryObjects) => Promise<readonly HandOverItem[]>) | undefined;
}

const OPERATOR_API = 'operator.openshift.io/v1';
const OPERANDS = [
  { operand: 'kube-apiserver', namespace: OPERAND_NAMESPACE, kind: 'KubeAPIServer', plural: 'kubeapiservers' },
  { operand: 'etcd', namespace: ETCD_NAMESPACE, kind: 'Etcd', plural: 'etcds' },
  {
    operand: 'kube-controller-manager',
    namespace: 'openshift-kube-controller-manager',
    kind: 'KubeControllerManager',
    plural: 'kubecontrollermanagers',
  },
  {
    operand: 'kube-scheduler',
    namespace: 'openshift-kube-scheduler',
    kind: 'KubeScheduler',
    plural: 'kubeschedulers',
  },
] as const;

/** Reads what the parts need, everything at the same time. */
export async function readObjects(source: ObjectSource, { parts, namespace }: ReadOptions): Promise<InventoryObjects> {
  const needs = (...any: InventoryPart[]) => any.some(part => parts.includes(part));
  const none = Promise.resolve([]);
  const [secrets, configMaps, nodes, pools, ...operands] = await Promise.all([
    needs('certificates', 'hand-overs') ? source.list(SECRETS, { namespace }) : none,
    needs('certificates', 'revisions', 'hand-overs') ? source.list(CONFIG_MAPS, { namespace }) : none,
    needs('nodes', 'hand-overs') ? source.list(NODES) : none,
    needs('pools') ? source.list(MACHINE_CONFIG_POOLS) : none,
    ...OPERANDS.map(async ({ operand, namespace: place, kind, plural }) => {
      const kinds = resource<StaticPodOperatorResource>(OPERATOR_API, kind, plural, false);
      const found = needs('nodes', 'revisions', 'hand-overs') ? await source.list(kinds) : [];
      return { operand, namespace: place, resource: found.find(({ metadata }) => metadata?.name === 'cluster') };
    }),
  ]);
  return { secrets, configMaps, nodes, pools, operands };
}

/** The objects as a model. */
export function inventoryOf(objects: InventoryObjects, now: Date): Inventory {
  const { secrets, configMaps, nodes, operands, pools } = objects;
  return {
    now: now.toISOString(),
    ...certificatesAndBundles(secrets, configMaps, { now, dayMs: rotationDayOf(configMaps) }),
    nodes: nodeItems(nodes, operands),
    revisions: revisionItems(configMaps, operands),
    pools: poolItems(pools),
  };
}

/**
 * Who signed what is seen across namespaces, so all of them are read, whichever is asked for; somebody who may see only that one gets what
 * can be told from it.
 */
export async function readInventory(source: ObjectSource, options: ReadOptions, now: Date): Promise<Inventory> {
  const { parts, namespace } = options;
  const read = async (selection: ReadOptions): Promise<Inventory> => {
    const objects = await readObjects(source, selection);
    const inventory = inventoryOf(objects, now);
    return options.handOvers === undefined ? inventory : { ...inventory, handOvers: await options.handOvers(objects) };
  };
  try {
    return await read({ parts });
  } catch (error) {
    const isForbidden = error instanceof KubeError && error.code === 403;
    if (!isForbidden || namespace === undefined) throw error;
    return read({ parts, namespace });
  }
}

/** How long a rotation day lasts on this cluster; an unreadable setting counts as none, as its operator says. */
export function rotationDayOf(configMaps: readonly ConfigMap[]): number {
  const configured = configMaps.find(
    ({ metadata }) => metadata?.namespace === CONFIG_NAMESPACE && metadata.name === SCALE_CONFIG_MAP,
  );
  try {
    return rotationDay(parseScale(configured));
  } catch {
    return rotationDay(0);
  }
}
