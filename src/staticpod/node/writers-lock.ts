import { join } from 'node:path';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { Deadline } from '../../kube/deadline.ts';
import { formatGoDuration, minutes } from '../../kube/duration.ts';
import type { Files } from './files.ts';
import { acquireLock, type Lock } from './lock-file.ts';

/** Takes the lock of a file and waits until it is free or `signal` aborts. */
export type TakeLock = (path: string, signal: AbortSignal) => Promise<Lock>;

/** In the folder of certificates, because that is what installer and syncer of a node have in common. */
const LOCK_FILE = '.writers.lock';
/** Whoever has the lock asks the API for what it writes; with an API that answers that takes moments. */
const LONGEST_WAIT_MS = minutes(1);

/**
 * Reads objects and writes them below `directory` while no other process of the node does. What was read within is as new as the
 * API; what was read before may be older than what the other one has written meanwhile, and a server that has loaded a CA, and has
 * been counted on for it, would forget it (spec 90, HO-3).
 */
export async function asOnlyWriter<T>(
  directory: string,
  { files, lock, clock = systemClock, signal }: WriterDeps,
  work: () => Promise<T>,
): Promise<T> {
  await files.makeDirectory(directory);
  const path = join(directory, LOCK_FILE);
  const held = () => new Error(`${path} is still held by another writer after ${formatGoDuration(LONGEST_WAIT_MS)}`);
  const limit = new Deadline(clock, LONGEST_WAIT_MS, signal, held);
  const taken = await lock(path, limit.signal).finally(() => limit.end());
  try {
    return await work();
  } finally {
    taken.release();
  }
}

interface WriterDeps {
  readonly files: Files;
  readonly lock: TakeLock;
  readonly clock?: Clock | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The lock of the kernel, on the clock of the machine. */
export const systemLock: TakeLock = (path, signal) => acquireLock(path, systemClock, signal);
