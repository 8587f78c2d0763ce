import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { seconds } from '../kube/duration.ts';
import { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import { keyOf, PODS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { UNREVISIONED } from '../kube-apiserver/operand-objects.ts';
import { unloadable } from '../staticpod/loadable.ts';
import { runCertSyncer } from '../staticpod/node/cert-syncer.ts';
import type { Files } from '../staticpod/node/files.ts';
import { runInstaller } from '../staticpod/node/installer.ts';
import { parseInstallerOptions } from '../staticpod/node/installer-options.ts';
import { parsePruneOptions, runPrune } from '../staticpod/node/prune.ts';
import { Component, type ComponentWorld, type Tools } from './component.ts';
import { MANIFESTS, RESOURCES, type RunningPod, type TwinNode } from './node.ts';
import { GRACE_MS, tellOfNode } from './node-lifecycle.ts';

/** A container runtime needs so long for a program, and a kube-apiserver for becoming ready. */
const START_MS = seconds(2);
const READY_MS = seconds(8);
/** A server that is told to stop answers for a while, then ends. */
const STOP_MS = seconds(5);

/** The processes of a static pod that the trust graph knows. */
const PROCESSES: Readonly<Record<string, readonly string[]>> = {
  'kube-apiserver': [
    'kube-apiserver',
    'cert-syncer',
    'cert-regeneration-controller',
    'check-endpoints',
    'watch-termination',
  ],
};

/**
 * A kubelet as a small model: it runs static pods from manifests and the pods that our operators bind to its node, and tells the API how
 * they are. What runs in those pods is real: installer, pruner and cert-syncer.
 */
export class Kubelet {
  readonly #world: ComponentWorld;
  readonly #node: TwinNode;
  readonly #component: Component;
  readonly #syncer: Component;
  /** Pods whose program runs, by uid. */
  readonly #programs = new Map<string, Component>();
  #reads = 0;
  #stops = 0;

  constructor(world: ComponentWorld, node: TwinNode) {
    this.#world = world;
    this.#node = node;
    this.#component = new Component(world, `kubelet on ${node.name}`, (tools, signal) => this.#run(tools, signal));
    this.#syncer = new Component(world, `cert-syncer on ${node.name}`, ({ kube, clock, log, events }, signal) =>
      runCertSyncer(
        {
          namespace: 'openshift-kube-apiserver',
          destinationDir: `${RESOURCES}/${UNREVISIONED.directory}`,
          configMaps: UNREVISIONED.configMaps,
          secrets: UNREVISIONED.secrets,
          contentCheck: unloadable,
        },
        { kube, files: mortal(node.disk.files, signal), lock: node.lock, clock, log, events },
        signal,
      ),
    );
    node.onKubelet = verb => (verb === 'start' ? this.start() : this.stop());
  }

  get components(): Component[] {
    return [this.#component, this.#syncer, ...this.#programs.values()];
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
    this.#syncer.stop();
    for (const program of this.#programs.values()) program.stop();
    this.#programs.clear();
    for (const pod of this.#node.pods.values()) endOf(pod);
    this.#node.pods.clear();
  }

  async #run({ kube, clock }: Tools, signal: AbortSignal): Promise<void> {
    const selection = { fieldSelector: `spec.nodeName=${this.#node.name}` };
    const pods = new Informer<Pod>(kube, PODS, { selection, clock });
    pods.subscribe({
      add: pod => this.#take(pod, kube, signal),
      update: (_before, pod) => this.#take(pod, kube, signal),
      delete: pod => this.#programs.get(uidOf(pod))?.stop(),
    });
    pods.start();
    const changes = this.#watchManifests(signal);
    try {
      await pods.synced;
      while (!signal.aborted) {
        await this.#runStaticPods(kube, pods, signal);
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

  #take(pod: Pod, kube: Kube, signal: AbortSignal): void {
    const { metadata = {}, status } = pod;
    if (metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined) return;
    if (metadata.deletionTimestamp !== undefined) {
      this.#programs.get(uidOf(pod))?.stop();
      this.#programs.delete(uidOf(pod));
      void kube.delete(PODS, keyOf(pod), { gracePeriodSeconds: 0 }).catch(() => {});
      return;
    }
    if (this.#programs.has(uidOf(pod)) || status?.phase === 'Succeeded' || status?.phase === 'Failed') return;
    const app = metadata.labels?.['app'];
    if (app === 'installer' || app === 'pruner') this.#runProgram(pod, app, kube, signal);
    else if (status?.phase !== 'Running' || !isReadyPod(pod))
      void setPhase(kube, pod, 'Running', this.#world.time.nowMs).catch(() => {});
  }

  #runProgram(pod: Pod, app: 'installer' | 'pruner', kube: Kube, kubelet: AbortSignal): void {
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
      // Its kubelet says so, as soon as it can.
      while (!kubelet.aborted) {
        const phase = failure === '' ? 'Succeeded' : 'Failed';
        const isTold = await setPhase(kube, pod, phase, this.#world.time.nowMs, failure).then(
          () => true,
          error => (error as { code?: unknown }).code === 404,
        );
        if (isTold) break;
        await this.#world.time.after(seconds(1));
      }
    });
    this.#programs.set(uidOf(pod), program);
    program.start();
  }

  async #runStaticPods(kube: Kube, pods: Informer<Pod>, signal: AbortSignal): Promise<void> {
    const { disk, pods: running } = this.#node;
    for (const file of disk.names(MANIFESTS) ?? []) {
      const text = disk.text(`${MANIFESTS}/${file}`);
      if (file.startsWith('.') || text === undefined) continue;
      const name = file.replace(/(-pod)?\.yaml$/, '');
      const current = running.get(name);
      if (current?.text !== text) {
        const manifest = JSON.parse(text) as Pod;
        if (current !== undefined) await this.#stopPod(name, current, signal);
        if (signal.aborted) return;
        await this.#startPod(name, text, manifest, signal);
      }
      void this.#mirror(name, kube, pods, signal);
    }
  }

  async #stopPod(name: string, pod: RunningPod, signal: AbortSignal): Promise<void> {
    pod.isReady = false;
    this.#world.tell(`${name} on ${this.#node.name} stops, revision ${pod.revision}`);
    await this.#world.time.after(STOP_MS, signal).catch(() => {});
    endOf(pod);
    this.#node.pods.delete(name);
    if (name === 'kube-apiserver') this.#syncer.stop();
    this.#world.time.changed();
  }

  async #startPod(name: string, text: string, manifest: Pod, signal: AbortSignal): Promise<void> {
    await this.#world.time.after(START_MS, signal).catch(() => {});
    if (signal.aborted) return;
    const revision = manifest.metadata?.labels?.['revision'] ?? '0';
    const hands = new Map((PROCESSES[name] ?? []).map(process => [process, this.#node.begin()]));
    const pod: RunningPod = { text, manifest, revision, hands, isReady: false };
    this.#node.pods.set(name, pod);
    this.#world.tell(`${name} on ${this.#node.name} starts, revision ${revision}`);
    if (name === 'kube-apiserver') this.#syncer.start();
    this.#world.time.changed();
    void this.#world.time.after(READY_MS).then(() => {
      if (this.#node.pods.get(name) !== pod) return;
      pod.isReady = true;
      this.#world.time.changed();
      this.#world.tell(`${name} on ${this.#node.name} is ready`);
      this.#onReady();
    });
  }

  #onReady: () => void = () => {};

  /** Tells the API of a static pod, again and again until it is told. */
  async #mirror(name: string, kube: Kube, pods: Informer<Pod>, signal: AbortSignal): Promise<void> {
    const attempt = ++this.#reads;
    this.#onReady = () => void this.#mirror(name, kube, pods, signal);
    while (!signal.aborted && attempt === this.#reads) {
      const pod = this.#node.pods.get(name);
      if (pod === undefined) return;
      try {
        await this.#writeMirror(pod, kube);
        return;
      } catch {
        await this.#world.time.after(seconds(1), signal).catch(() => {});
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
    await setPhase(kube, mirror, 'Running', this.#world.time.nowMs, '', isReady, this.#node.address);
  }
}

/** Files of a process that may be dead: the dead write nothing. */
export function mortal(files: Files, signal: AbortSignal): Files {
  const entries = Object.entries(files).map(([name, work]) => [
    name,
    async (...args: never[]) => {
      signal.throwIfAborted();
      return (work as (...args: never[]) => Promise<unknown>)(...args);
    },
  ]);
  return Object.fromEntries(entries) as Files;
}

function endOf({ hands }: RunningPod): void {
  for (const held of hands.values()) held.isOver = true;
}

async function setPhase(
  kube: Kube,
  pod: Pod,
  phase: string,
  nowMs: number,
  message = '',
  isReady = phase === 'Running',
  podIP?: string,
): Promise<void> {
  const stored = await kube.get(PODS, keyOf(pod));
  if (uidOf(stored) !== uidOf(pod)) return;
  const now = formatRfc3339(new Date(nowMs));
  const status = isReady ? 'True' : 'False';
  const known = stored.status?.conditions?.find(({ type }) => type === 'Ready');
  const since = known?.status === status ? known.lastTransitionTime : now;
  const state =
    phase === 'Running'
      ? { running: { startedAt: stored.status?.startTime ?? now } }
      : { terminated: { exitCode: message === '' ? 0 : 1, finishedAt: now, message } };
  await kube.updateStatus(PODS, {
    ...stored,
    status: {
      ...stored.status,
      phase,
      startTime: stored.status?.startTime ?? now,
      ...(podIP === undefined ? {} : { podIP, hostIP: podIP }),
      conditions: [{ type: 'Ready', status, ...(since === undefined ? {} : { lastTransitionTime: since }) }],
      containerStatuses: (stored.spec?.containers ?? []).map(({ name }) => ({
        name,
        image: '',
        imageID: '',
        restartCount: 0,
        ready: isReady,
        state,
      })),
    },
  });
}

function isReadyPod({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}

function uidOf(pod: Pod): string {
  return pod.metadata?.uid ?? '';
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
