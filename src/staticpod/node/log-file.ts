import { appendFileSync, renameSync, rmSync, statSync } from 'node:fs';
import type { Clock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { isMissingFile } from './files.ts';

const LARGEST_BYTES = 5 * 1024 * 1024;
const LONGEST_KEPT_MS = days(28);

/** A log in a file that is put aside when it is full; two such files are kept, and none for more than 28 days (spec 30, 17.1). */
export function logFile(path: string, clock: Pick<Clock, 'now'>): { write(line: string): void } {
  const [first, second] = [`${path}.1`, `${path}.2`];
  removeExpired([first, second], clock);
  return {
    write(line) {
      appendFileSync(path, line);
      if (statSync(path).size <= LARGEST_BYTES) return;
      if (modifiedAt(first) !== undefined) renameSync(first, second);
      renameSync(path, first);
      removeExpired([second], clock);
    },
  };
}

function removeExpired(paths: readonly string[], clock: Pick<Clock, 'now'>): void {
  for (const path of paths) {
    const time = modifiedAt(path);
    if (time !== undefined && clock.now().getTime() - time.getTime() > LONGEST_KEPT_MS) rmSync(path, { force: true });
  }
}

function modifiedAt(path: string): Date | undefined {
  try {
    return statSync(path).mtime;
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
}
