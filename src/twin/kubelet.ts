import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { seconds } from '../kube/duration.ts';
import { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import { keyOf, PODS } from '../kube/resource.ts';
import { unloadable } from '../staticpod/loadable.ts';
import { runInstaller } from '../staticpod/node/installer.ts';
import { parseInstallerOptions } from '../staticpod/node/installer-options.ts';
import { parsePruneOptions, runPrune } from '../staticpod/node/prune.ts';
import { Component, type ComponentWorld, type Tools } from './component.ts';
import { mortal } from './mortal.ts';
import { MANIFESTS, type TwinNode } from './node.ts';
import { GRACE_MS, tellOfNode } from './node-lifecycle.ts';
import { isReadyPod, setPhase, uidOf } from './pod-phase.ts';
import { type Operand, StaticPods } from './static-pods.ts';

/** A container runtime needs so long for a program. */
const START_MS = seconds(2);

export interface KubeletOptions {
  readonly world: ComponentWorld;
  readonly node: TwinNode;
  /** What runs in static pods, by their names. */
  readonly operands: Readonly<Record<string, Operand>>;
  /** Real programs that run in static pods. */
  readonly companions: readonly Component[];
}

/**
 * A kubelet as a small model: it runs static pods from manifests and the pods that our operators bind to its node, and tells the API how
 * they are. What runs in the latter is real: installer and pruner.
 */
export class Kubelet {
  readonly #world: ComponentWorld;
  readonly #node: TwinNode;
  readonly #component: Component;
  readonly #staticPods: StaticPods;
  readonly #companions: readonly Component[];
  /** Pods whose program runs, by uid. */
  readonly #programs = new Map<string, Component>();
  /** By uid, why a program failed; empty: it did not. */
  readonly #outcomes = new Map<string, string>();
  /** The kubelet that runs now: what another one has started is for it to tell of. */
  #teller: { readonly kube: Kube; readonly signal: AbortSignal } | undefined;
  #stops = 0;

  constructor({ world, node, operands, companions }: KubeletOptions) {
    this.#world = world;
    this.#node = node;
    this.#component = new Component(world, `kubelet on ${node.name}`, (tools, signal) => this.#run(tools, signal));
    this.#staticPods = new StaticPods(world, node, operands);
    this.#companions = companions;
    node.onKubelet = verb => (verb === 'start' ? this.start() : this.stop());
  }

  get components(): Component[] {
    return [this.#component, ...this.#companions, ...this.#programs.values()];
  }

  start(): void {
    this.#node.kubelet = this.#node.begin();
    this.#component.start();
    tellOfNode(this.#world.api, this.#world.time, this.#node.name, true);
  }

  /** The kubelet ends; what it has started goes on. */
  stop(): void {
    if (this.#node.kubelet !== undefined) this.#node.kubelet.isOver = true;
    this.#node.kubelet = undefined;
    this.#component.stop();
    const { time, api } = this.#world;
    const stopped = ++this.#stops;
    void time.after(GRACE_MS).then(() => {
      if (this.#node.kubelet !== undefined || stopped !== this.#stops) return;
      tellOfNode(api, time, this.#node.name, false);
    });
  }

  /** The machine is back: another boot, and the kubelet begins with what is on the disk. */
  powerOn(): void {
    this.#node.disk.remove('/run/rotunda/boot-id');
    this.#node.disk.remove('/run/rotunda/active-units.json');
    this.start();
  }

  /** The machine loses power: nothing of it runs any more. */
  powerOff(): void {
    this.stop();
    for (const program of this.#programs.values()) program.stop();
    this.#programs.clear();
    this.#outcomes.clear();
    this.#staticPods.killAll();
  }

  async #run({ kube, clock }: Tools, signal: AbortSignal): Promise<void> {
    const selection = { fieldSelector: `spec.nodeName=${this.#node.name}` };
    const pods = new Informer<Pod>(kube, PODS, { selection, clock });
    this.#teller = { kube, signal };
    pods.subscribe({
      add: pod => this.#take(pod, kube),
      update: (_before, pod) => this.#take(pod, kube),
      delete: pod => this.#forget(pod),
    });
    pods.start();
    const changes = this.#watchManifests(signal);
    try {
      while (!signal.aborted) {
        await this.#staticPods.sync(kube, signal);
        await changes.next();
      }
    } finally {
      await pods.stop();
    }
  }

  #watchManifests(signal: AbortSignal): { next(): Promise<void> } {
    let wake = () => {};
    let isNew = false;
    const tell = () => {
      isNew = true;
      wake();
    };
    void this.#node.disk.hostFiles.watch([`${MANIFESTS}/*`], tell, signal).catch(() => {});
    signal.addEventListener('abort', tell, { once: true });
    return {
      next: async () => {
        if (!isNew) await new Promise<void>(resolve => (wake = resolve));
        isNew = false;
      },
    };
  }

  #forget(pod: Pod): void {
    this.#programs.get(uidOf(pod))?.stop();
    this.#programs.delete(uidOf(pod));
    this.#outcomes.delete(uidOf(pod));
  }

  #take(pod: Pod, kube: Kube): void {
    const { metadata = {}, status } = pod;
    if (metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined) return;
    if (metadata.deletionTimestamp !== undefined) {
      this.#forget(pod);
      void kube.delete(PODS, keyOf(pod), { gracePeriodSeconds: 0 }).catch(() => {});
      return;
    }
    if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return;
    if (this.#programs.has(uidOf(pod))) {
      if (this.#outcomes.has(uidOf(pod))) void this.#tellOutcome(pod);
      return;
    }
    const app = metadata.labels?.['app'];
    if (app === 'installer' || app === 'pruner') this.#runProgram(pod, app);
    else if (status?.phase !== 'Running' || !isReadyPod(pod))
      void setPhase(kube, pod, { phase: 'Running', nowMs: this.#world.time.nowMs }).catch(() => {});
  }

  #runProgram(pod: Pod, app: 'installer' | 'pruner'): void {
    const node = this.#node;
    const args = pod.spec?.containers[0]?.args ?? [];
    const name = `${pod.metadata?.name}`;
    const program = new Component(this.#world, name, async (tools, signal) => {
      const files = mortal(node.disk.files, signal);
      let failure = '';
      try {
        await tools.clock.pause?.(START_MS, signal);
        const deps = { ...tools, files, lock: node.lock, contentCheck: unloadable, signal };
        if (app === 'installer') await runInstaller(parseInstallerOptions(args, { NODE_NAME: node.name }), deps);
        else await runPrune(parsePruneOptions(args), deps);
      } catch (error) {
        failure = (error as Error).message;
      }
      if (signal.aborted) return;
      program.stop();
      this.#outcomes.set(uidOf(pod), failure);
      await this.#tellOutcome(pod);
    });
    this.#programs.set(uidOf(pod), program);
    program.start();
  }
  /** Tells the API how a program has ended, again and again until it is told. */
  async #tellOutcome(pod: Pod): Promise<void> {
    const message = this.#outcomes.get(uidOf(pod)) ?? '';
    const phase = message === '' ? 'Succeeded' : 'Failed';
    const teller = this.#teller;
    while (teller !== undefined && !teller.signal.aborted) {
      const isTold = await setPhase(teller.kube, pod, { phase, nowMs: this.#world.time.nowMs, message }).then(
        () => true,
        error => (error as { code?: unknown }).code === 404,
      );
      if (isTold) break;
      await this.#world.time.after(seconds(1));
    }
  }
}
