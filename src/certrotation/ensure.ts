import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { Log } from '../controller/log.ts';
import type { Clock } from '../kube/clock.ts';
import { sleep } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { isAlreadyExists, isConflict, isNotFound, KubeError } from '../kube/error.ts';
import { nameForPeople, reportCreate, reportDelete, reportUpdate } from '../kube/events.ts';
import { getIfPresent } from '../kube/get.ts';
import { mergeOwnerReferences } from '../kube/metadata.ts';
import type { Kube } from '../kube/port.ts';
import { type KubeObject, keyOf, type ObjectKey, type Resource, SECRETS } from '../kube/resource.ts';
import type { Keys } from '../pki/keys.ts';
import { withDescriptions } from './annotations.ts';
import type { ObjectConfig, SignerConfig } from './config.ts';
import { type Decision, regenerate } from './decision.ts';
import type { ObjectLocks } from './locks.ts';
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

/** Steps 1 and 2 of ensuring a signer or target (spec 10, 7.1). */
export async function prepareSecret(config: SignerConfig, rotation: Rotation): Promise<PreparedSecret> {
  const { namespace, name } = config;
  const before = await rotation.objects.read(SECRETS, { namespace, name });
  if (before === undefined) {
    return {
      before,
      secret: withMetadata({ metadata: { namespace, name }, type: TLS_SECRET }, config),
      emptied: false,
    };
  }
  if (config.refreshOnlyWhenExpired) return { before, secret: before, emptied: false };
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

/** Stores a signer or target; undefined when another writer was first. Writes nothing when nothing differs (W-8). */
export async function storeSecret(
  before: Secret | undefined,
  wanted: Secret,
  config: SignerConfig,
  rotation: Rotation,
): Promise<Secret | undefined> {
  const changesType = before !== undefined && before.type !== wanted.type;
  if (!changesType || config.useSecretUpdateOnly) return store(SECRETS, before, wanted, rotation);
  try {
    return await write(SECRETS, wanted, 'update', rotation, error => !isImmutable(error));
  } catch (error) {
    if (!isImmutable(error)) throw error;
    return recreate(before, wanted, rotation);
  }
}

/** Creates or updates with the resourceVersion the decision was made on (W-1); undefined when that was lost (W-2, W-3). */
export async function store<T extends Secret | ConfigMap>(
  resource: Resource<T>,
  before: T | undefined,
  wanted: T,
  rotation: Rotation,
): Promise<T | undefined> {
  if (before === wanted) return before;
  return write(resource, wanted, before === undefined ? 'create' : 'update', rotation);
}

/** How often, and how far apart, the create half of a recreation is tried: the only copy of the key is in memory. */
const RECREATE_ATTEMPTS = 6;
const RECREATE_FIRST_PAUSE_MS = seconds(0.1);

/** Changes the type of a Secret where the API refuses that on update (spec 10, 8.4). */
async function recreate(before: Secret, wanted: Secret, rotation: Rotation): Promise<Secret | undefined> {
  const { uid, resourceVersion } = before.metadata ?? {};
  try {
    await rotation.kube.delete(SECRETS, keyOf(before), { preconditions: { uid, resourceVersion } });
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return undefined;
    reportDelete(rotation.events, SECRETS, before, error);
    throw error;
  }
  reportDelete(rotation.events, SECRETS, before);
  const { uid: _uid, resourceVersion: _version, ...metadata } = wanted.metadata ?? {};
  const fresh: Secret = { ...wanted, metadata };
  for (let attempt = 1; ; attempt++) {
    try {
      return await write(SECRETS, fresh, 'create', rotation);
    } catch (error) {
      if (attempt === RECREATE_ATTEMPTS) throw error;
      await sleep(rotation.clock, RECREATE_FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}

async function write<T extends Secret | ConfigMap>(
  resource: Resource<T>,
  wanted: T,
  verb: 'create' | 'update',
  { kube, objects, events, log }: Rotation,
  reportFailure: (error: unknown) => boolean = () => true,
): Promise<T | undefined> {
  const report = verb === 'create' ? reportCreate : reportUpdate;
  let written: T;
  try {
    written = await kube[verb](resource, wanted);
  } catch (error) {
    if (isConflict(error) || isAlreadyExists(error) || (verb === 'update' && isNotFound(error))) return undefined;
    if (reportFailure(error)) report(events, resource, wanted, error);
    throw error;
  }
  objects.wrote(resource, written);
  log?.info({ object: nameForPeople(resource, written) }, `${verb}d`);
  report(events, resource, written);
  return written;
}

function isImmutable(error: unknown): boolean {
  return error instanceof KubeError && error.message.includes('field is immutable');
}
