import { isNotFound } from './error.ts';
import type { CallOptions, Kube } from './port.ts';
import type { KubeObject, ObjectKey, Resource } from './resource.ts';

/** Reads an object; undefined when there is none. Any other failure is thrown and never looks like "missing" (spec 30, T04). */
export async function getIfPresent<T extends KubeObject>(
  kube: Pick<Kube, 'get'>,
  resource: Resource<T>,
  key: ObjectKey,
  options: CallOptions = {},
): Promise<T | undefined> {
  try {
    return await kube.get(resource, key, options);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
