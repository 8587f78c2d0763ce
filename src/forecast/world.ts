import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { Rotation } from '../certrotation/ensure.ts';
import { liveObjects } from '../certrotation/ensure.ts';
import { ObjectLocks } from '../certrotation/locks.ts';
import { VirtualClock } from '../kube/clock.ts';
import { getIfPresent } from '../kube/get.ts';
import { MemoryKube } from '../kube/memory.ts';
import { CONFIG_MAPS, type KubeObject, type ObjectKey, type Resource, SECRETS } from '../kube/resource.ts';
import { systemKeys } from '../pki/keys.ts';
import type { ObjectRef } from '../trust/object.ts';

/** A change the rotation code announced, before it is known what it leads to. */
export interface Announced {
  readonly change: 'signer' | 'certificate' | 'bundle' | 'hand-over';
  readonly object: ObjectRef;
  readonly reason: string;
}

const ANNOUNCEMENTS = {
  SignerUpdateRequired: { change: 'signer', kind: 'Secret' },
  TargetUpdateRequired: { change: 'certificate', kind: 'Secret' },
  CABundleUpdateRequired: { change: 'bundle', kind: 'ConfigMap' },
  SignerInUseChanged: { change: 'hand-over', kind: 'Secret' },
} as const;

/** A cluster in memory, on a clock of its own, that the real rotation code runs over. */
export class PlanWorld {
  readonly kube = new MemoryKube();
  readonly clock: VirtualClock;
  readonly rotation: Rotation;
  #announced: Announced[] = [];

  constructor(now: Date) {
    this.clock = new VirtualClock(now);
    const event = (_type: string, reason: string, message: string) => this.#hear(reason, message);
    this.rotation = {
      kube: this.kube,
      objects: liveObjects(this.kube),
      clock: this.clock,
      keys: systemKeys,
      events: { event },
      locks: new ObjectLocks(),
    };
  }

  get now(): Date {
    return this.clock.now();
  }

  async seed<T extends KubeObject>(resource: Resource<T>, objects: readonly T[]): Promise<void> {
    for (const object of objects) {
      const { resourceVersion: _version, uid: _uid, ...metadata } = object.metadata ?? {};
      await this.kube.create(resource, { ...object, metadata });
    }
  }

  configMap(key: ObjectKey): Promise<ConfigMap | undefined> {
    return getIfPresent(this.kube, CONFIG_MAPS, key);
  }

  secret(key: ObjectKey): Promise<Secret | undefined> {
    return getIfPresent(this.kube, SECRETS, key);
  }

  /** Creates or replaces. */
  async put<T extends KubeObject>(resource: Resource<T>, object: T): Promise<void> {
    const { name = '', namespace } = object.metadata ?? {};
    const existing = await getIfPresent(this.kube, resource, { name, namespace });
    if (existing === undefined) await this.kube.create(resource, object);
    else
      await this.kube.update(resource, {
        ...existing,
        ...object,
        metadata: { ...existing.metadata, ...object.metadata },
      });
  }

  /** What was announced since the last call, each change of an object once. */
  takeAnnounced(): Announced[] {
    const announced = this.#announced;
    this.#announced = [];
    return announced;
  }

  #hear(reason: string, message: string): void {
    const known = Object.hasOwn(ANNOUNCEMENTS, reason) && ANNOUNCEMENTS[reason as keyof typeof ANNOUNCEMENTS];
    const [, name, namespace, why] =
      /^"([^"]+)" in "([^"]+)" (?:requires a new [^:]+: |becomes "[^"]*" because )([\s\S]*)$/.exec(message) ?? [];
    if (!known || name === undefined || namespace === undefined) return;
    const object = { kind: known.kind, namespace, name };
    this.#announced.push({ change: known.change, object, reason: (why ?? '').split('\n', 1)[0] ?? '' });
  }
}
