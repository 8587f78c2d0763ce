import type { DamagedObjectError } from './damaged.ts';

/** One version of one object on disk. */
export interface Version {
  readonly revision: number;
  readonly bucket: string;
  readonly path: string;
  readonly deleted: boolean;
  readonly at: number;
  readonly json: Uint8Array;
}

/** One version as the disk gives it back. */
export interface StoredVersion extends Version {
  readonly damage?: DamagedObjectError | undefined;
}

/** What a batch does to the disk, all of it or nothing. */
export interface Batch {
  readonly add: readonly Version[];
  /** Revisions nobody can ask for any more. */
  readonly drop: readonly number[];
  /** History up to and including this revision is gone. */
  readonly compacted: number;
}

/** Where versions are kept between runs. */
export interface Journal {
  /** Everything kept, in the order of revisions. */
  load(): { readonly versions: Iterable<StoredVersion>; readonly compacted: number };
  /** Returns once the batch is on the disk to stay. Throws and leaves everything as it was when that fails. */
  commit(batch: Batch): void;
  close(): void;
}
