import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import type { Log } from '../controller/log.ts';
import type { Clock } from '../kube/clock.ts';
import { getIfPresent } from '../kube/get.ts';
import { mergeOwnerReferences } from '../kube/metadata.ts';
import type { Kube } from '../kube/port.ts';
import { type KubeObject, type ObjectKey, type Resource, SECRETS } from '../kube/resource.ts';
import type { Keys } from '../pki/keys.ts';
import { withDescriptions } from './annotations.ts';
import type { ObjectConfig, SignerConfig } from './config.ts';
import { type Decision, regenerate } from './decision.ts';
import type { ObjectLocks } from './locks.ts';
import { bringBack, clearLeftAside } from './recreate.ts';
import { annotationsOf, TLS_SECRET, withTlsType } from './secret.ts';

/** What the ensure procedures need from the world. */
export interface Rotation {
  readonly kube: Kube;
  /** Where decisions read from: a cache, or the API itself. */
  readonly objects: Objects;
  readonly clock: Clock;
  readonly keys: Keys;
  readonly events: Events;
  /** Shared by all units of a process, so that those with a common signer or bundle take turns (W-5). */
  readonly locks: ObjectLocks;
  readonly log?: Pick<Log, 'info' | 'warn'> | undefined;
}

export interface Events {
  event(type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** A source of objects that never goes back behind what `wrote` was told (W-4). */
export interface Objects {
  read<T extends KubeObject>(resource: Resource<T>, key: ObjectKey): Promise<T | undefined>;
  wrote<T extends KubeObject>(resource: Resource<T>, object: T): void;
}

/** Reads straight from the API, as the etcd operator does. */
export function liveObjects(kube: Kube): Objects {
  return { read: (resource, key) => getIfPresent(kube, resource, key), wrote: () => {} };
}

/** The copy an ensure procedure works on: metadata and type as configured, content as stored. */
export interface PreparedSecret {
  readonly before: Secret | undefined;
  readonly secret: Secret;
  /** The content had to go with the wrong type: regenerate now (Y-3). */
  readonly emptied: boolean;
}

/** Steps 1 and 2 of ensuring a signer or target (spec 10, 7.1); undefined when another writer was first. */
export async function prepareSecret(config: SignerConfig, rotation: Rotation): Promise<PreparedSecret | undefined> {
  const { namespace, name } = config;
  const found = await rotation.objects.read(SECRETS, { namespace, name });
  const before = found ?? (await bringBack({ namespace, name }, rotation));
  if (before === 'lost') return undefined;
  if (before === 'never set aside') {
    const secret = withMetadata({ metadata: { namespace, name }, type: TLS_SECRET }, config);
    return { before: undefined, secret, emptied: false };
  }
  if (config.refreshOnlyWhenExpired) return { before, secret: before, emptied: false };
  if (found !== undefined) await clearLeftAside(found, rotation);
  const { secret, emptied } = withTlsType(withMetadata(before, config));
  return { before, secret, emptied };
}

/** The first rule that says regenerate gives the reason; content that had to go is the last of them (Y-3). */
export function decidePrepared({ before, emptied }: PreparedSecret, byRules: Decision): Decision {
  if (!emptied || byRules.action === 'regenerate') return byRules;
  return regenerate('Y-3', `type was ${before?.type ?? 'unset'} and the certificate or its key is missing`);
}

/** Adds owner and descriptive annotations; returns the same object when nothing is missing (O-1, M-1). */
export function withMetadata<T extends KubeObject>(object: T, config: ObjectConfig): T {
  const annotations = withDescriptions(annotationsOf(object), config.additionalAnnotations ?? {});
  const owners = mergeOwnerReferences(object.metadata?.ownerReferences ?? [], config.owner ? [config.owner] : []);
  if (!annotations.changed && !owners.changed) return object;
  const metadata = {
    ...object.metadata,
    ...(annotations.changed ? { annotations: annotations.result } : {}),
    ...(owners.changed ? { ownerReferences: owners.result } : {}),
  };
  return { ...object, metadata };
}
