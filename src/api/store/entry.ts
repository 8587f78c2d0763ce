import type { KubeObject } from '../../kube/resource.ts';

/**
 * One version of one object, as it is stored. The JSON text is kept because lists and watches send it as it is; the
 * object is parsed when somebody looks at it, and kept for the next one as long as memory allows. Both are shared by all
 * readers and never changed.
 */
export class Entry {
  readonly bucket: string;
  readonly path: string;
  readonly revision: number;
  readonly json: Buffer;
  #object: WeakRef<KubeObject> | undefined;

  constructor(bucket: string, path: string, revision: number, json: Buffer) {
    this.bucket = bucket;
    this.path = path;
    this.revision = revision;
    this.json = json;
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
