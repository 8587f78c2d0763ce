/**
 * Loaded before a program of ours on a local node: ends the program when its node has been dead for a while. A node that is
 * started again in time finds its processes and goes on with them; one that never comes back leaves nothing running.
 */
import { readFileSync } from 'node:fs';
import { isRunning, type ProcessIdentity } from './process.ts';

const CHECK_MS = 2000;
const LONGEST_ALONE_MS = 60_000;
/** A program that does not end when asked to has this long. */
const LAST_WORDS_MS = 10_000;

const path = process.env.ROTUNDA_SUPERVISOR;
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
    process.kill(process.pid, 'SIGTERM');
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_WORDS_MS).unref();
    aloneSince = Number.POSITIVE_INFINITY;
  }, checkMs).unref();
}

function hasSupervisor(supervisorPath: string): boolean {
  try {
    return isRunning(JSON.parse(readFileSync(supervisorPath, 'utf8')) as ProcessIdentity);
  } catch {
    return false;
  }
}
