import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { NODES } from '../kube/resource.ts';
import { MACHINE_CONFIG_POOLS, type MachineConfigPool } from '../machine-config-api/machine-config.ts';
import type { Cluster } from './cluster.ts';
import type { IsOff } from './etcd-invariants.ts';

/** Pools of which more machines are unavailable through an update than they allow; percentages are not looked at. */
export function brokenInPools({ api, nodes }: Pick<Cluster, 'api' | 'nodes'>, isOff: IsOff): string[] {
  return api.all<MachineConfigPool>(MACHINE_CONFIG_POOLS).flatMap(({ metadata, spec }) => {
    const { maxUnavailable = 1 } = spec ?? {};
    const limit = Number(maxUnavailable);
    if (Number.isNaN(limit)) return [];
    const inPool = nodes.filter(({ isControlPlane }) => (isControlPlane ? 'master' : 'worker') === metadata?.name);
    const away = inPool.filter(
      ({ name, isOn }) => !isOff(name) && (!isOn || api.stored<Node>(NODES, { name })?.spec?.unschedulable === true),
    );
    if (away.length <= limit) return [];
    return [`${away.map(({ name }) => name).join(' and ')} of pool ${metadata?.name} are away, and ${limit} may be`];
  });
}
