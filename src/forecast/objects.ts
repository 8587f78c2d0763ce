import { type InventoryObjects, readObjects } from '../inventory/read.ts';
import type { ObjectSource } from '../inventory/source.ts';
import { INFRASTRUCTURES, type Infrastructure, NETWORKS, type Network } from '../kube-apiserver/resources.ts';
import { MACHINE_CONFIGS, type MachineConfig } from '../machine-config-api/machine-config.ts';

/** Everything a plan is made from. */
export interface PlanObjects extends InventoryObjects {
  readonly infrastructure: Infrastructure | undefined;
  readonly network: Network | undefined;
  readonly machineConfigs: readonly MachineConfig[];
}

export async function readPlanObjects(source: ObjectSource): Promise<PlanObjects> {
  const [objects, infrastructures, networks, machineConfigs] = await Promise.all([
    readObjects(source, { parts: ['certificates', 'nodes', 'revisions', 'pools'] }),
    source.list(INFRASTRUCTURES),
    source.list(NETWORKS),
    source.list(MACHINE_CONFIGS),
  ]);
  const isCluster = ({ metadata }: { metadata?: { name?: string } }) => metadata?.name === 'cluster';
  return {
    ...objects,
    infrastructure: infrastructures.find(isCluster),
    network: networks.find(isCluster),
    machineConfigs,
  };
}
