import type { Log } from '../../controller/log.ts';
import type { HostFiles } from '../../host/port.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { milliseconds, minutes } from '../../kube/duration.ts';

export interface DriftMonitorOptions {
  readonly files: Pick<HostFiles, 'watch'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Hears of the first drift, of every other reason, and with undefined that the disk is as it should be again. */
  onChange(problem: string | undefined): void;
}

/** What is watched and what is asked when something happened there. */
export interface DriftSubject {
  readonly config: string;
  readonly paths: readonly string[];
  /** Why the disk is not what the config says; undefined if it is. */
  validate(): Promise<string | undefined>;
}

/** Editors and package tools touch a file several times; one look afterwards is enough. */
const GATHER_MS = milliseconds(200);
/** A directory that is removed and made anew may take a watch with it (D-36); so everything is looked at now and then. */
const LOOK_ANYWAY_MS = minutes(10);

/**
 * Watches the files, units and keys of one config and says when the disk stops being what the config says (spec 60, 11.2). Paths that
 * are missing are watched too: they may come. It never repairs anything, and it goes on after a drift until it is stopped.
 */
export class DriftMonitor {
  readonly #options: DriftMonitorOptions;
  #running: { readonly stop: AbortController; readonly ended: Promise<void>; readonly config: string } | undefined;
  #problem: string | undefined;

  constructor(options: DriftMonitorOptions) {
    this.#options = options;
  }

  /** The config it watches, undefined when it does not. */
  get watching(): string | undefined {
    return this.#running?.config;
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  /** Begins, and looks at once. At most one runs: another one is stopped first. */
  async start(subject: DriftSubject): Promise<void> {
    await this.stop();
    const stop = new AbortController();
    this.#running = { stop, config: subject.config, ended: this.#run(subject, stop.signal) };
    this.#options.log.info({ config: subject.config, paths: subject.paths.length }, 'Config Drift Monitor started');
  }

  /** Resolves when nothing of it runs any more. True: it was running. */
  async stop(): Promise<boolean> {
    const running = this.#running;
    if (running === undefined) return false;
    this.#running = undefined;
    running.stop.abort(new Error('the drift monitor is stopped'));
    await running.ended;
    this.#problem = undefined;
    this.#options.log.info({ config: running.config }, 'Config Drift Monitor has shut down');
    return true;
  }

  async #run(subject: DriftSubject, signal: AbortSignal): Promise<void> {
    const { files, clock, log } = this.#options;
    let wake = () => {};
    let isStale = true;
    const changed = () => {
      isStale = true;
      wake();
    };
    const watching = files.watch(subject.paths, changed, signal).catch((error: unknown) => {
      if (!signal.aborted) log.warn({ err: error }, 'files cannot be watched; they are looked at now and then');
    });
    while (!signal.aborted) {
      if (isStale) {
        isStale = false;
        await this.#look(subject, signal);
        continue;
      }
      const slept = new AbortController();
      await Promise.race([
        new Promise<void>(resolve => {
          wake = resolve;
          signal.addEventListener('abort', () => resolve(), { once: true, signal: slept.signal });
        }),
        sleep(clock, LOOK_ANYWAY_MS, slept.signal).catch(() => {}),
      ]);
      slept.abort();
      if (isStale) await sleep(clock, GATHER_MS, signal).catch(() => {});
      isStale = true;
    }
    await watching;
  }

  async #look(subject: DriftSubject, signal: AbortSignal): Promise<void> {
    const { log, onChange } = this.#options;
    let problem: string | undefined;
    try {
      problem = await subject.validate();
    } catch (error) {
      // Not knowing is not drift.
      log.warn({ err: error }, 'the disk could not be compared with the config');
      return;
    }
    if (signal.aborted || problem === this.#problem) return;
    this.#problem = problem;
    if (problem === undefined) log.info({ config: subject.config }, 'the disk is what the config says again');
    else log.error({ config: subject.config, problem }, 'Detected config drift');
    onChange(problem);
  }
}
