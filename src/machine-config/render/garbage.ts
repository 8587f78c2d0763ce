import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { parseRfc3339 } from '../../kube/time.ts';
import type { MachineConfig, MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DESIRED_CONFIG } from '../../machine-config-api/names.ts';

/** Old rendered configs of a pool that stay although nothing points to them: to look at, and to go back to. */
export const KEPT_UNREFERENCED = 3;

/**
 * The rendered configs of a pool that nothing needs any more: no pool points to them and no node runs or awaits them. The
 * youngest few stay. 4.16 keeps them all for ever (spec 50, RN-19). A node whose annotations are not there yet may run any of
 * them, so while there is one nothing is garbage.
 */
export function unreferencedConfigs(
  pool: MachineConfigPool,
  configs: readonly MachineConfig[],
  pools: readonly MachineConfigPool[],
  nodes: readonly Node[],
): MachineConfig[] {
  const annotations = nodes.map(({ metadata }) => metadata?.annotations ?? {});
  if (annotations.some(found => !found[CURRENT_CONFIG])) return [];
  const referenced = new Set([
    ...pools.flatMap(({ spec, status }) => [spec?.configuration?.name, status?.configuration?.name]),
    ...annotations.flatMap(found => [found[CURRENT_CONFIG], found[DESIRED_CONFIG]]),
  ]);
  return configs
    .filter(({ metadata }) => isRenderedFor(pool, metadata?.name ?? '') && ownedBy(pool, { metadata: metadata ?? {} }))
    .filter(({ metadata }) => !referenced.has(metadata?.name))
    .sort((a, b) => createdMs(b) - createdMs(a))
    .slice(KEPT_UNREFERENCED);
}

function isRenderedFor(pool: MachineConfigPool, name: string): boolean {
  const prefix = `rendered-${pool.metadata?.name ?? ''}-`;
  return name.startsWith(prefix) && /^[0-9a-f]{32}$/.test(name.slice(prefix.length));
}

function ownedBy(pool: MachineConfigPool, { metadata }: MachineConfig): boolean {
  return (metadata?.ownerReferences ?? []).some(
    ({ controller, uid }) => controller === true && uid === pool.metadata?.uid,
  );
}

function createdMs({ metadata }: MachineConfig): number {
  const created = parseRfc3339(metadata?.creationTimestamp ?? '');
  return created === undefined ? 0 : Number(created.nanos / 1_000_000n);
}
