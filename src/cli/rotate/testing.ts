import { minutes } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { type KubeObject, NODES, type ObjectKey, type Resource } from '../../kube/resource.ts';
import { ModelCluster } from '../../kubeadm/operator/model-cluster.ts';
import { readScene, type Scene } from './scene.ts';

/** What the command reads of a cluster in memory. */
export async function sceneOf(cluster: ModelCluster): Promise<Scene> {
  // The model has its nodes at hand; the command reads them from the API.
  for (const node of cluster.nodes.values()) {
    await cluster.kube.delete(NODES, { name: node.name }).catch(() => {});
    await cluster.kube.create(NODES, node.asNode());
  }
  return readScene(cluster.kube, cluster.now());
}

export async function adopted(options: Parameters<typeof ModelCluster.make>[0] = {}): Promise<ModelCluster> {
  const cluster = await ModelCluster.make(options);
  await cluster.settle(minutes(10));
  return cluster;
}

/** The API of a model with merge patches of notes and data, as the command writes them. */
export function patching({ kube }: ModelCluster): Kube {
  const patch = async (resource: Resource, key: ObjectKey, { body }: { readonly body: unknown }) => {
    type Parts = KubeObject & { data?: Record<string, string | null> };
    const found: Parts | undefined = await getIfPresent(kube, resource, key);
    if (found === undefined) throw new Error(`there is no ${key.name}`);
    const { metadata, data } = body as {
      metadata?: { annotations?: Record<string, string | null> };
      data?: Parts['data'];
    };
    const merged = <T>(before: Record<string, T> | undefined, changes: Record<string, T | null> | undefined) =>
      Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null));
    const annotations = merged(found.metadata?.annotations, metadata?.annotations) as Record<string, string>;
    return kube.update(resource, {
      ...found,
      metadata: { ...found.metadata, annotations },
      data: merged(found.data, data),
    } as KubeObject);
  };
  return new Proxy<Kube>(kube, {
    get: (target, name) => {
      if (name === 'patch') return patch;
      const found: unknown = Reflect.get(target, name);
      return typeof found === 'function' ? found.bind(target) : found;
    },
  });
}
