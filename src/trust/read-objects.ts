import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import { objectsOfCluster, type ReadArtefact } from './artefact.ts';

/** Objects of the API, each read once. The gathered certificates of etcd are those of the node that shows them. */
export function readFrom(kube: Kube): ReadArtefact {
  const objects = new Map<string, Promise<{ data?: Record<string, string> } | undefined>>();
  return objectsOfCluster(({ kind, namespace, name }) => {
    const id = `${kind}/${namespace}/${name}`;
    let found = objects.get(id);
    if (found === undefined) {
      const key = { namespace, name };
      found = kind === 'Secret' ? getIfPresent(kube, SECRETS, key) : getIfPresent(kube, CONFIG_MAPS, key);
      objects.set(id, found);
    }
    return found;
  });
}
