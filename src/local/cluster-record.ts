import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, sleep, systemClock } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import type { LayoutName } from './layout.ts';
import { endProcesses } from './leftover-pods.ts';
import type { PartReport } from './part-board.ts';
import { isRunning, killProcess, type ProcessIdentity, startTimeOf } from './process.ts';

/** What a running cluster tells about itself in its directory. */
export interface ClusterRecord {
  /** The process that runs it. */
  readonly process: ProcessIdentity;
  readonly startedAt: string;
  readonly url: string;
  readonly kubeconfig: string;
  /** Absent in what older versions have told: then it is the only one that they knew. */
  readonly layout?: LayoutName | undefined;
  /** Programs that only stand in for the real ones. */
  readonly standIns: readonly string[];
  readonly parts: readonly PartReport[];
}

const FILE = 'cluster.json';
const STOP_LIMIT_MS = seconds(60);
const ORPHAN_GRACE_MS = seconds(10);
const POLL_MS = 100;

/** Replaces what the directory says about the cluster this process runs. */
export function writeClusterRecord(dir: string, record: Omit<ClusterRecord, 'process'>): void {
  const process_: ProcessIdentity = { pid: process.pid, startTime: startTimeOf(process.pid) ?? '' };
  const path = join(dir, FILE);
  writeFileSync(`${path}.tmp`, `${JSON.stringify({ process: process_, ...record }, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

/** What was last told, and whether the process that told it still runs. Undefined: no cluster was ever started there. */
export function readClusterRecord(dir: string): { record: ClusterRecord; isRunning: boolean } | undefined {
  let record: ClusterRecord;
  try {
    record = JSON.parse(readFileSync(join(dir, FILE), 'utf8')) as ClusterRecord;
  } catch {
    return undefined;
  }
  return { record, isRunning: isRunning(record.process) };
}

/**
 * Ends the cluster of a directory: its process as Ctrl-C would, and then whatever a process that was killed has left. What it
 * knows stays. Resolves with what had to be ended.
 */
export async function endCluster(dir: string, clock: Clock = systemClock): Promise<'running' | 'orphans' | 'nothing'> {
  const found = readClusterRecord(dir);
  if (found?.isRunning) {
    const { process: running } = found.record;
    process.kill(running.pid, 'SIGTERM');
    const deadline = clock.now().getTime() + STOP_LIMIT_MS;
    while (isRunning(running) && clock.now().getTime() < deadline) await sleep(clock, POLL_MS);
    if (isRunning(running)) killProcess(running.pid);
  }
  const nodes = readdirSync(join(dir, 'nodes'));
  const ended = await Promise.all(nodes.map(name => endProcesses(join(dir, 'nodes', name), ORPHAN_GRACE_MS, clock)));
  if (found?.isRunning) return 'running';
  return ended.some(count => count > 0) ? 'orphans' : 'nothing';
}
