import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { tryLock } from '../staticpod/node/lock-file.ts';

/** Thrown when another process runs the cluster of a folder. */
export class FolderInUse extends Error {
  override readonly name = 'FolderInUse';

  constructor(dir: string) {
    super(`another process runs the cluster in ${dir}`);
  }
}

/** The cluster of a folder in the hands of this process. */
export interface Holder {
  /** The same at every start. Whoever has it knows that the last one who had it is dead: the kernel gives the lock to one at a time. */
  readonly identity: string;
  release(): void;
}

/** Takes a folder for this process alone, until it is released or the process ends, however it ends. */
export function holdFolder(dir: string): Holder {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const lock = tryLock(join(dir, 'holder.lock'));
  if (lock === undefined) throw new FolderInUse(dir);
  const path = join(dir, 'holder');
  if (!existsSync(path)) {
    writeFileSync(`${path}.tmp`, `${hostname()}_${randomUUID()}\n`, { mode: 0o600 });
    renameSync(`${path}.tmp`, path);
  }
  return { identity: readFileSync(path, 'utf8').trim(), release: () => lock.release() };
}
