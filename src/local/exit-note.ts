import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ProcessExit, type ProcessIdentity, startTimeOf } from './process.ts';

/**
 * Only a parent is told how a process ended. A program of ours whose node may be gone by then leaves a note beside its record, for
 * the node that comes after.
 */
export function leaveExitNote(terminationLog: string): void {
  const identity: ProcessIdentity = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' };
  process.once('exit', exitCode => {
    try {
      writeFileSync(notePath(dirname(terminationLog)), JSON.stringify({ ...identity, exitCode }), { mode: 0o600 });
    } catch {
      // The pod has been removed: nobody will ask.
    }
  });
}

/** How exactly this process ended; undefined: it left no note, because it was killed or is no program of ours. */
export function readExitNote(directory: string, { pid, startTime }: ProcessIdentity): ProcessExit | undefined {
  try {
    const note = JSON.parse(readFileSync(notePath(directory), 'utf8')) as ProcessIdentity & ProcessExit;
    return note.pid === pid && note.startTime === startTime ? { exitCode: note.exitCode } : undefined;
  } catch {
    return undefined;
  }
}

function notePath(directory: string): string {
  return join(directory, 'exit.json');
}
