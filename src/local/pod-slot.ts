import type { ObjectReference, Pod } from 'kubernetes-types/core/v1.d.ts';
import { updateStatus } from '../controller/status.ts';
import { seconds } from '../kube/duration.ts';
import { isNotFound } from '../kube/error.ts';
import type { EventRecorder } from '../kube/events.ts';
import { getIfPresent } from '../kube/get.ts';
import { PODS } from '../kube/resource.ts';
import { notePod } from './leftover-pods.ts';
import { ensureMirror, isMirror, removeMirror, STAND_IN } from './mirror-pod.ts';
import { type PodDeps, PodRunner } from './pod-runner.ts';
import type { StaticPod } from './static-pods.ts';
import { StatusPublisher } from './status-publisher.ts';

/** What should be in a slot: a pod from a manifest, or one the API has bound to this node. */
export type Desired =
  | { readonly kind: 'static'; readonly source: StaticPod }
  | { readonly kind: 'api'; readonly pod: Pod };

export interface SlotDeps extends PodDeps {
  /** The identity of the Node object; undefined until the API has one. */
  readonly nodeUid: () => string | undefined;
  readonly recorder: (involved: ObjectReference) => EventRecorder;
}

/**
 * The place of one pod name on a node. One pod at a time is in it: a changed manifest, or a pod that was deleted and created
 * again, waits until the one before has ended (as on a real node).
 */
export class PodSlot {
  readonly #name: string;
  readonly #namespace: string;
  readonly #deps: SlotDeps;
  readonly #publisher: StatusPublisher;
  readonly #onEmpty: () => void;
  #desired: Desired | undefined;
  #runner: PodRunner | undefined;
  #runs: Desired | undefined;
  #isDue = false;
  #work: Promise<void> | undefined;
  #isShutDown = false;

  constructor(namespace: string, name: string, deps: SlotDeps, onEmpty: () => void) {
    this.#name = name;
    this.#namespace = namespace;
    this.#deps = deps;
    this.#onEmpty = onEmpty;
    this.#publisher = new StatusPublisher(() => this.#publish(), deps.clock, deps.log);
  }

  get runner(): PodRunner | undefined {
    return this.#runner;
  }

  get isStatic(): boolean {
    return (this.#desired ?? this.#runs)?.kind === 'static';
  }

  /** Everything of these pods on disk and among the processes is accounted for. */
  get uids(): string[] {
    return [this.#desired, this.#runs].flatMap(desired => (desired === undefined ? [] : [uidOf(desired)]));
  }

  /** Says what should be here now; undefined: nothing. */
  want(desired: Desired | undefined): void {
    this.#desired = desired;
    if (this.#runner !== undefined && this.#isReplaced()) {
      // A deletion that is under way may have been cut short.
      void this.#runner.stop(this.#graceMs()).catch(() => {});
    }
    this.#isDue = true;
    this.#work ??= this.#settleAll();
  }

  /** The API may have changed what we wrote. */
  recheck(): void {
    this.#publisher.publish();
  }

  async refresh(): Promise<void> {
    await this.#runner?.refresh();
  }

  /** Ends what runs here, says so, and starts nothing any more. */
  async shutDown(longestGraceMs: number): Promise<void> {
    this.#isShutDown = true;
    const runner = this.#runner;
    if (runner !== undefined) {
      await runner.stop(Math.min(runner.graceMs, longestGraceMs), 'for now');
      this.#publisher.publish();
    }
    await this.#work;
  }

  async closePublisher(): Promise<void> {
    await this.#publisher.stop();
  }

  flushed(): Promise<void> {
    return this.#publisher.flushed();
  }

  async #settleAll(): Promise<void> {
    while (this.#isDue && !this.#isShutDown) {
      this.#isDue = false;
      await this.#settle();
    }
    this.#work = undefined;
  }

  async #settle(): Promise<void> {
    while (!this.#isShutDown) {
      if (this.#runner !== undefined && this.#isReplaced()) await this.#end(this.#runner);
      else if (this.#runner === undefined && this.#desired !== undefined) {
        if (!(await this.#begin(this.#desired))) return;
      } else if (this.#runner === undefined) return this.#onEmpty();
      else return;
    }
  }

  #isReplaced(): boolean {
    const [runs, desired] = [this.#runs, this.#desired];
    if (runs === undefined) return false;
    if (desired === undefined || uidOf(desired) !== uidOf(runs)) return true;
    return desired.kind === 'api' && desired.pod.metadata?.deletionTimestamp !== undefined;
  }

  #graceMs(): number {
    const { metadata } = this.#desired?.kind === 'api' ? this.#desired.pod : {};
    const asked = metadata?.deletionTimestamp === undefined ? undefined : metadata.deletionGracePeriodSeconds;
    return asked === undefined ? (this.#runner?.graceMs ?? 0) : seconds(asked);
  }

  /** False when this pod is not to be run: it has ended before, or is being deleted. */
  async #begin(desired: Desired): Promise<boolean> {
    const { root } = this.#deps;
    const pod = podOf(desired);
    if (desired.kind === 'api') {
      const isDeleted = pod.metadata?.deletionTimestamp !== undefined;
      if (isDeleted) {
        await this.#finishDeletion(pod);
        if (this.#desired === desired) this.#desired = undefined;
        return true;
      }
      if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') {
        // Its output can still be asked for.
        this.#runner = this.#newRunner(desired, pod);
        this.#runs = desired;
        return false;
      }
    }
    notePod(root, uidOf(desired), desired.kind === 'static');
    this.#runner = this.#newRunner(desired, pod);
    this.#runs = desired;
    this.#runner.start();
    this.#publisher.publish();
    return true;
  }

  #newRunner(desired: Desired, pod: Pod): PodRunner {
    const { uid } = pod.metadata ?? {};
    const involved = {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: this.#namespace,
      name: this.#name,
      ...(uid ? { uid } : {}),
    };
    return new PodRunner(pod, uidOf(desired), this.#deps, this.#deps.recorder(involved), () =>
      this.#publisher.publish(),
    );
  }

  async #end(runner: PodRunner): Promise<void> {
    await runner.stop(this.#graceMs());
    if (this.#isShutDown) return;
    const runs = this.#runs;
    if (runs?.kind === 'api') {
      await this.#publisher.flushed();
      await this.#finishDeletion(runs.pod);
    }
    await runner.discard();
    this.#runner = undefined;
    this.#runs = undefined;
    if (runs?.kind === 'static' && this.#desired?.kind !== 'static') await this.#removeMirror();
  }

  async #finishDeletion({ metadata }: Pod): Promise<void> {
    const key = { namespace: this.#namespace, name: this.#name };
    const options = { gracePeriodSeconds: 0, preconditions: { uid: metadata?.uid } };
    await this.#deps.kube.delete(PODS, key, options).catch((error: unknown) => {
      if (!isNotFound(error)) this.#deps.log.warn({ err: error, pod: this.#name }, 'pod could not be deleted');
    });
  }

  async #removeMirror(): Promise<void> {
    const { kube, log } = this.#deps;
    try {
      const mirror = await getIfPresent(kube, PODS, { namespace: this.#namespace, name: this.#name });
      if (mirror !== undefined && isMirror(mirror)) await removeMirror(kube, mirror);
    } catch (error) {
      log.warn({ err: error, pod: this.#name }, 'mirror pod could not be removed');
    }
  }

  async #publish(): Promise<void> {
    const [runner, runs] = [this.#runner, this.#runs];
    if (runner === undefined || runs === undefined) return;
    const { kube, clock } = this.#deps;
    let uid = runner.uid;
    if (runs.kind === 'static') {
      const mirror = await this.#mirror(runner, runs.source);
      if (mirror === undefined) return;
      uid = mirror.metadata?.uid ?? '';
    }
    const key = { namespace: this.#namespace, name: this.#name };
    const withStatus = (pod: Pod): Pod =>
      pod.metadata?.uid === uid ? { ...pod, status: runner.status(pod.status) } : pod;
    try {
      await updateStatus(kube, PODS, key, withStatus, { clock });
      if (runs.kind === 'api' && runner.hasStandIn) await this.#sayStandIn(runs.pod);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #mirror(runner: PodRunner, source: StaticPod): Promise<Pod | undefined> {
    const { kube, nodeName, clock, nodeUid } = this.#deps;
    const uid = nodeUid();
    if (uid === undefined) throw new Error('the Node object is not there yet');
    return ensureMirror(kube, source, {
      node: { name: nodeName, uid },
      now: clock.now(),
      isStandIn: runner.hasStandIn,
    });
  }

  async #sayStandIn({ metadata }: Pod): Promise<void> {
    if (metadata?.annotations?.[STAND_IN] === 'true') return;
    const key = { namespace: this.#namespace, name: this.#name };
    await this.#deps.kube.patch(PODS, key, {
      type: 'merge',
      body: { metadata: { annotations: { [STAND_IN]: 'true' } } },
    });
  }
}

function podOf(desired: Desired): Pod {
  return desired.kind === 'static' ? desired.source.pod : desired.pod;
}

function uidOf(desired: Desired): string {
  return desired.kind === 'static' ? desired.source.hash : (desired.pod.metadata?.uid ?? '');
}
