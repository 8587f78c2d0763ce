import { readdirSync, readFileSync } from 'node:fs';
import { load as parseYaml } from 'js-yaml';
import { VirtualClock } from '../kube/clock.ts';
import type { Kube } from '../kube/port.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, type KubeObject, NAMESPACES } from '../kube/resource.ts';
import { ensureCluster } from './ensure-cluster.ts';
import { ETCD_NAMESPACE } from './namespaces.ts';
import { CLUSTER, INFRASTRUCTURES, NETWORKS } from './resources.ts';

/** What the tests of this room share: one moment and one small cluster. */
export const NOW = new Date('2026-01-01T00:00:00Z');

export const EXTERNAL_URL = 'https://api.c.example.com:6443';
export const INTERNAL_URL = 'https://api-int.c.example.com:6443';

/** An API in process, as `startEngine` gives it. */
export interface TestApi {
  readonly kube: Kube;
  idle(): Promise<void>;
}

export function testClock(): VirtualClock {
  return new VirtualClock(NOW);
}

/** The kinds we ship, read from the manifests. */
export function definitions(): KubeObject[] {
  const directory = new URL('../../manifests/crds/', import.meta.url);
  const ours = readdirSync(directory).filter(name =>
    /^(config|operator|controlplane\.operator)\.openshift\.io_/.test(name),
  );
  return ours.sort().map(name => parseYaml(readFileSync(new URL(name, directory), 'utf8')) as KubeObject);
}

/** Makes the API know our kinds and puts the objects there that every cluster has. */
export async function prepareCluster({ kube, idle }: TestApi): Promise<void> {
  for (const definition of definitions()) await kube.create(CUSTOM_RESOURCE_DEFINITIONS, definition);
  await idle();
  await kube.create(NAMESPACES, { metadata: { name: ETCD_NAMESPACE } });
  await ensureCluster(kube);
  const infrastructure = await kube.create(INFRASTRUCTURES, { metadata: CLUSTER, spec: {} });
  await kube.updateStatus(INFRASTRUCTURES, {
    ...infrastructure,
    status: {
      apiServerURL: EXTERNAL_URL,
      apiServerInternalURI: INTERNAL_URL,
      controlPlaneTopology: 'HighlyAvailable',
    },
  });
  const network = await kube.create(NETWORKS, { metadata: CLUSTER, spec: {} });
  await kube.updateStatus(NETWORKS, {
    ...network,
    status: { serviceNetwork: ['172.30.0.0/16'], clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }] },
  });
}

/** Lets the clock run in steps of a second until `look` finds something. */
export async function eventually<T>(
  clock: VirtualClock,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  mostSeconds = 600,
): Promise<T> {
  for (let second = 0; second < mostSeconds; second++) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    await clock.advance(1000);
  }
  throw new Error(`waited for ${mostSeconds} seconds in vain`);
}
