import { errorText } from '../../controller/aggregate-error.ts';
import { type Reconcile, type Result, RetryRequest } from '../../controller/reconcile.ts';
import { backoffMs } from '../../kube/backoff.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { isConflict, isTransient } from '../../kube/error.ts';
import {
  CURRENT_CONFIG,
  DAEMON_STATE,
  DESIRED_CONFIG,
  OSTREE_FINALIZE_FAILURE,
} from '../../machine-config-api/names.ts';
import { readStored, type StoredState } from '../apply/stored.ts';
import { stateOfError } from '../decide/reconcile.ts';
import { unexpectedDisk } from '../decide/start-up.ts';
import { decideSync } from '../decide/sync-gate.ts';
import { decideUpdate, type Target } from '../decide/update-needed.ts';
import { shownReason } from '../node-writer.ts';
import { announce, announcements } from './announcements.ts';
import { startDriftMonitor } from './completion.ts';
import { machineProblem } from './disk-check.ts';
import type { UpdateOutcome } from './follow-up.ts';
import { hasForceFile } from './force-file.ts';
import type { AgentParts } from './parts.ts';
import { named, startUp } from './start-up.ts';
import { update } from './update.ts';

/** Pauses between attempts (spec 60, 1.5; plainly by key, D-22). */
const RETRY = { firstMs: seconds(1), longestMs: minutes(1) };

/** The node worker: one pass brings the node one step nearer to where it should be (spec 60, 5.2). */
export class NodeSync {
  readonly #parts: AgentParts;
  #isBooting = true;
  /** The boot in which a reboot was asked for. */
  #rebootFrom: string | undefined;
  #uid: string | undefined;
  #isResumed = false;
  #failures = 0;

  constructor(parts: AgentParts) {
    this.#parts = parts;
  }

  /** Never throws: what goes wrong becomes the state of the node and another attempt. */
  readonly reconcile: Reconcile = async (key, { enqueue }) => {
    const { stop, clock, log } = this.#parts;
    try {
      const outcome = await this.#pass(key);
      this.#failures = 0;
      if (outcome === 'again') enqueue(key);
      return {};
    } catch (error) {
      if (stop.aborted) return {};
      await this.#failed(error);
      const pauseMs = backoffMs(++this.#failures, RETRY);
      log.debug({ failures: this.#failures, pauseMs }, 'another attempt follows');
      return { againAt: new Date(clock.now().getTime() + pauseMs) } satisfies Result;
    }
  };

  async #pass(key: string): Promise<UpdateOutcome | 'nothing'> {
    const { host, node, log, report, writer } = this.#parts;
    const bootId = await host.bootId();
    this.#notice(bootId);
    const gate = decideSync({
      key,
      self: node.name,
      node: node.get(),
      isRebootQueued: this.#rebootFrom !== undefined,
      isBooting: this.#isBooting,
    });
    if (gate.verdict === 'ignore') {
      log.info({ key }, gate.reason);
      return 'nothing';
    }
    if (this.#isBooting && !this.#isResumed) report.resume(node.annotations());
    this.#isResumed = true;
    if (Object.keys(gate.annotations).length > 0) await writer.annotate(gate.annotations);
    report.notice(node.annotations());
    await report.retry();
    if (gate.verdict === 'wait-for-drain') {
      log.info({}, gate.reason);
      return 'nothing';
    }
    const outcome = gate.verdict === 'first-run' ? await startUp(this.#parts) : await this.#update();
    this.#isBooting = outcome === 'rebooting';
    if (outcome !== 'rebooting') return outcome;
    this.#rebootFrom = bootId;
    // Where the machine is only a directory it is back already; elsewhere the next pass finds that a reboot is queued.
    return 'again';
  }

  /** A machine that was rebooted without us, and a Node that was made anew, are looked at from the beginning. */
  #notice(bootId: string): void {
    if (this.#rebootFrom !== undefined && this.#rebootFrom !== bootId) this.#rebootFrom = undefined;
    const uid = this.#parts.node.get()?.metadata?.uid;
    if (uid === undefined || uid === this.#uid) return;
    this.#uid = uid;
    this.#isBooting = true;
    this.#isResumed = false;
  }

  async #update(): Promise<UpdateOutcome | 'nothing'> {
    const { host, node, configs, log, report, drift } = this.#parts;
    const stored = await readStored(host);
    const isForced = await hasForceFile(host.files);
    const annotations = node.annotations();
    const hasConfig = await configs.among([annotations[CURRENT_CONFIG], annotations[DESIRED_CONFIG]], stored);
    const state = report.updateState({ countsDrift: isForced });
    const said = { ...annotations, [DAEMON_STATE]: state };
    const decision = decideUpdate(said, stored && targetOf(stored), hasConfig, node.name);
    if (decision.kind === 'error') throw new Error(decision.message);
    if (decision.kind === 'none') {
      if (drift.watching === undefined) await startDriftMonitor(this.#parts);
      return 'nothing';
    }
    const from = stored ?? (await named(this.#parts, decision.from));
    log.info(
      { why: decision.why, isForced },
      `an update from ${decision.from.config} to ${decision.to.config} is needed`,
    );
    if (!isForced) await this.#preflight(from);
    return update(this.#parts, from, await named(this.#parts, decision.to));
  }

  /** What is on the disk must be known before it is changed (spec 60, 11.3). */
  async #preflight(from: StoredState): Promise<void> {
    const { host, log, events, node } = this.#parts;
    const problem = await machineProblem(host, from);
    if (problem === undefined) {
      log.info({}, 'Preflight config drift check successful');
      return;
    }
    const reason = unexpectedDisk(targetOf(from), problem, node.annotations()[OSTREE_FINALIZE_FAILURE]);
    announce(events, announcements.preflightFailed(reason));
    throw new Error(reason);
  }

  /** The state an error puts the node in. That the API is away, or that something else is wanted by now, is none. */
  async #failed(error: unknown): Promise<void> {
    const { log, report, metrics, clock, node } = this.#parts;
    if (error instanceof RetryRequest) {
      log.info({ why: error.message }, 'the update begins again');
      return;
    }
    if (isTransient(error) || isConflict(error)) {
      log.warn({ err: error }, 'the API could not be asked');
      return;
    }
    const state = stateOfError(error);
    const reason = errorText(error);
    log.error({ err: error }, `Marking ${state} due to: "${reason}"`);
    metrics.updated(node.annotations()[DESIRED_CONFIG] ?? '', shownReason(reason), clock.now());
    await report.problem('update', { state, reason });
  }
}

function targetOf({ config, image }: StoredState): Target {
  return { config: config.metadata?.name ?? '', image };
}
