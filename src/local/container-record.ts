import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ContainerStateTerminated } from 'kubernetes-types/core/v1.d.ts';
import type { ProcessIdentity } from './process.ts';

/** What a node remembers of a container over its own death. */
export interface ContainerRecord {
  readonly restartCount: number;
  /** Restarts that count for the pause before the next one. */
  readonly restartsInARow: number;
  /** The run under way. */
  readonly running?: (ProcessIdentity & { readonly startedAt: string }) | undefined;
  /** The run before, or the last one. */
  readonly terminated?: ContainerStateTerminated | undefined;
}

export const NEW_CONTAINER: ContainerRecord = { restartCount: 0, restartsInARow: 0 };

/** Undefined when there is none; one that cannot be read counts as none, and its process is found by its marker. */
export function readRecord(path: string): ContainerRecord | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ContainerRecord;
  } catch {
    return undefined;
  }
}

/** Replaces the record as a whole. It need not survive a loss of power: no process does either. */
export function writeRecord(path: string, record: ContainerRecord): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.tmp`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}
