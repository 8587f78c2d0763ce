import type { Log } from '../../controller/log.ts';
import type { Clock } from '../../kube/clock.ts';
import { DAEMON_REASON, DAEMON_STATE } from '../../machine-config-api/names.ts';
import { type AnnotationChange, changeOf, type NodeState, type NodeWriter, shownReason } from '../node-writer.ts';
import type { AgentMetrics } from './metrics.ts';

export type FailedState = 'Degraded' | 'Unreconcilable';

/** What keeps a node from being well, as one of the workers knows it. */
export interface Problem {
  readonly state: FailedState;
  readonly reason: string;
}

/** Who may have a problem. The first one that has decides the state. */
const WORKERS = ['update', 'drift', 'certificates'] as const;
export type Worker = (typeof WORKERS)[number];

export interface StateReportOptions {
  readonly writer: Pick<NodeWriter, 'annotate'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<AgentMetrics, 'state'>;
}

/**
 * The state on the node, made of what each worker last said. A worker that is well again does not speak for the others: a certificate
 * that cannot be written keeps the node Degraded while updates go on, and no flapping comes of it (D-39).
 */
export class StateReport {
  readonly #options: StateReportOptions;
  readonly #problems = new Map<Worker, Problem>();
  #progress: 'Done' | 'Working' = 'Done';
  /** What the node says; undefined: not known. */
  #written: string | undefined;
  #last: Promise<void> = Promise.resolve();
  /** Before that nobody knows what the node says, and nothing is written. */
  #isResumed = false;

  constructor(options: StateReportOptions) {
    this.#options = options;
  }

  get state(): NodeState {
    return this.#worst()?.state ?? this.#progress;
  }

  get reason(): string {
    const reasons = WORKERS.map(worker => this.#problems.get(worker)?.reason).filter(reason => reason !== undefined);
    return shownReason([...new Set(reasons)].join('; '));
  }

  /** How updates stand, whatever else is wrong on this node. Drift counts for those who want to update it away. */
  updateState({ countsDrift }: { countsDrift: boolean }): NodeState {
    const problem = this.#problems.get('update') ?? (countsDrift ? this.#problems.get('drift') : undefined);
    return problem?.state ?? this.#progress;
  }

  /**
   * Takes over what the node said before this process, and may write from now on. A failure stays one until the node is found, or
   * brought, where it should be.
   */
  resume(annotations: Readonly<Record<string, string>>): void {
    const { [DAEMON_STATE]: state = '', [DAEMON_REASON]: reason = '' } = annotations;
    this.#progress = state === 'Working' ? 'Working' : 'Done';
    if (state === 'Degraded' || state === 'Unreconcilable') this.#problems.set('update', { state, reason });
    // A node that says nothing yet says nothing wrong; Done is said when it has been looked at.
    this.#written = JSON.stringify([state === '' ? 'Done' : state, reason]);
    this.#isResumed = true;
  }

  /** What the node says may have been changed by somebody; then it is said again with the next report. */
  notice(annotations: Readonly<Record<string, string>>): void {
    const said = annotations[DAEMON_STATE] ?? '';
    if (said !== '' && this.#written !== undefined && stateIn(this.#written) !== said) this.#written = undefined;
  }

  /** An update begins. A node that is failing keeps saying so while it tries again (spec 60, 5.1.1). */
  working(): Promise<void> {
    this.#progress = 'Working';
    return this.#publish();
  }

  /** The update worker has reached that config; all that says so goes out in one write. */
  done(reached: { currentConfig: string; currentImage?: string; desiredImage?: string }): Promise<void> {
    this.#progress = 'Done';
    this.#problems.delete('update');
    return this.#publish(changeOf({ kind: 'done', ...reached }));
  }

  /**
   * A worker has a problem, or no longer. Never rejects. False: it could not be written now and goes out with the next report, or with
   * `retry`.
   */
  async problem(worker: Worker, problem: Problem | undefined): Promise<boolean> {
    if (problem === undefined) this.#problems.delete(worker);
    else this.#problems.set(worker, problem);
    try {
      await this.#publish();
      return true;
    } catch (error) {
      this.#options.log.warn({ worker, err: error }, 'the state could not be written to the node');
      return false;
    }
  }

  /** Drift is dealt with by an update now: the node stays failing until that is done. */
  handOverDrift(): void {
    const drift = this.#problems.get('drift');
    this.#problems.delete('drift');
    if (drift !== undefined && !this.#problems.has('update')) this.#problems.set('update', drift);
  }

  /** Writes what could not be written before; costs nothing when there is nothing. */
  async retry(): Promise<void> {
    await this.#publish();
  }

  /** One write after the other, each with what is true when it is sent. */
  #publish(along?: AnnotationChange): Promise<void> {
    const sent = this.#last.then(() => this.#send(along));
    this.#last = sent.catch(() => {});
    return sent;
  }

  async #send(along: AnnotationChange | undefined): Promise<void> {
    const { writer, clock, log, metrics } = this.#options;
    const { state, reason } = this;
    const saying = JSON.stringify([state, reason]);
    if (!this.#isResumed || (saying === this.#written && along === undefined)) return;
    const before = this.#written;
    this.#written = undefined;
    await writer.annotate({ ...along?.set, ...said(state, reason) }, along?.remove);
    this.#written = saying;
    if (before === saying) return;
    metrics.state(state, reason, clock.now());
    const from = before === undefined ? '' : stateIn(before);
    if (from !== state) log.info({ from, to: state, reason }, `Transitioned from state: ${from} -> ${state}`);
  }

  #worst(): Problem | undefined {
    const present = WORKERS.map(worker => this.#problems.get(worker)).filter(problem => problem !== undefined);
    return present.find(({ state }) => state === 'Unreconcilable') ?? present[0];
  }
}

/** Working does not clear the reason, Done does (spec 60, 5.1.2). */
function said(state: NodeState, reason: string): Readonly<Record<string, string>> {
  switch (state) {
    case 'Done':
      return { [DAEMON_STATE]: state, [DAEMON_REASON]: '' };
    case 'Working':
      return changeOf({ kind: 'working' }).set;
    case 'Degraded':
      return changeOf({ kind: 'degraded', reason }).set;
    case 'Unreconcilable':
      return changeOf({ kind: 'unreconcilable', reason }).set;
  }
}

function stateIn(saying: string): string {
  return (JSON.parse(saying) as [string])[0];
}
