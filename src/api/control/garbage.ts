import type { ObjectMeta, OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import { type Fields, type Kind, pathOf } from '../kinds/kind.ts';
import { DEFINITION_BUCKET } from '../kinds/rules/definition.ts';
import { amend } from '../rest/amend.ts';
import type { Core } from '../rest/core.ts';
import { remove } from '../rest/delete.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '../rest/metadata.ts';
import { type Entry, whole } from '../store/entry.ts';
import { EVERYTHING } from '../store/store.ts';
import { type Controller, internalCall, splitPath } from './controller.ts';
import { Ownership } from './ownership.ts';
import { Worker } from './worker.ts';

/**
 * The garbage collector. An object goes when all its owners are gone. A deletion in the foreground waits for the
 * dependents that ask for it; one that orphans takes the reference off the dependents first.
 */
export function collectGarbage(core: Core, onError: (key: string, error: unknown) => void): Controller {
  const ownership = new Ownership();
  const worker = new Worker(core.clock, uid => look(uid), onError);
  const lookAt = (uids: Iterable<string>) => {
    for (const uid of uids) if (isWorthALook(uid)) worker.add(uid);
  };
  const stop = core.store.watch(EVERYTHING, core.store.revision, change => {
    lookAt(ownership.observe(change));
    // An owner of a kind that was unknown may be known now.
    if (change.entry.bucket === DEFINITION_BUCKET) lookAt(ownership.all());
  });
  for (const bucket of core.store.buckets()) for (const entry of whole(core.store.list(bucket))) ownership.add(entry);
  lookAt(ownership.all());
  return {
    idle: () => worker.idle(),
    close: () => {
      stop();
      return worker.close();
    },
  };

  function find(uid: string): { kind: Kind; entry: Entry } | undefined {
    const place = ownership.place(uid);
    const kind = place === undefined ? undefined : core.registry.ofBucket(place.bucket);
    const entry = place === undefined ? undefined : core.store.newest(place.bucket, place.path);
    if (kind === undefined || entry?.object.metadata?.uid !== uid) return undefined;
    return { kind, entry };
  }

  function isWorthALook(uid: string): boolean {
    const place = ownership.place(uid);
    const metadata = place === undefined ? undefined : core.store.get(place.bucket, place.path)?.object.metadata;
    if (metadata === undefined) return false;
    return (metadata.ownerReferences?.length ?? 0) > 0 || wayOfDeletion(metadata) !== undefined;
  }

  async function look(uid: string): Promise<undefined> {
    const found = find(uid);
    if (found === undefined) return;
    const { kind, entry } = found;
    const metadata = entry.object.metadata ?? {};
    const way = wayOfDeletion(metadata);
    if (way === 'Orphan') await orphan(kind, entry, uid);
    else if (way === 'Foreground') await deleteDependents(kind, entry, uid);
    else if (metadata.deletionTimestamp === undefined) await collect(kind, entry, uid, metadata);
  }

  async function collect(kind: Kind, entry: Entry, uid: string, metadata: ObjectMeta): Promise<void> {
    const owners = metadata.ownerReferences ?? [];
    const states = owners.map(owner => ownerState(kind, metadata, owner));
    if (owners.length === 0 || states.includes('unknown')) return;
    if (states.includes('present')) {
      const gone = owners.filter((_, index) => states[index] !== 'present').map(owner => owner.uid);
      if (gone.length > 0) await amend(core, kind, entry.path, object => withoutOwners(object, gone));
      return;
    }
    const nested = states.includes('waiting') && ownership.dependents(uid).length > 0;
    const standing = metadata.finalizers?.some(name => name === ORPHAN_FINALIZER || name === FOREGROUND_FINALIZER);
    const propagation = nested ? 'Foreground' : standing === true ? undefined : 'Background';
    const { namespace, name } = splitPath(kind, entry.path);
    const call = internalCall(kind, namespace, name, 'generic-garbage-collector');
    await remove(core, call, { dryRun: false, uid, propagation });
  }

  function ownerState(
    kind: Kind,
    metadata: ObjectMeta,
    owner: OwnerReference,
  ): 'present' | 'waiting' | 'gone' | 'unknown' {
    const slash = owner.apiVersion.indexOf('/');
    const ownerKind = core.registry.findKind(slash < 0 ? '' : owner.apiVersion.slice(0, slash), owner.kind);
    // An object without a namespace cannot belong to one that has a namespace: nobody can say which one is meant.
    if (ownerKind === undefined || (ownerKind.namespaced && !kind.namespaced)) return 'unknown';
    const namespace = ownerKind.namespaced ? (metadata.namespace ?? '') : '';
    const found = core.store.newest(ownerKind.bucket, pathOf(namespace, owner.name))?.object.metadata;
    if (found?.uid !== owner.uid) return 'gone';
    return wayOfDeletion(found) === 'Foreground' ? 'waiting' : 'present';
  }

  async function deleteDependents(kind: Kind, entry: Entry, uid: string): Promise<void> {
    const dependents = ownership.dependents(uid).flatMap(dependent => find(dependent) ?? []);
    for (const { entry: dependent } of dependents) {
      const metadata = dependent.object.metadata ?? {};
      if (metadata.deletionTimestamp === undefined) worker.add(metadata.uid ?? '');
    }
    const blocking = dependents.some(({ entry: dependent }) =>
      dependent.object.metadata?.ownerReferences?.some(owner => owner.uid === uid && owner.blockOwnerDeletion === true),
    );
    if (!blocking) await amend(core, kind, entry.path, object => withoutFinalizer(object, FOREGROUND_FINALIZER));
  }

  async function orphan(kind: Kind, entry: Entry, uid: string): Promise<void> {
    for (const dependent of ownership.dependents(uid)) {
      const found = find(dependent);
      if (found !== undefined) await amend(core, found.kind, found.entry.path, object => withoutOwners(object, [uid]));
    }
    await amend(core, kind, entry.path, object => withoutFinalizer(object, ORPHAN_FINALIZER));
  }
}

function wayOfDeletion({ deletionTimestamp, finalizers = [] }: ObjectMeta): 'Orphan' | 'Foreground' | undefined {
  if (deletionTimestamp === undefined) return undefined;
  if (finalizers.includes(ORPHAN_FINALIZER)) return 'Orphan';
  return finalizers.includes(FOREGROUND_FINALIZER) ? 'Foreground' : undefined;
}

function withoutOwners(object: Fields, uids: readonly string[]): Fields {
  const { ownerReferences = [], ...rest } = object.metadata ?? {};
  const left = ownerReferences.filter(owner => !uids.includes(owner.uid));
  return { ...object, metadata: left.length === 0 ? rest : { ...rest, ownerReferences: left } };
}

export function withoutFinalizer(object: Fields, finalizer: string): Fields {
  const { finalizers = [], ...rest } = object.metadata ?? {};
  const left = finalizers.filter(name => name !== finalizer);
  return { ...object, metadata: left.length === 0 ? rest : { ...rest, finalizers: left } };
}
