import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { seconds } from '../kube/duration.ts';
import type { Kube } from '../kube/port.ts';
import { PODS } from '../kube/resource.ts';
import type { ComponentWorld } from './component.ts';
import { MANIFESTS, type RunningPod, type TwinNode } from './node.ts';
import { setPhase } from './pod-phase.ts';

/** A container runtime needs so long for a program. */
const START_MS = seconds(2);
/** A server that is told to stop answers for a while, then ends. */
const STOP_MS = seconds(5);
const TELL_AGAIN_MS = seconds(1);

/** What runs in a static pod, beside its hands on files. */
export interface Operand {
  /** The processes that the trust graph knows. */
  readonly processes: readonly string[];
  /** The pod has begun: says whenever it becomes ready or is so no more. */
  begin(pod: RunningPod, ready: (isReady: boolean) => void): RunningOperand;
}

export interface RunningOperand {
  /** It was told to stop, or has lost power. */
  end(how: 'stopped' | 'killed'): void;
}

/** The part of a kubelet that runs static pods from manifests and tells the API of them, as a small model. */
export class StaticPods {
  readonly #world: ComponentWorld;
  readonly #node: TwinNode;
  readonly #operands: Readonly<Record<string, Operand>>;
  readonly #running = new Map<string, RunningOperand>();
  /** By pod: which attempt at telling is the newest. */
  readonly #attempts = new Map<string, number>();
  /** The kubelet that can tell the API; undefined: none runs. */
  #teller: { readonly kube: Kube; readonly signal: AbortSignal } | undefined;

  constructor(world: ComponentWorld, node: TwinNode, operands: Readonly<Record<string, Operand>>) {
    this.#world = world;
    this.#node = node;
    this.#operands = operands;
  }

  /** Makes run what the manifests say. */
  async sync(kube: Kube, signal: AbortSignal): Promise<void> {
    this.#teller = { kube, signal };
    const { disk, pods } = this.#node;
    for (const file of disk.names(MANIFESTS) ?? []) {
      const text = disk.text(`${MANIFESTS}/${file}`);
      if (file.startsWith('.') || text === undefined) continue;
      const name = file.replace(/(-pod)?\.yaml$/, '');
      const current = pods.get(name);
      if (current?.text !== text) {
        const manifest = JSON.parse(text) as Pod;
        if (current !== undefined) await this.#stop(name, current, signal);
        if (signal.aborted) return;
        await this.#start(name, text, manifest, signal);
      }
      void this.#mirror(name);
    }
  }

  /** The machine loses power. */
  killAll(): void {
    for (const [name, pod] of this.#node.pods) this.#end(name, pod, 'killed');
  }

  async #stop(name: string, pod: RunningPod, signal: AbortSignal): Promise<void> {
    pod.isReady = false;
    this.#world.tell(`${name} on ${this.#node.name} stops, revision ${pod.revision}`);
    await this.#world.time.after(STOP_MS * this.#node.slowness, signal).catch(() => {});
    // It may have lost power meanwhile.
    if (this.#node.pods.get(name) === pod) this.#end(name, pod, 'stopped');
    this.#world.time.changed();
  }

  #end(name: string, pod: RunningPod, how: 'stopped' | 'killed'): void {
    for (const held of pod.hands.values()) held.isOver = true;
    this.#node.pods.delete(name);
    this.#running.get(name)?.end(how);
    this.#running.delete(name);
  }

  async #start(name: string, text: string, manifest: Pod, signal: AbortSignal): Promise<void> {
    await this.#world.time.after(START_MS * this.#node.slowness, signal).catch(() => {});
    if (signal.aborted) return;
    const revision = manifest.metadata?.labels?.['revision'] ?? '0';
    const operand = this.#operands[name];
    const hands = new Map((operand?.processes ?? []).map(process => [process, this.#node.begin()]));
    const pod: RunningPod = { text, manifest, revision, hands, isReady: false };
    this.#node.pods.set(name, pod);
    this.#world.tell(`${name} on ${this.#node.name} starts, revision ${revision}`);
    this.#world.time.changed();
    const running = operand?.begin(pod, isReady => {
      if (this.#node.pods.get(name) !== pod || pod.isReady === isReady) return;
      pod.isReady = isReady;
      this.#world.time.changed();
      this.#world.tell(`${name} on ${this.#node.name} is ${isReady ? 'ready' : 'not ready any more'}`);
      void this.#mirror(name);
    });
    if (running !== undefined) this.#running.set(name, running);
  }

  /** Tells the API of a static pod, again and again until it is told. */
  async #mirror(name: string): Promise<void> {
    const attempt = (this.#attempts.get(name) ?? 0) + 1;
    this.#attempts.set(name, attempt);
    const teller = this.#teller;
    while (teller !== undefined && !teller.signal.aborted && attempt === this.#attempts.get(name)) {
      const pod = this.#node.pods.get(name);
      if (pod === undefined) return;
      try {
        await this.#writeMirror(pod, teller.kube);
        return;
      } catch {
        await this.#world.time.after(TELL_AGAIN_MS, teller.signal).catch(() => {});
      }
    }
  }

  async #writeMirror({ manifest, isReady }: RunningPod, kube: Kube): Promise<void> {
    const { name: short, namespace } = manifest.metadata ?? {};
    const name = `${short}-${this.#node.name}`;
    const key = { namespace, name };
    const hash = String(hashOf(JSON.stringify(manifest)));
    const existing = await kube.get(PODS, key).catch(unlessMissing);
    const annotations = {
      ...manifest.metadata?.annotations,
      'kubernetes.io/config.mirror': hash,
      'kubernetes.io/config.hash': hash,
    };
    const isCurrent = existing?.metadata?.annotations?.['kubernetes.io/config.mirror'] === hash;
    if (existing !== undefined && !isCurrent) await kube.delete(PODS, key, { gracePeriodSeconds: 0 });
    const mirror = isCurrent
      ? existing
      : await kube.create(PODS, {
          ...manifest,
          metadata: { ...manifest.metadata, name, annotations },
          spec: { ...(manifest.spec as NonNullable<Pod['spec']>), nodeName: this.#node.name },
        });
    await setPhase(kube, mirror, {
      phase: 'Running',
      nowMs: this.#world.time.nowMs,
      isReady,
      podIP: this.#node.address,
    });
  }
}

function unlessMissing(error: unknown): undefined {
  if ((error as { code?: unknown }).code !== 404) throw error;
  return undefined;
}

function hashOf(text: string): number {
  let hash = 0;
  for (let index = 0; index < text.length; index++) hash = (Math.imul(hash, 31) + text.charCodeAt(index)) | 0;
  return hash >>> 0;
}
