/**
 * Loaded before a program of ours on a local node: ends the program, and the others of its pod, when its node has been dead for a while. A node that is
 * started again in time finds its processes and goes on with them; one that never comes back leaves nothing running.
 */
import { readFileSync } from 'node:fs';
import { leaveExitNote } from './exit-note.ts';
import { findMarked, isRunning, MARKER, type ProcessIdentity } from './process.ts';

const CHECK_MS = 2000;
const LONGEST_ALONE_MS = 60_000;
/** A program that does not end when asked to has this long. */
const LAST_WORDS_MS = 10_000;

const path = process.env.ROTUNDA_SUPERVISOR;
const terminationLog = process.env.ROTUNDA_TERMINATION_LOG;
if (terminationLog !== undefined) leaveExitNote(terminationLog);
if (path !== undefined) guard(path, Number(process.env.ROTUNDA_ORPHAN_MS || LONGEST_ALONE_MS));

function guard(supervisorPath: string, longestAloneMs: number): void {
  let aloneSince: number | undefined;
  const checkMs = Math.min(CHECK_MS, longestAloneMs);
  setInterval(() => {
    if (hasSupervisor(supervisorPath)) {
      aloneSince = undefined;
      return;
    }
    aloneSince ??= performance.now();
    if (performance.now() - aloneSince < longestAloneMs) return;
    endOthers();
    process.kill(process.pid, 'SIGTERM');
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_WORDS_MS).unref();
    aloneSince = Number.POSITIVE_INFINITY;
  }, checkMs).unref();
}

/** Programs that are not ours have no such guard: whoever shares a pod with them ends them too. */
function endOthers(): void {
  const mark = process.env[MARKER];
  if (mark === undefined) return;
  for (const { pid } of findMarked(mark.slice(0, mark.lastIndexOf('/') + 1))) {
    try {
      process.kill(pid, 'SIGTERM');
    } catch {
      // Gone already.
    }
  }
}

function hasSupervisor(supervisorPath: string): boolean {
  try {
    return isRunning(JSON.parse(readFileSync(supervisorPath, 'utf8')) as ProcessIdentity);
  } catch {
    return false;
  }
}
