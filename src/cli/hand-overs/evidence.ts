import type { RotationUnit } from '../../certrotation/config.ts';
import type { EvidenceSources } from '../../hand-over/evidence.ts';
import { HAND_OVER_CONDITION } from '../../hand-over/report.ts';
import { isNamed } from '../../inventory/known-chains.ts';
import type { InventoryObjects } from '../../inventory/read.ts';
import type { ObjectSource } from '../../inventory/source.ts';
import { systemClock } from '../../kube/clock.ts';
import type { Kube } from '../../kube/port.ts';
import { kubeApiserverEvidence } from '../../kube-apiserver/rotation/evidence.ts';
import type { StaticPodOperatorResource } from '../../staticpod/operator.ts';
import type { TrustGraph } from '../../trust/graph.ts';

/** Where verifiers and presenters are found from here, over the objects that were read. */
export function sourcesFrom(
  objects: InventoryObjects,
  source: ObjectSource,
  units: readonly RotationUnit[],
  graph: TrustGraph,
): EvidenceSources {
  const { nodes, configMaps, secrets } = objects;
  const list: Kube['list'] = async (resource, { namespace, fieldSelector } = {}) => ({
    metadata: {},
    items: [...(await source.list(resource, { namespace, fieldSelector }))],
  });
  return kubeApiserverEvidence({
    kube: { list },
    clock: systemClock,
    units,
    graph: () => graph,
    nodes: () => nodes,
    nodeStatuses: () => operatorOf(objects)?.status?.nodeStatuses ?? [],
    configMap: ({ namespace = '', name }) => configMaps.find(found => isNamed(found, { namespace, name })),
    secret: ({ namespace = '', name }) => secrets.find(found => isNamed(found, { namespace, name })),
  });
}

/** The resource of the operator that hands over the signers of kube-apiserver. */
function operatorOf({ operands }: InventoryObjects): StaticPodOperatorResource | undefined {
  return operands.find(({ operand }) => operand === 'kube-apiserver')?.resource;
}

/** Its operator says that it hands over by receipts; otherwise it may go by the clock. */
export function isByReceipts(objects: InventoryObjects): boolean {
  return operatorOf(objects)?.status?.conditions?.some(({ type }) => type === HAND_OVER_CONDITION) ?? false;
}
