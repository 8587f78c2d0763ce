import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';

/** One process for as long as it lives: a number alone is given to another process sooner or later. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in whatever unit the machine counts. */
  readonly startTime: string;
}

/** How a process ended. */
export interface ProcessExit {
  readonly exitCode: number;
  /** Present when a signal ended it; the code is then 128 and the number of the signal. */
  readonly signal?: number | undefined;
}

export interface StartedProcess {
  readonly identity: ProcessIdentity;
  readonly exited: Promise<ProcessExit>;
}

export interface StartOptions {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Output goes straight into this file, so that a process outlives whoever started it. */
  readonly logPath: string;
}

/** Carries the name of a container through everything its processes start. */
export const MARKER = 'ROTUNDA_CONTAINER';

/** Starts a process in a group of its own. Rejects when it cannot be executed. */
export function startProcess({ argv, env, cwd, logPath }: StartOptions): Promise<StartedProcess> {
  const [command = '', ...args] = argv;
  const log = openSync(logPath, 'a', 0o600);
  let child: ChildProcess;
  try {
    child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', log, log] });
  } finally {
    closeSync(log);
  }
  const exited = new Promise<ProcessExit>(resolve => {
    child.once('exit', (code, signal) => resolve(exitOf(code, signal)));
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('spawn', () => {
      const pid = child.pid as number;
      resolve({ identity: { pid, startTime: startTimeOf(pid) ?? '' }, exited });
    });
  });
}

/** Whether exactly this process still runs. One that has ended and only waits to be asked about does not. */
export function isRunning({ pid, startTime }: ProcessIdentity): boolean {
  return startTimeOf(pid) === startTime;
}

/** When a process started; undefined when there is none or it has ended. */
export function startTimeOf(pid: number): string | undefined {
  return process.platform === 'linux' ? procStartTime(pid) : psStartTime(pid);
}

/** Sends a signal to a process and everything it started. False when nothing is left to hear it. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  // Group 0 would be our own, group 1 everybody's.
  if (pid <= 1) throw new RangeError(`expected the number of a process, found ${pid}`);
  try {
    return process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** Ends one process at once; nothing happens when it is gone already. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A process that belongs to some container. */
export interface MarkedProcess {
  readonly pid: number;
  /** The value of the marker. */
  readonly mark: string;
}

/**
 * All processes whose marker begins with `prefix`. Finds also those whose start nobody lived to write down. Only Linux can tell;
 * elsewhere nothing is found.
 */
export function findMarked(prefix: string): MarkedProcess[] {
  if (process.platform !== 'linux') return [];
  const found: MarkedProcess[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    try {
      const entry = `\0${readFileSync(`/proc/${name}/environ`, 'latin1')}`;
      const at = entry.indexOf(`\0${MARKER}=${prefix}`);
      if (at < 0) continue;
      const mark = entry.slice(at + MARKER.length + 2).split('\0')[0] as string;
      found.push({ pid: Number(name), mark });
    } catch {
      // Gone meanwhile, or somebody else's.
    }
  }
  return found;
}

function exitOf(code: number | null, signal: NodeJS.Signals | null): ProcessExit {
  if (signal === null) return { exitCode: code ?? 0 };
  const number = constants.signals[signal];
  return { exitCode: 128 + number, signal: number };
}

function procStartTime(pid: number): string | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // The second field is the name in parentheses, which may hold anything; count from behind it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  if (state === 'Z' || state === 'X') return undefined;
  // Counted from the start of the machine, so that start is part of it.
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  return `${fields[19]}@${bootId}`;
}

let bootId: string | undefined;

function psStartTime(pid: number): string | undefined {
  try {
    const text = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      timeout: 5000,
    }).trim();
    return text === '' || text.startsWith('Z') ? undefined : text.replace(/^\S+\s+/, '');
  } catch {
    return undefined;
  }
}
