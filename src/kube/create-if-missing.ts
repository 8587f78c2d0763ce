import { isAlreadyExists } from './error.ts';
import { getIfPresent } from './get.ts';
import type { Kube } from './port.ts';
import { type KubeObject, keyOf, type Resource } from './resource.ts';

/** Makes an object where there is none; what is there stays as it is. */
export async function createIfMissing<T extends KubeObject>(
  kube: Kube,
  resource: Resource<T>,
  object: T,
  signal?: AbortSignal,
): Promise<void> {
  if ((await getIfPresent(kube, resource, keyOf(object), { signal })) !== undefined) return;
  try {
    await kube.create(resource, object, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
