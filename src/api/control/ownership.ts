import type { KubeObject } from '../../kube/resource.ts';
import type { Change, Entry } from '../store/entry.ts';

/** Who belongs to whom: every object by its UID, and the dependents each UID has. */
export class Ownership {
  readonly #places = new Map<string, { readonly bucket: string; readonly path: string }>();
  readonly #dependents = new Map<string, Set<string>>();

  place(uid: string): { readonly bucket: string; readonly path: string } | undefined {
    return this.#places.get(uid);
  }

  all(): Iterable<string> {
    return this.#places.keys();
  }

  /** UIDs of the objects that name this one as an owner. */
  dependents(uid: string): string[] {
    return [...(this.#dependents.get(uid) ?? [])];
  }

  /** Takes a change in, and names the objects it may concern. */
  observe({ type, entry, previous }: Change): Set<string> {
    const concerned = new Set<string>();
    const uid = uidOf(entry.object);
    const before = previous === undefined ? [] : ownerUids(previous.object);
    const after = type === 'deleted' ? [] : ownerUids(entry.object);
    for (const owner of before) if (!after.includes(owner)) this.#unlink(owner, uid);
    for (const owner of after) this.#link(owner, uid);
    for (const owner of before) concerned.add(owner);
    if (type === 'deleted') {
      this.#places.delete(uid);
      for (const dependent of this.dependents(uid)) concerned.add(dependent);
    } else {
      this.add(entry);
      concerned.add(uid);
    }
    return concerned;
  }

  add({ bucket, path, object }: Entry): void {
    const uid = uidOf(object);
    this.#places.set(uid, { bucket, path });
    for (const owner of ownerUids(object)) this.#link(owner, uid);
  }

  #link(owner: string, dependent: string): void {
    const dependents = this.#dependents.get(owner) ?? new Set();
    this.#dependents.set(owner, dependents.add(dependent));
  }

  #unlink(owner: string, dependent: string): void {
    const dependents = this.#dependents.get(owner);
    dependents?.delete(dependent);
    if (dependents?.size === 0) this.#dependents.delete(owner);
  }
}

function uidOf(object: KubeObject): string {
  return object.metadata?.uid ?? '';
}

function ownerUids(object: KubeObject): string[] {
  return (object.metadata?.ownerReferences ?? []).map(({ uid }) => uid);
}
