import type { RotationUnit } from '../../certrotation/config.ts';
import { Evidence } from '../../hand-over/evidence.ts';
import type { Receipts } from '../../hand-over/receipt.ts';
import { systemClock } from '../../kube/clock.ts';
import type { Kube } from '../../kube/port.ts';
import { kubeApiserverEvidence } from '../../kube-apiserver/rotation/evidence.ts';
import type { StaticPodOperatorResource } from '../../staticpod/operator.ts';
import type { TrustGraph } from '../../trust/graph.ts';
import { isNamed } from '../inventory/known-chains.ts';
import type { InventoryObjects } from '../inventory/read.ts';
import type { ObjectSource } from '../inventory/source.ts';

/** Asks verifiers from here, over the objects that were read. */
export function evidenceFrom(
  objects: InventoryObjects,
  source: ObjectSource,
  units: readonly RotationUnit[],
  graph: TrustGraph,
): Receipts {
  const { nodes, configMaps } = objects;
  const list: Kube['list'] = async (resource, { namespace } = {}) => ({
    metadata: {},
    items: [...(await source.list(resource, { namespace }))],
  });
  return new Evidence(
    kubeApiserverEvidence({
      kube: { list },
      clock: systemClock,
      units,
      graph: () => graph,
      nodes: () => nodes,
      nodeStatuses: () => operatorOf(objects)?.status?.nodeStatuses ?? [],
      configMap: ({ namespace = '', name }) => configMaps.find(found => isNamed(found, { namespace, name })),
    }),
  );
}

/** The resource of the operator that hands over the signers of kube-apiserver. */
export function operatorOf({ operands }: InventoryObjects): StaticPodOperatorResource | undefined {
  return operands.find(({ operand }) => operand === 'kube-apiserver')?.resource;
}
