import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { hostOnDisk } from '../host/on-disk.ts';
import type { Host } from '../host/port.ts';
import type { TakeLock } from '../staticpod/node/writers-lock.ts';
import type { Takes } from '../trust/graph.ts';
import type { Texts } from '../trust/material.ts';
import { Disk } from './disk.ts';
import { Hands } from './hands.ts';
import type { Time } from './time.ts';

/** Where the agent, the installer and the kubelet of OpenShift's layout meet. */
export const MANIFESTS = '/etc/kubernetes/manifests';
export const RESOURCES = '/etc/kubernetes/static-pod-resources';

/** A static pod that runs. */
export interface RunningPod {
  /** As it lies on the disk. */
  readonly text: string;
  readonly manifest: Pod;
  readonly revision: string;
  /** What its processes hold, by the name of the process in the trust graph. */
  readonly hands: Map<string, Hands>;
  isReady: boolean;
}

/** One machine: a disk, what runs on it, and what these processes have in their hands. */
export class TwinNode {
  readonly name: string;
  readonly address: string;
  readonly isControlPlane: boolean;
  readonly disk: Disk;
  readonly host: Host;
  readonly #time: Time;
  readonly #onChange: () => void;
  readonly #locks = new Map<string, Promise<void>>();
  /** Machines that are off run nothing. */
  isOn = true;
  /** How many times as long programs need to start and to stop. */
  slowness = 1;
  /** The kubelet's hands while it runs. */
  kubelet: Hands | undefined;
  /** By the name of the static pod. */
  readonly pods = new Map<string, RunningPod>();
  /** Processes that come and go on their own: pods of users, people. */
  readonly others = new Map<string, Hands>();
  onKubelet: (verb: 'start' | 'stop') => void = () => {};

  constructor(time: Time, name: string, address: string, isControlPlane: boolean, onChange: () => void) {
    this.name = name;
    this.address = address;
    this.isControlPlane = isControlPlane;
    this.#time = time;
    this.#onChange = onChange;
    this.disk = new Disk(() => new Date(time.nowMs));
    this.host = hostOnDisk({
      files: this.disk.hostFiles,
      onService: (verb, unit) => {
        if (unit === 'kubelet.service' && (verb === 'start' || verb === 'stop')) this.onKubelet(verb);
      },
    });
  }

  /** New hands for a process that begins now. */
  begin(): Hands {
    return new Hands(this.disk, this.#time, this.#onChange);
  }

  /** Something on the disk has changed: whoever watches files looks. */
  look(): void {
    this.kubelet?.look();
    for (const { hands } of this.pods.values()) for (const held of hands.values()) held.look();
    for (const held of this.others.values()) held.look();
  }

  /** What a process has of some files; undefined: it does not run, or has them not. */
  have(process: string, files: readonly string[], takes: Takes): Texts | undefined {
    const pod = this.podOf(process);
    const revision = pod?.revision ?? this.pods.get('kube-apiserver')?.revision ?? '0';
    const places = files.map(file => file.replaceAll('<REVISION>', revision).replaceAll('<node>', this.name));
    return this.handsOf(process)?.have(places, takes);
  }

  handsOf(process: string): Hands | undefined {
    if (!this.isOn) return undefined;
    if (process === 'kubelet') return this.kubelet;
    return this.podOf(process)?.hands.get(process) ?? this.others.get(process);
  }

  podOf(process: string): RunningPod | undefined {
    for (const pod of this.pods.values()) if (pod.hands.has(process)) return pod;
    return undefined;
  }

  /** Locks of this node: one holder at a time, in the order of asking. */
  readonly lock: TakeLock = async (path, signal) => {
    signal.throwIfAborted();
    const before = this.#locks.get(path);
    const held = Promise.withResolvers<void>();
    this.#locks.set(path, held.promise);
    await before;
    return { release: () => held.resolve() };
  };
}
