import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Container, ContainerState, ContainerStateTerminated } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../controller/aggregate-error.ts';
import { type Clock, sleep } from '../kube/clock.ts';
import { formatGoDuration } from '../kube/duration.ts';
import type { EventType } from '../kube/events.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { ContainerLog, tailOf } from './container-log.ts';
import { runProbes } from './container-probes.ts';
import { type ContainerRecord, NEW_CONTAINER, readRecord, writeRecord } from './container-record.ts';
import { readExitNote } from './exit-note.ts';
import type { ContainerSnapshot } from './pod-status.ts';
import {
  findMarked,
  isRunning,
  killProcess,
  MARKER,
  type ProcessExit,
  type ProcessIdentity,
  type StartedProcess,
  signalGroup,
  startProcess,
} from './process.ts';
import { isRestarted, type RestartPolicy, restartPauseMs, restartsInARow } from './restart-policy.ts';

/** Everything needed to start a container once. */
export interface Launch {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  rewrite(text: string): string;
}

export interface ContainerOptions {
  readonly container: Container;
  readonly policy: RestartPolicy;
  /** For people: `<pod>_<namespace>(<uid>)`. */
  readonly podText: string;
  /** Tells the processes of this container from all others on the machine. */
  readonly mark: string;
  /** Where the record and the termination message are. */
  readonly directory: string;
  readonly logDirectory: string;
  readonly address: string;
  readonly graceMs: number;
  readonly clock: Clock;
  /** Asked before every start: what it is made of may have changed. */
  readonly launch: () => Promise<Launch>;
  readonly onChange: () => void;
  readonly event: (type: EventType, reason: string, message: string) => void;
}

/** How often a process that somebody else started is asked whether it still lives. */
const ADOPTED_POLL_MS = 500;
const LONGEST_MESSAGE = 4096;
const FALLBACK_LINES = 80;
const FALLBACK_BYTES = 2048;

/** Runs one container as a process, again and again as its policy says, and knows how it is. */
export class ContainerRunner {
  readonly #options: ContainerOptions;
  readonly #stop = new AbortController();
  #record: ContainerRecord;
  #state: ContainerState = { waiting: { reason: 'ContainerCreating' } };
  #process: StartedProcess | undefined;
  #started = false;
  #ready = false;
  #stopDeadlineMs = Number.POSITIVE_INFINITY;
  #run: Promise<void> | undefined;

  constructor(options: ContainerOptions) {
    this.#options = options;
    const record = readRecord(this.#recordPath);
    this.#record = record ?? NEW_CONTAINER;
    if (record?.running === undefined && record?.terminated !== undefined)
      this.#state = { terminated: record.terminated };
  }

  get name(): string {
    return this.#options.container.name;
  }

  get restartCount(): number {
    return this.#record.restartCount;
  }

  /** Whether its process runs now, also one that an earlier node started. */
  get isAlive(): boolean {
    return this.#process !== undefined || (this.#record.running !== undefined && isRunning(this.#record.running));
  }

  /** Whether it would be started now if it is not alive. */
  get willStart(): boolean {
    const { terminated, running } = this.#record;
    const exitCode = running === undefined ? terminated?.exitCode : this.#exitOf(running).exitCode;
    return exitCode === undefined || isRestarted(this.#options.policy, exitCode);
  }

  /** Forgets that it has ended before. */
  forget(): void {
    if (this.isAlive || this.#run !== undefined || this.#record === NEW_CONTAINER) return;
    const { restartCount } = this.#record;
    this.#remember({ ...NEW_CONTAINER, restartCount });
    this.#state = { waiting: { reason: 'PodInitializing' } };
  }

  snapshot(): ContainerSnapshot {
    const { container } = this.#options;
    const { terminated, running, restartCount } = this.#record;
    const showsLast = terminated !== undefined && this.#state.terminated === undefined;
    return {
      name: container.name,
      image: container.image ?? '',
      state: this.#state,
      lastState: showsLast ? { terminated } : undefined,
      restartCount,
      started: this.#started,
      ready: this.#ready,
      id: running === undefined ? (terminated?.containerID ?? '') : containerId(running),
    };
  }

  /** Where the output of the present or the previous run is. */
  logPath(previous = false): string {
    return join(this.#options.logDirectory, `${this.#record.restartCount - (previous ? 1 : 0)}.log`);
  }

  /** Resolves when the container will not run any more, after a stop or because its policy says so. */
  run(): Promise<void> {
    this.#run ??= this.#loop();
    return this.#run;
  }

  /** Tells the processes to end, and ends them after the grace period. Calling again with less time shortens it. */
  async stop(graceMs: number): Promise<void> {
    const deadlineMs = this.#options.clock.now().getTime() + graceMs;
    if (!this.#stop.signal.aborted && this.#process !== undefined) {
      this.#options.event('Normal', 'Killing', `Stopping container ${this.name}`);
    }
    this.#stop.abort();
    this.#become({ ready: false });
    if (deadlineMs < this.#stopDeadlineMs) {
      this.#stopDeadlineMs = deadlineMs;
      if (this.#process !== undefined) await this.#terminate(this.#process, graceMs);
    }
    await this.#run;
  }

  async #loop(): Promise<void> {
    const { policy, clock } = this.#options;
    let process = this.#adopt();
    if (process === undefined && !this.#mayStartAfterAdoption()) return;
    while (process !== undefined || !this.#stop.signal.aborted) {
      const terminated = process === undefined ? await this.#launchAndWatch() : await this.#watch(process);
      process = undefined;
      const ranMs = clock.now().getTime() - new Date(terminated.startedAt ?? 0).getTime();
      const inARow = restartsInARow(this.#record.restartsInARow, ranMs);
      this.#remember({ ...this.#record, running: undefined, terminated, restartsInARow: inARow });
      this.#become({ state: { terminated }, started: false, ready: false });
      if (this.#stop.signal.aborted || !isRestarted(policy, terminated.exitCode)) return;
      await this.#pause(inARow);
      if (this.#stop.signal.aborted) return;
      this.#remember({ ...this.#record, restartCount: this.#record.restartCount + 1 });
    }
  }

  /** A process that an earlier node started and that still runs is taken over as it is. */
  #adopt(): StartedProcess | undefined {
    const { running } = this.#record;
    if (running === undefined || !isRunning(running)) return undefined;
    const exited = (async (): Promise<ProcessExit> => {
      while (isRunning(running)) await sleep(this.#options.clock, ADOPTED_POLL_MS);
      return this.#exitOf(running);
    })();
    return { identity: running, exited };
  }

  /** How a process ended that is not our child: by the note it left, if it did. */
  #exitOf(identity: ProcessIdentity): ProcessExit {
    return readExitNote(this.#options.directory, identity) ?? UNKNOWN_EXIT;
  }

  #mayStartAfterAdoption(): boolean {
    const { policy, clock, mark } = this.#options;
    // A node may have died between starting a process and writing that down.
    for (const { pid, mark: found } of findMarked(mark)) if (found === mark) killProcess(pid);
    const { running, terminated: ended } = this.#record;
    if (running === undefined && ended === undefined) return true;
    const terminated = running === undefined ? ended : lost(running, this.#exitOf(running), clock.now());
    if (terminated === undefined) return true;
    const mayStart = isRestarted(policy, terminated.exitCode);
    const restartCount = this.#record.restartCount + (mayStart ? 1 : 0);
    this.#remember({ ...this.#record, running: undefined, terminated, restartCount });
    this.#become({ state: mayStart ? { waiting: { reason: 'ContainerCreating' } } : { terminated } });
    return mayStart;
  }

  async #launchAndWatch(): Promise<ContainerStateTerminated> {
    const { clock } = this.#options;
    const startedAt = formatRfc3339(clock.now());
    try {
      const launch = await this.#options.launch();
      if (this.#stop.signal.aborted) return { exitCode: 143, reason: 'Error', startedAt, finishedAt: startedAt };
      this.#prepareDirectories();
      const env = { ...launch.env, [MARKER]: this.#options.mark };
      const process = await startProcess({ ...launch, env, logPath: this.logPath() });
      this.#remember({ ...this.#record, running: { ...process.identity, startedAt } });
      this.#options.event('Normal', 'Started', `Started container ${this.name}`);
      return await this.#watch(process, launch);
    } catch (error) {
      const message = errorText(error);
      this.#options.event('Warning', 'Failed', `Error: ${message}`);
      return { exitCode: 128, reason: 'StartError', message, startedAt, finishedAt: formatRfc3339(clock.now()) };
    }
  }

  async #watch(process: StartedProcess, launch?: Launch): Promise<ContainerStateTerminated> {
    const { clock, container } = this.#options;
    const startedAt = this.#record.running?.startedAt ?? formatRfc3339(clock.now());
    const { pid } = process.identity;
    const log = new ContainerLog(this.logPath(), clock);
    log.follow();
    this.#process = process;
    this.#become({ state: { running: { startedAt } } });
    const over = new AbortController();
    const probing = this.#probe(process, launch, over.signal);
    if (this.#stop.signal.aborted) void this.#terminate(process, this.#stopDeadlineMs - clock.now().getTime());
    const exit = await process.exited;
    over.abort();
    // Whatever it started and left behind ends with it.
    signalGroup(pid, 'SIGKILL');
    await probing;
    log.close();
    this.#process = undefined;
    const { exitCode, signal } = exit;
    const message = this.#terminationMessage(container, exitCode);
    return {
      exitCode,
      ...(signal === undefined ? {} : { signal }),
      reason: reasonOf(exit),
      ...(message === '' ? {} : { message }),
      startedAt,
      finishedAt: formatRfc3339(clock.now()),
      containerID: containerId(process.identity),
    };
  }

  async #probe(process: StartedProcess, launch: Launch | undefined, signal: AbortSignal): Promise<void> {
    const { container, clock, address, event, graceMs } = this.#options;
    const prepared = launch ?? (await this.#options.launch().catch(() => undefined));
    if (prepared === undefined || signal.aborted) return;
    await runProbes(
      { container, address, ...prepared },
      {
        started: () => this.#become({ started: true }),
        ready: isReady => this.#become({ ready: isReady && !this.#stop.signal.aborted }),
        unhealthy: (kind, message) => event('Warning', 'Unhealthy', `${kind} probe failed: ${message}`),
        failed: kind => {
          const probe = kind.toLowerCase();
          event('Normal', 'Killing', `Container ${this.name} failed ${probe} probe, will be restarted`);
          this.#become({ ready: false });
          void this.#terminate(process, graceMs);
        },
      },
      clock,
      signal,
    );
  }

  async #terminate({ identity, exited }: StartedProcess, graceMs: number): Promise<void> {
    const { clock, event } = this.#options;
    const ended = new AbortController();
    const over = exited.finally(() => ended.abort());
    try {
      if (graceMs > 0) {
        signalGroup(identity.pid, 'SIGTERM');
        await Promise.race([over, sleep(clock, graceMs, ended.signal).catch(() => {})]);
      }
      if (isRunning(identity)) signalGroup(identity.pid, 'SIGKILL');
    } catch (error) {
      event('Warning', 'FailedKillPod', `container ${this.name}: ${errorText(error)}`);
    }
    await over;
  }

  async #pause(inARow: number): Promise<void> {
    const { clock, event, podText } = this.#options;
    const pauseMs = restartPauseMs(inARow);
    if (pauseMs === 0) return;
    const what = `restarting failed container=${this.name} pod=${podText}`;
    this.#become({
      state: { waiting: { reason: 'CrashLoopBackOff', message: `back-off ${formatGoDuration(pauseMs)} ${what}` } },
    });
    event('Warning', 'BackOff', `Back-off ${what}`);
    await sleep(clock, pauseMs, this.#stop.signal).catch(() => {});
  }

  #prepareDirectories(): void {
    const { directory, clock, logDirectory } = this.#options;
    mkdirSync(directory, { recursive: true });
    closeSync(openSync(this.#terminationLog, 'w', 0o600));
    mkdirSync(logDirectory, { recursive: true });
    const older = join(logDirectory, `${this.#record.restartCount - 2}.log`);
    if (this.#record.restartCount >= 2) new ContainerLog(older, clock).remove();
  }

  #terminationMessage({ terminationMessagePolicy }: Container, exitCode: number): string {
    let message = '';
    try {
      message = readFileSync(this.#terminationLog, 'utf8').slice(0, LONGEST_MESSAGE);
    } catch {
      // Nobody wrote one.
    }
    if (message !== '' || exitCode === 0 || terminationMessagePolicy !== 'FallbackToLogsOnError') return message;
    return tailOf(this.logPath(), FALLBACK_LINES, FALLBACK_BYTES);
  }

  #remember(record: ContainerRecord): void {
    this.#record = record;
    writeRecord(this.#recordPath, record);
  }

  #become({ state, started, ready }: { state?: ContainerState; started?: boolean; ready?: boolean }): void {
    if (state !== undefined) this.#state = state;
    if (started !== undefined) this.#started = started;
    if (ready !== undefined) this.#ready = ready;
    this.#options.onChange();
  }

  get #recordPath(): string {
    return join(this.#options.directory, 'state.json');
  }

  get #terminationLog(): string {
    return terminationLogOf(this.#options.directory);
  }
}

/** Where a container writes its last words. */
export function terminationLogOf(directory: string): string {
  return join(directory, 'termination-log');
}

const UNKNOWN_EXIT: ProcessExit = { exitCode: 137 };

function reasonOf(exit: ProcessExit): string {
  if (exit === UNKNOWN_EXIT) return 'ContainerStatusUnknown';
  return exit.exitCode === 0 ? 'Completed' : 'Error';
}

function lost(
  running: NonNullable<ContainerRecord['running']>,
  exit: ProcessExit,
  now: Date,
): ContainerStateTerminated {
  return {
    exitCode: exit.exitCode,
    reason: reasonOf(exit),
    message: 'the container ended while its node was not there to see it',
    startedAt: running.startedAt,
    finishedAt: formatRfc3339(now),
    containerID: containerId(running),
  };
}

function containerId({ pid, startTime }: { pid: number; startTime: string }): string {
  return `rotunda://${pid}-${startTime.split('@')[0]}`;
}
