import { DatabaseSync } from 'node:sqlite';
import { type Clock, sleep } from '../../kube/clock.ts';

export const LOCK_POLL_MS = 300;
const SQLITE_BUSY = 5;

/** A lock that is held. */
export interface Lock {
  release(): void;
}

/**
 * Takes an exclusive lock on a file and waits until it is free (spec 30, 10.3.10). The kernel gives it up when the process dies,
 * however it dies. Node cannot lock files itself; SQLite can, and an empty database is an empty file.
 */
export async function acquireLock(path: string, clock: Clock, signal?: AbortSignal): Promise<Lock> {
  for (;;) {
    signal?.throwIfAborted();
    const lock = tryLock(path);
    if (lock !== undefined) return lock;
    await sleep(clock, LOCK_POLL_MS, signal);
  }
}

/** The same without waiting; undefined when somebody else holds it. */
export function tryLock(path: string): Lock | undefined {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // Nothing is ever written; a journal beside the lock would only be litter.
    database.exec('PRAGMA journal_mode = MEMORY');
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined;
    throw new Error(`cannot lock ${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  return {
    release: () => {
      if (database.isOpen) database.close();
    },
  };
}
