import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, sleep } from '../kube/clock.ts';
import { readRecord } from './container-record.ts';
import { markPrefix, podDirectory } from './pod-runner.ts';
import { findMarked, isRunning, killProcess } from './process.ts';

/** A pod that left traces on the disk or processes on the machine. */
export interface LeftoverPod {
  readonly uid: string;
  /** Undefined when nobody wrote it down. */
  readonly isStatic: boolean | undefined;
}

const POLL_MS = 100;

/** Writes down that a pod is about to be run. */
export function notePod(root: string, uid: string, isStatic: boolean): void {
  const directory = podDirectory(root, uid);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'pod.json'), JSON.stringify({ isStatic }));
}

/** All pods that an earlier node below this root has left, running or not. */
export function leftoverPods(root: string): LeftoverPod[] {
  const directory = join(podDirectory(root, ''), '.');
  const onDisk = existsSync(directory) ? readdirSync(directory) : [];
  const marked = findMarked(markPrefix(root)).map(
    ({ mark }) => mark.slice(markPrefix(root).length).split('/')[0] as string,
  );
  return [...new Set([...onDisk, ...marked])].map(uid => ({ uid, isStatic: readNote(podDirectory(root, uid)) }));
}

/** Ends every process of a pod, first kindly, and removes what it had on the disk. */
export async function endLeftover(root: string, uid: string, graceMs: number, clock: Clock): Promise<void> {
  const deadline = clock.now().getTime() + graceMs;
  for (const pid of processesOf(root, uid)) signal(pid, 'SIGTERM');
  while (clock.now().getTime() < deadline && processesOf(root, uid).length > 0) await sleep(clock, POLL_MS);
  for (const pid of processesOf(root, uid)) killProcess(pid);
  rmSync(podDirectory(root, uid), { recursive: true, force: true });
}

/** Ends every process of a node that nobody runs any more; what its pods have on the disk stays. */
export async function endProcesses(root: string, graceMs: number, clock: Clock): Promise<number> {
  const running = () => leftoverPods(root).flatMap(({ uid }) => processesOf(root, uid));
  const deadline = clock.now().getTime() + graceMs;
  const found = running();
  for (const pid of found) signal(pid, 'SIGTERM');
  while (clock.now().getTime() < deadline && running().length > 0) await sleep(clock, POLL_MS);
  for (const pid of running()) killProcess(pid);
  return found.length;
}

function processesOf(root: string, uid: string): number[] {
  const pids = new Set(findMarked(`${markPrefix(root)}${uid}/`).map(({ pid }) => pid));
  const containers = join(podDirectory(root, uid), 'containers');
  for (const name of existsSync(containers) ? readdirSync(containers) : []) {
    const running = readRecord(join(containers, name, 'state.json'))?.running;
    if (running !== undefined && isRunning(running)) pids.add(running.pid);
  }
  return [...pids].filter(pid => pid > 1);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Gone already.
  }
}

function readNote(directory: string): boolean | undefined {
  try {
    return (JSON.parse(readFileSync(join(directory, 'pod.json'), 'utf8')) as { isStatic: boolean }).isStatic;
  } catch {
    return undefined;
  }
}
