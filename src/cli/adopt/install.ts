import { isNotFound } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, keyOf, type Resource } from '../../kube/resource.ts';
import { type InstalledObject, objectsOf, objectsToRemove } from '../../kubeadm/adopt/objects.ts';
import { type AdoptionPlan, recordOf } from './plan.ts';

/** Whose fields they are; what others set beside them stays. */
export const FIELD_MANAGER = 'rotunda-adopt';

export interface InstallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Told of every object that was not there yet, or was different. */
  readonly onChange: (object: KubeObject, what: 'created' | 'changed' | 'removed') => void;
}

/** Brings the objects of an adoption into the cluster. Cut off at any moment, the next run goes on where this one ended. */
export async function install(
  kube: Kube,
  { installation, settings }: AdoptionPlan,
  options: InstallOptions,
): Promise<void> {
  const { signal, onChange } = options;
  const objects = objectsOf(installation);
  const isFirst = ({ part }: InstalledObject) => part === 'namespaces';
  for (const { resource, object } of objects.filter(isFirst)) await applyTo(kube, resource, object, options);
  // Before anybody who reads it is there.
  await applyTo(kube, CONFIG_MAPS, recordOf(settings), options);
  for (const { resource, object } of objects.filter(one => !isFirst(one)))
    await applyTo(kube, resource, object, options);
  for (const { resource, object } of objectsToRemove(installation)) {
    if (await removeFrom(kube, resource, object, signal)) onChange(object, 'removed');
  }
}

async function applyTo<T extends KubeObject>(
  kube: Kube,
  resource: Resource<T>,
  object: T,
  { signal, onChange }: InstallOptions,
): Promise<void> {
  signal?.throwIfAborted();
  const key = keyOf(object);
  const before = await getIfPresent(kube, resource, key, { signal });
  const after = await kube.patch(
    resource,
    key,
    { type: 'apply', body: object },
    { fieldManager: FIELD_MANAGER, force: true, signal },
  );
  if (before === undefined) onChange(object, 'created');
  else if (versionOf(before) !== versionOf(after)) onChange(object, 'changed');
}

/** A status that others write meanwhile is no change of ours; kinds that have one count their generations. */
function versionOf({ metadata }: KubeObject): string {
  return String(metadata?.generation ?? metadata?.resourceVersion);
}

/** True when it was there. */
export async function removeFrom(
  kube: Kube,
  resource: Resource,
  object: KubeObject,
  signal?: AbortSignal,
): Promise<boolean> {
  signal?.throwIfAborted();
  try {
    await kube.delete(resource, keyOf(object), { signal, propagationPolicy: 'Background' });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
