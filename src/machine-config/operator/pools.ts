import type { LabelSelector } from 'kubernetes-types/meta/v1.d.ts';
import { type ApplyContext, applySecret } from '../../kube/apply.ts';
import { semanticallyEqual } from '../../kube/equality.ts';
import { isAlreadyExists, isNotFound } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import { mergeMetadata } from '../../kube/metadata.ts';
import { MACHINE_CONFIG_POOLS, type MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import {
  BUILT_IN_POOL_LABEL,
  MASTER_NODE_LABEL,
  MASTER_POOL,
  POOL_NAME_LABEL_PREFIX,
  REQUIRED_FOR_UPGRADE_LABEL,
  ROLE_LABEL,
  WORKER_NODE_LABEL,
  WORKER_POOL,
} from '../../machine-config-api/names.ts';
import { userDataSecret } from './pointer.ts';

/** The pools every cluster has (spec 50, 2.2). */
export const BUILT_IN_POOLS: readonly MachineConfigPool[] = [
  builtInPool(MASTER_POOL, MASTER_NODE_LABEL, { [REQUIRED_FOR_UPGRADE_LABEL]: '' }),
  builtInPool(WORKER_POOL, WORKER_NODE_LABEL, {}),
];

function builtInPool(name: string, nodeLabel: string, labels: Record<string, string>): MachineConfigPool {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    metadata: { name, labels: { ...labels, [BUILT_IN_POOL_LABEL]: '', [`${POOL_NAME_LABEL_PREFIX}${name}`]: '' } },
    spec: {
      machineConfigSelector: { matchLabels: { [ROLE_LABEL]: name } },
      nodeSelector: { matchLabels: { [nodeLabel]: '' } },
    },
  };
}

/** Creates the built-in pools and keeps their labels and selectors; everything else of them is left alone (spec 50, 3.11). */
export async function ensureBuiltInPools({ kube, signal }: Pick<ApplyContext, 'kube' | 'signal'>): Promise<void> {
  for (const required of BUILT_IN_POOLS) {
    const name = required.metadata?.name ?? '';
    const existing = await getIfPresent(kube, MACHINE_CONFIG_POOLS, { name }, { signal });
    if (existing === undefined) {
      await kube.create(MACHINE_CONFIG_POOLS, required, { signal }).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error;
      });
      continue;
    }
    const metadata = mergeMetadata(existing.metadata ?? {}, required.metadata ?? {});
    const selectors = {
      machineConfigSelector: required.spec?.machineConfigSelector,
      nodeSelector: required.spec?.nodeSelector,
    } as Record<string, LabelSelector>;
    const isSame = Object.entries(selectors).every(([field, selector]) =>
      semanticallyEqual(existing.spec?.[field as 'nodeSelector'], selector),
    );
    if (!metadata.changed && isSame) continue;
    await kube.update(
      MACHINE_CONFIG_POOLS,
      { ...existing, metadata: metadata.result, spec: { ...existing.spec, ...selectors } },
      { signal },
    );
  }
}

/** Keeps the Secret that new machines of each pool are started with (spec 50, PC-3). False where there is no machine API. */
export async function ensureUserData(
  context: ApplyContext,
  pools: readonly MachineConfigPool[],
  host: string,
  rootCa: Buffer,
): Promise<boolean> {
  for (const pool of pools) {
    try {
      await applySecret({ ...context, events: { event: () => {} } }, userDataSecret(pool, host, rootCa));
    } catch (error) {
      // Its namespace belongs to the machine API; a cluster without that has nobody to start machines.
      if (isNotFound(error)) return false;
      throw error;
    }
  }
  return true;
}
