import type { KubeObject } from '../../kube/resource.ts';
import type { DamagedObjectError } from './damaged.ts';

/**
 * One version of one object, as it is stored. The JSON text is kept because lists and watches send it as it is; the
 * object is parsed when somebody looks at it, and kept for the next one as long as memory allows. Both are shared by all
 * readers and never changed. An entry that the disk gave back damaged keeps its place, and throws when it is looked at.
 */
export class Entry {
  readonly bucket: string;
  readonly path: string;
  readonly revision: number;
  readonly damage: DamagedObjectError | undefined;
  readonly #json: Buffer;
  #object: WeakRef<KubeObject> | undefined;

  constructor(bucket: string, path: string, revision: number, json: Buffer, damage?: DamagedObjectError) {
    this.bucket = bucket;
    this.path = path;
    this.revision = revision;
    this.#json = json;
    this.damage = damage;
  }

  get bytes(): number {
    return this.#json.length;
  }

  get json(): Buffer {
    this.assertWhole();
    return this.#json;
  }

  /** Shared: read only. Use `copy` for an object to change. */
  get object(): KubeObject {
    const known = this.#object?.deref();
    if (known !== undefined) return known;
    const object = this.copy();
    this.#object = new WeakRef(object);
    return object;
  }

  copy(): KubeObject {
    return JSON.parse(this.json.toString('utf8')) as KubeObject;
  }

  assertWhole(): void {
    if (this.damage !== undefined) throw this.damage;
  }
}

/** For those who may not fail because of one object, and do no harm when they do not see it. */
export function* whole(entries: Iterable<Entry>): Generator<Entry> {
  for (const entry of entries) if (entry.damage === undefined) yield entry;
}

/** What happened to one object at one revision. */
export interface Change {
  readonly type: 'created' | 'updated' | 'deleted';
  /** The object after the change; for a deletion its last state, carrying the revision of the deletion. */
  readonly entry: Entry;
  readonly previous: Entry | undefined;
  /** When it was committed, in milliseconds since the epoch. */
  readonly at: number;
}
