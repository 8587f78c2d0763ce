import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Checksum, checksumOf } from './checksum.ts';
import { DamagedObjectError } from './damaged.ts';
import type { Batch, Journal, StoredVersion, Version } from './journal.ts';

/** Thrown when another process (or another store of this one) has the file open. */
export class StoreLockedError extends Error {
  override readonly name = 'StoreLockedError';
  readonly code = 'STORE_LOCKED';

  constructor(file: string) {
    super(`${file} is in use by another process; a store can be open only once`);
  }
}

/**
 * Keeps versions in a SQLite file. A commit is one transaction in the write-ahead log, synced before it returns; a log
 * torn by a crash is cut back to its last whole transaction when the file is next opened. The file is locked for as long
 * as it is open; the kernel releases the lock when the process dies. Every version has a checksum: one whose content is
 * damaged is told as such, a file in which nobody can tell what belongs to what is refused.
 */
export function openSqliteJournal(file: string, checksum = checksumOf): Journal {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Secrets are stored in it: the file must exist with its final mode before SQLite writes to it; the log inherits it.
  closeSync(openSync(file, 'a', 0o600));
  chmodSync(file, 0o600);
  const database = new DatabaseSync(file);
  try {
    prepare(database, file);
    return new SqliteJournal(database, file, checksum);
  } catch (error) {
    database.close();
    throw isBusy(error) ? new StoreLockedError(file) : error;
  }
}

/** Written into the file's header; refuses files of other programs and of later layouts. */
const APPLICATION_ID = 0x726f7475;
const LAYOUT = 2;
/** Versions had no checksums. */
const LAYOUT_WITHOUT_CHECKSUMS = 1;

function prepare(database: DatabaseSync, file: string): void {
  database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
  // The lock is taken by the first access that writes.
  database.exec('BEGIN IMMEDIATE; COMMIT;');
  const check = database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string };
  if (check.quick_check !== 'ok') throw new Error(`${file} is damaged: ${check.quick_check}`);
  const { application_id: application } = database.prepare('PRAGMA application_id').get() as { application_id: number };
  const { user_version: layout } = database.prepare('PRAGMA user_version').get() as { user_version: number };
  const { tables } = database.prepare('SELECT count(*) AS tables FROM sqlite_schema').get() as { tables: number };
  if (tables > 0 && application !== APPLICATION_ID) throw new Error(`${file} is a database, but not one of ours`);
  if (layout > LAYOUT) throw new Error(`${file} has layout ${layout}; this program knows layouts up to ${LAYOUT}`);
  database.exec(`
    BEGIN;
    PRAGMA application_id = ${APPLICATION_ID};
    PRAGMA user_version = ${LAYOUT};
    CREATE TABLE IF NOT EXISTS version (
      revision INTEGER PRIMARY KEY,
      bucket   TEXT NOT NULL,
      path     TEXT NOT NULL,
      deleted  INTEGER NOT NULL,
      at       INTEGER NOT NULL,
      json     BLOB NOT NULL,
      head     INTEGER,
      body     INTEGER
    );
    CREATE TABLE IF NOT EXISTS compacted (revision INTEGER NOT NULL);
    INSERT INTO compacted SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM compacted);
  `);
  if (layout === LAYOUT_WITHOUT_CHECKSUMS) addChecksums(database);
  database.exec('COMMIT');
}

/** What was written without a checksum is taken as it is now. */
function addChecksums(database: DatabaseSync): void {
  database.exec('ALTER TABLE version ADD COLUMN head INTEGER; ALTER TABLE version ADD COLUMN body INTEGER;');
  const revisions = database.prepare('SELECT revision FROM version').all() as unknown as { revision: number }[];
  const read = database.prepare('SELECT * FROM version WHERE revision = ?');
  const write = database.prepare('UPDATE version SET head = ?, body = ? WHERE revision = ?');
  for (const { revision } of revisions) {
    const { head, body } = checksumOf(versionOf(read.get(revision) as unknown as Row));
    write.run(head, body, revision);
  }
}

type Row = Omit<Version, 'deleted'> & Checksum & { readonly deleted: number };

function versionOf({ revision, bucket, path, deleted, at, json }: Row): Version {
  return { revision, bucket, path, deleted: deleted === 1, at, json };
}

class SqliteJournal implements Journal {
  readonly #database: DatabaseSync;
  readonly #file: string;
  readonly #checksum: typeof checksumOf;
  readonly #add;
  readonly #drop;
  readonly #compact;
  #compacted: number;

  constructor(database: DatabaseSync, file: string, checksum: typeof checksumOf) {
    this.#database = database;
    this.#file = file;
    this.#checksum = checksum;
    this.#add = database.prepare('INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?)');
    this.#drop = database.prepare('DELETE FROM version WHERE revision = ?');
    this.#compact = database.prepare('UPDATE compacted SET revision = ?');
    const { revision } = database.prepare('SELECT revision FROM compacted').get() as { revision: number };
    this.#compacted = revision;
  }

  load(): { versions: Iterable<StoredVersion>; compacted: number } {
    return { versions: this.#versions(), compacted: this.#compacted };
  }

  *#versions(): Generator<StoredVersion> {
    const rows = this.#database.prepare('SELECT * FROM version ORDER BY revision').iterate();
    for (const row of rows as Iterable<unknown>) yield this.#checked(row as Row);
  }

  #checked(row: Row): StoredVersion {
    const version = versionOf(row);
    const { head, body } = this.#checksum(version);
    const { revision, bucket, path } = version;
    if (head !== row.head) {
      const what = `the checksum of revision ${revision} does not match`;
      throw new Error(`${this.#file} is damaged: ${what}, and it cannot be told which object it belongs to`);
    }
    if (body === row.body) return version;
    return { ...version, damage: new DamagedObjectError({ file: this.#file, bucket, path, revision }) };
  }

  commit({ add, drop, compacted }: Batch): void {
    this.#database.exec('BEGIN');
    try {
      for (const version of add) {
        const { revision, bucket, path, deleted, at, json } = version;
        const { head, body } = this.#checksum(version);
        this.#add.run(revision, bucket, path, deleted ? 1 : 0, at, json, head, body);
      }
      for (const revision of drop) this.#drop.run(revision);
      if (compacted !== this.#compacted) this.#compact.run(compacted);
      this.#database.exec('COMMIT');
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
    this.#compacted = compacted;
  }

  close(): void {
    if (!this.#database.isOpen) return;
    try {
      // Folds the log into the file, so that what lies on the disk is one file.
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // Not on a full disk, say. Nothing is lost: the log stays and is read when the file is next opened.
    } finally {
      this.#database.close();
    }
  }
}

const SQLITE_BUSY = 5;

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}
