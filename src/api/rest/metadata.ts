import type { ObjectMeta } from 'kubernetes-types/meta/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { canonicalJson } from '../schema/list-rules.ts';
import { badRequest } from '../status.ts';
import type { Call, Core } from './core.ts';

/** The finalizers that stand for a way of deleting (foreground, orphan). */
export const FOREGROUND_FINALIZER = 'foregroundDeletion';
export const ORPHAN_FINALIZER = 'orphan';

/** A namespace in the object must be the one of the request. */
export function checkNamespace(call: Call, object: KubeObject): void {
  const namespace = object.metadata?.namespace ?? '';
  if (call.kind.namespaced && namespace !== '' && namespace !== call.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
}

/** The object with the metadata only the server sets. Its name must be settled before. */
export function withNewMetadata(core: Core, call: Call, object: KubeObject, name: string): KubeObject {
  const {
    deletionTimestamp: _,
    deletionGracePeriodSeconds: __,
    selfLink: ___,
    generation: ____,
    namespace: _____,
    ...given
  } = object.metadata ?? {};
  const metadata: ObjectMeta = {
    ...given,
    name,
    ...(call.kind.namespaced ? { namespace: call.namespace } : {}),
    uid: core.random.uid(),
    creationTimestamp: formatRfc3339(core.clock.now()),
    ...(call.kind.rules.generation === true ? { generation: 1 } : {}),
  };
  return { ...object, metadata };
}

/** The updated object with everything in its metadata that an update cannot change. */
export function withKeptMetadata(call: Call, updated: KubeObject, old: KubeObject): KubeObject {
  const before = old.metadata ?? {};
  const { selfLink: _, generation: __, ...given } = updated.metadata ?? {};
  const metadata: ObjectMeta = {
    ...given,
    ...(call.kind.namespaced ? { namespace: call.namespace } : {}),
    uid: given.uid || (before.uid ?? ''),
    resourceVersion: before.resourceVersion ?? '',
    creationTimestamp: before.creationTimestamp ?? '',
    ...(before.generation === undefined ? {} : { generation: before.generation }),
    ...(before.deletionTimestamp === undefined ? {} : { deletionTimestamp: before.deletionTimestamp }),
    ...(before.deletionGracePeriodSeconds === undefined || given.deletionGracePeriodSeconds !== undefined
      ? {}
      : { deletionGracePeriodSeconds: before.deletionGracePeriodSeconds }),
  };
  if (!call.kind.namespaced) delete metadata.namespace;
  return { ...updated, metadata };
}

/** The object without owner references that are given twice. */
export function withoutRepeatedOwners(object: KubeObject, warn: (text: string) => void): KubeObject {
  const owners = object.metadata?.ownerReferences;
  if (owners === undefined) return object;
  const distinct = [...new Map(owners.map(owner => [canonicalJson(owner), owner])).values()];
  if (distinct.length === owners.length) return object;
  warn(
    '.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests',
  );
  return { ...object, metadata: { ...object.metadata, ownerReferences: distinct } };
}
