import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../kube/error.ts';
import { nameForPeople, reportCreate, reportUpdate } from '../kube/events.ts';
import type { Resource } from '../kube/resource.ts';
import type { Rotation } from './ensure.ts';

/** Creates or updates with the resourceVersion the decision was made on (W-1); undefined when that was lost (W-2, W-3). */
export async function store<T extends Secret | ConfigMap>(
  resource: Resource<T>,
  before: T | undefined,
  wanted: T,
  rotation: Rotation,
): Promise<T | undefined> {
  if (before === wanted) return before;
  return write(resource, wanted, before === undefined ? 'create' : 'update', rotation);
}

/** One create or update, told to cache, log and events; undefined when another writer was first. */
export async function write<T extends Secret | ConfigMap>(
  resource: Resource<T>,
  wanted: T,
  verb: 'create' | 'update',
  { kube, objects, events, log }: Rotation,
  reportFailure: (error: unknown) => boolean = () => true,
): Promise<T | undefined> {
  const report = verb === 'create' ? reportCreate : reportUpdate;
  let written: T;
  try {
    written = await kube[verb](resource, wanted);
  } catch (error) {
    if (isConflict(error) || isAlreadyExists(error) || (verb === 'update' && isNotFound(error))) return undefined;
    if (reportFailure(error)) report(events, resource, wanted, error);
    throw error;
  }
  objects.wrote(resource, written);
  log?.info({ object: nameForPeople(resource, written) }, `${verb}d`);
  report(events, resource, written);
  return written;
}
