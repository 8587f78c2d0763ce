import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { type Log, silentLog } from '../controller/log.ts';
import { updateStatus } from '../controller/status.ts';
import { type Clock, sleep, systemClock } from '../kube/clock.ts';
import { minutes, seconds } from '../kube/duration.ts';
import { DEFAULT_CORRELATION } from '../kube/event-correlation.ts';
import { EventWriter } from '../kube/event-writer.ts';
import { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import { PODS } from '../kube/resource.ts';
import { type Lock, tryLock } from '../staticpod/node/lock-file.ts';
import { Heartbeat } from './heartbeat.ts';
import type { HostedPod } from './hosted-pod.ts';
import { endLeftover, leftoverPods } from './leftover-pods.ts';
import { isMirror, STAND_IN } from './mirror-pod.ts';
import { podLimit } from './pod-limit.ts';
import type { PodRunner } from './pod-runner.ts';
import { PodSlot, type SlotDeps } from './pod-slot.ts';
import { Power } from './power.ts';
import { startTimeOf } from './process.ts';
import { type ProgramOptions, Programs } from './programs.ts';
import { listStaticPods, ManifestDirectory, type StaticPod } from './static-pods.ts';
import type { IssueToken } from './volumes.ts';

export interface LocalNodeOptions {
  readonly name: string;
  /** The root directory of the node: what pods know as `/etc/kubernetes` is `<root>/etc/kubernetes`. */
  readonly root: string;
  readonly kube: Kube;
  /** Of the node and all its pods. Linux takes every address in 127.0.0.0/8 without asking. */
  readonly address?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly programs?: ProgramOptions | undefined;
  /** For all containers. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** For pods without a service account: static pods above all. */
  readonly kubeconfig?: string | undefined;
  readonly issueToken?: IssueToken | undefined;
  readonly clock?: Clock | undefined;
  readonly log?: Log | undefined;
}

/** Below the root: where kubelets look for manifests. */
export const MANIFESTS = 'etc/kubernetes/manifests';
/** Containers that a stopping node must wait for get no more than this. */
const STOP_GRACE_MS = seconds(10);
/** What an earlier node left gets this long to end before a new pod takes its place. */
const LEFTOVER_GRACE_MS = seconds(5);
const FINAL_WORDS_MS = seconds(5);
const REFRESH_MS = minutes(1);

/** A node that runs pods as processes of this machine. */
export class LocalNode {
  readonly name: string;
  readonly root: string;
  readonly address: string;
  readonly power: Power;
  readonly #options: LocalNodeOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #events: EventWriter;
  readonly #heartbeat: Heartbeat;
  readonly #manifests: ManifestDirectory;
  readonly #pods: Informer<Pod>;
  readonly #slots = new Map<string, PodSlot>();
  readonly #deps: SlotDeps;
  readonly #programs: Programs;
  readonly #stop = new AbortController();
  readonly #hosted = new Map<string, HostedPod>();
  #mostPods: number;
  #lock: Lock | undefined;
  #staticKeys = new Set<string>();
  #background: Promise<unknown>[] = [];

  constructor(options: LocalNodeOptions) {
    const { name, kube, address = '127.0.0.1', clock = systemClock, log = silentLog } = options;
    this.name = name;
    this.root = resolve(options.root);
    this.address = address;
    this.power = new Power(this.root, clock);
    this.#options = options;
    this.#clock = clock;
    this.#log = log.child({ node: name });
    this.#mostPods = podLimit(this.root);
    this.#programs = new Programs(options.programs);
    const onError = (error: unknown) => this.#log.debug({ err: error }, 'event or watch failed');
    this.#events = new EventWriter(kube, { clock, correlation: DEFAULT_CORRELATION, host: name, onError });
    const hasStandIns = ['kube-apiserver', 'etcd'].some(program => this.#programs.find(program)?.isStandIn === true);
    const annotations = { ...options.annotations, ...(hasStandIns ? { [STAND_IN]: 'true' } : {}) };
    const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', ...options.labels };
    const mostPods = () => this.#mostPods;
    this.#heartbeat = new Heartbeat({
      name,
      address,
      labels,
      annotations,
      kube,
      clock,
      log: this.#log,
      mostPods,
      power: this.power,
    });
    this.#manifests = new ManifestDirectory(join(this.root, MANIFESTS), name, clock, {
      pods: pods => this.#wantStatic(pods),
      broken: (file, message) => this.#reportBroken(file, message),
    });
    const selection = { fieldSelector: `spec.nodeName=${name}` };
    this.#pods = new Informer<Pod>(kube, PODS, { selection, clock, onError });
    this.#deps = {
      root: this.root,
      nodeName: name,
      address,
      kube,
      clock,
      log: this.#log,
      programs: this.#programs,
      shims: join(this.root, 'run/rotunda/bin'),
      env: { ROTUNDA_SUPERVISOR: join(this.root, 'run/rotunda/supervisor.json'), ...options.env },
      kubeconfig: options.kubeconfig,
      issueToken: options.issueToken,
      nodeUid: () => this.#heartbeat.uid,
      recorder: involved => this.#events.recorder('kubelet', involved),
    };
  }

  /** Resolves when the API knows the node. */
  get registered(): Promise<void> {
    return this.#heartbeat.registered;
  }

  /** Begins to run pods. Static pods need no API. Throws when another process already runs this root. */
  async start(): Promise<void> {
    const run = join(this.root, 'run/rotunda');
    mkdirSync(run, { recursive: true });
    this.#lock = tryLock(join(run, 'node.lock'));
    if (this.#lock === undefined) throw new Error(`another process runs the node at ${this.root}`);
    const identity = { pid: process.pid, startTime: startTimeOf(process.pid) };
    writeFileSync(join(run, 'supervisor.json'), JSON.stringify(identity));
    this.#programs.writeShims(this.#deps.shims);
    await this.#endOldStaticPods();
    this.#manifests.start();
    this.#heartbeat.start();
    this.#pods.subscribe({
      add: pod => this.#wantFromApi(pod),
      update: (_, pod) => this.#wantFromApi(pod),
      delete: pod => this.#forgetFromApi(pod),
    });
    this.#pods.start();
    this.#background = [this.#cleanUpWhenSynced(), this.#refreshVolumes()];
  }

  /** Ends all pods and says good-bye. What the pods are is kept, so that a later start goes on with them. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#manifests.stop();
    const slots = [...this.#slots.values()];
    await Promise.all(slots.map(slot => slot.shutDown(STOP_GRACE_MS)));
    const said = Promise.all(slots.map(slot => slot.flushed()));
    const limit = new AbortController();
    await Promise.race([said, sleep(this.#clock, FINAL_WORDS_MS, limit.signal).catch(() => {})]);
    limit.abort();
    await Promise.all(slots.map(slot => slot.closePublisher()));
    await this.#pods.stop();
    await this.#heartbeat.stop();
    await this.#events.stop();
    await Promise.allSettled(this.#background);
    this.#lock?.release();
  }

  /** The kubelet starts: only then it reads its configuration, and it says at once that it is there. */
  async kubeletStarts(): Promise<void> {
    await this.#heartbeat.renew();
    const mostPods = podLimit(this.root);
    if (mostPods === this.#mostPods) return;
    this.#mostPods = mostPods;
    await this.#heartbeat.confirm();
  }

  /** Shows a pod of this node that runs inside of this process. */
  async host(pod: HostedPod, signal: AbortSignal): Promise<void> {
    this.#hosted.set(pod.key, pod);
    await pod.show(signal);
  }

  /** What runs under a name inside of this process. */
  hosted(namespace: string, name: string): HostedPod | undefined {
    return this.#hosted.get(`${namespace}/${name}`);
  }

  /** What runs under a name now. */
  runner(namespace: string, name: string): PodRunner | undefined {
    return this.#slots.get(`${namespace}/${name}`)?.runner;
  }

  #wantStatic(pods: readonly StaticPod[]): void {
    if (this.#stop.signal.aborted) return;
    const keys = new Set<string>();
    for (const source of pods) {
      const key = keyOf(source.pod);
      keys.add(key);
      this.#slot(key).want({ kind: 'static', source });
    }
    for (const key of this.#staticKeys.difference(keys)) this.#slots.get(key)?.want(undefined);
    this.#staticKeys = keys;
  }

  #wantFromApi(pod: Pod): void {
    if (this.#stop.signal.aborted) return;
    const key = keyOf(pod);
    if (this.#hosted.has(key)) return;
    if (this.#staticKeys.has(key) || isMirror(pod)) {
      const slot = this.#slots.get(key);
      if (slot === undefined) void this.#removeLostMirror(pod);
      else slot.recheck();
      return;
    }
    if (!this.#slots.has(key) && !isOver(pod) && this.#isFull()) void this.#refuse(pod);
    else this.#slot(key).want({ kind: 'api', pod: structuredClone(pod) });
  }

  #isFull(): boolean {
    return [...this.#slots.values()].filter(slot => slot.runner !== undefined).length >= this.#mostPods;
  }

  async #refuse({ metadata }: Pod): Promise<void> {
    const { name = '', namespace = '' } = metadata ?? {};
    const most = this.#mostPods;
    const message = `Node didn't have enough resource: pods, requested: 1, used: ${most}, capacity: ${most}`;
    const refused = (pod: Pod): Pod => ({
      ...pod,
      status: { ...pod.status, phase: 'Failed', reason: 'OutOfpods', message },
    });
    await updateStatus(this.#options.kube, PODS, { name, namespace }, refused, { clock: this.#clock }).catch(
      (error: unknown) => this.#log.warn({ err: error, pod: name }, 'pod could not be refused'),
    );
  }

  #forgetFromApi(pod: Pod): void {
    if (this.#stop.signal.aborted) return;
    const slot = this.#slots.get(keyOf(pod));
    if (slot === undefined) return;
    if (slot.isStatic) slot.recheck();
    else slot.want(undefined);
  }

  #slot(key: string): PodSlot {
    const existing = this.#slots.get(key);
    if (existing !== undefined) return existing;
    const [namespace = '', name = ''] = key.split('/');
    const slot: PodSlot = new PodSlot(namespace, name, this.#deps, () => {
      if (this.#slots.get(key) === slot && slot.uids.length === 0) this.#slots.delete(key);
    });
    this.#slots.set(key, slot);
    return slot;
  }

  /** A manifest that changed while no node was there: its old processes would be in the way of the new ones. */
  async #endOldStaticPods(): Promise<void> {
    const known = new Set(listStaticPods(join(this.root, MANIFESTS), this.name).map(({ hash }) => hash));
    const old = leftoverPods(this.root).filter(({ uid, isStatic }) => isStatic !== false && !known.has(uid));
    await Promise.all(old.map(({ uid }) => endLeftover(this.root, uid, LEFTOVER_GRACE_MS, this.#clock)));
  }

  async #cleanUpWhenSynced(): Promise<void> {
    try {
      await this.#pods.synced;
    } catch {
      return;
    }
    const known = this.#knownUids();
    const gone = leftoverPods(this.root).filter(({ uid }) => !known.has(uid));
    await Promise.all(gone.map(({ uid }) => endLeftover(this.root, uid, LEFTOVER_GRACE_MS, this.#clock)));
  }

  #knownUids(): Set<string> {
    return new Set([...this.#slots.values()].flatMap(slot => slot.uids));
  }

  async #removeLostMirror({ metadata }: Pod): Promise<void> {
    const { name = '', namespace = '', uid } = metadata ?? {};
    const options = { gracePeriodSeconds: 0, preconditions: { uid } };
    await this.#options.kube.delete(PODS, { name, namespace }, options).catch((error: unknown) => {
      this.#log.debug({ err: error, pod: name }, 'mirror pod without manifest could not be removed');
    });
  }

  async #refreshVolumes(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await sleep(this.#clock, REFRESH_MS, signal).catch(() => {});
      for (const slot of signal.aborted ? [] : this.#slots.values()) {
        await slot.refresh().catch((error: unknown) => this.#log.debug({ err: error }, 'volumes are not up to date'));
      }
    }
  }

  #reportBroken(file: string, message: string): void {
    this.#log.warn({ file, why: message }, 'manifest cannot be used');
    const involved = { apiVersion: 'v1', kind: 'Node', name: this.name, uid: this.name };
    this.#events.recorder('kubelet', involved).event('Warning', 'InvalidManifest', `${file}: ${message}`);
  }
}

function isOver({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

function keyOf({ metadata }: Pod): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}
