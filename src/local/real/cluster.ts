import { join, resolve } from 'node:path';
import { type LocalCluster, type LocalClusterOptions, startLocalCluster } from '../cluster.ts';
import { PARTS } from '../parts.ts';
import { type BootstrapOptions, bootstrap } from './bootstrap.ts';
import { foundingKeys } from './founding-keys.ts';
import { managersPart } from './managers-part.ts';
import { realApi } from './real-api.ts';

const CONTROL_PLANE = 3;

export type RealClusterOptions = BootstrapOptions & Pick<LocalClusterOptions, 'parts' | 'moreParts'>;

/** Starts a cluster on this machine that serves itself; where there is none yet it is founded first. */
export async function startRealCluster(options: RealClusterOptions): Promise<LocalCluster> {
  const { controlPlane = CONTROL_PLANE, apiPort = 0, parts = PARTS } = options;
  await bootstrap({ ...options, controlPlane });
  const dir = resolve(options.dir);
  const keys = await foundingKeys(join(dir, 'pki'), options.keyAlgorithm);
  return startLocalCluster({
    ...options,
    controlPlane,
    parts: [...parts, managersPart(keys.tokensFile)],
    api: (directory, log) => realApi({ dir: directory, controlPlane, port: apiPort, keys, log }),
  });
}
