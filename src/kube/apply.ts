import type { ConfigMap, Namespace, Pod, Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import { type Clock, sleep, systemClock } from './clock.ts';
import { semanticallyEqual } from './equality.ts';
import { isAlreadyExists, isNotFound, isTransient, KubeError } from './error.ts';
import { type EventRecorder, reportCreate, reportDelete, reportUpdate } from './events.ts';
import { getIfPresent } from './get.ts';
import { type Merged, mergeMetadata, metadataForCreate } from './metadata.ts';
import type { CallOptions, Kube } from './port.ts';
import {
  CONFIG_MAPS,
  type KubeObject,
  keyOf,
  NAMESPACES,
  type ObjectKey,
  POD_DISRUPTION_BUDGETS,
  PODS,
  type Resource,
  SECRETS,
  SERVICE_ACCOUNTS,
} from './resource.ts';

/** Where an apply reads and writes, and whom it tells. */
export interface ApplyContext extends CallOptions {
  readonly kube: Kube;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly clock?: Clock | undefined;
}

/** The object as it is stored now, and whether it had to be written for that. */
export interface Applied<T extends KubeObject> {
  readonly object: T;
  readonly changed: boolean;
}

/** ConfigMaps: `data` and `binaryData` are ours alone, except for what others inject on our demand (spec 30, 6.2). */
export function applyConfigMap(context: ApplyContext, required: ConfigMap): Promise<Applied<ConfigMap>> {
  return apply(context, CONFIG_MAPS, required, (existing, metadata) => {
    const data = { ...required.data };
    for (const key of injectedKeys(required)) {
      const injected = existing.data?.[key];
      if (!Object.hasOwn(data, key) && injected !== undefined) data[key] = injected;
    }
    const changes = [
      ...changedKeys(existing.data, data).map(key => `data.${key}`),
      ...changedKeys(existing.binaryData, required.binaryData).map(key => `binaryData.${key}`),
    ].sort();
    const { data: _data, binaryData: _binaryData, ...rest } = existing;
    const result: ConfigMap = {
      ...rest,
      metadata: metadata.result,
      ...(Object.keys(data).length === 0 ? {} : { data }),
      ...(required.binaryData === undefined ? {} : { binaryData: required.binaryData }),
    };
    return {
      result,
      changed: metadata.changed || changes.length > 0,
      details: changes.length === 0 ? '' : `cause by changes in ${changes.join(',')}`,
    };
  });
}

/** What the cluster writes into a ConfigMap that asks for it (spec 30, 6.2.2, 6.2.3 and T18). */
function injectedKeys({ metadata = {} }: ConfigMap): string[] {
  return [
    ...(metadata.labels?.['config.openshift.io/inject-trusted-cabundle'] === 'true' ? ['ca-bundle.crt'] : []),
    ...(metadata.annotations?.['service.beta.openshift.io/inject-cabundle'] === 'true' ? ['service-ca.crt'] : []),
  ];
}

function changedKeys(existing: Record<string, string> = {}, required: Record<string, string> = {}): string[] {
  return [...new Set([...Object.keys(existing), ...Object.keys(required)])].filter(
    key => existing[key] !== required[key],
  );
}

const TOKEN_SECRET = 'kubernetes.io/service-account-token';

export interface ApplySecretOptions {
  /** Never delete: report when a change of type is refused (spec 30, 6.3.6). */
  readonly updateOnly?: boolean | undefined;
}

/** Secrets: `data` is ours alone, except for tokens; a new type means a new object (spec 30, 6.3). */
export async function applySecret(
  context: ApplyContext,
  required: Secret,
  { updateOnly = false }: ApplySecretOptions = {},
): Promise<Applied<Secret>> {
  const merge = (stored: Secret, metadata: Merged<NonNullable<Secret['metadata']>>): MergedObject<Secret> => {
    const [existing, wanted] = [{ ...stored, type: typeOf(stored) }, folded(required)];
    const data = wanted.type === TOKEN_SECRET ? { ...existing.data, ...wanted.data } : (wanted.data ?? {});
    const result: Secret = { ...existing, metadata: metadata.result, type: wanted.type, data };
    const replacement = updateOnly ? 'never' : existing.type === wanted.type ? 'when immutable' : 'always';
    return { result, changed: !semanticallyEqual(existing, result), replacement };
  };
  return apply(context, SECRETS, required, merge, folded);
}

/** `stringData` folded into `data`, and a type that is always there (spec 30, 6.3.1 and 6.3.2). */
function folded(secret: Secret): Secret & { type: string } {
  const { stringData = {}, data, ...rest } = secret;
  const all: Record<string, string> = { ...data };
  for (const [key, text] of Object.entries(stringData)) {
    const value = Buffer.from(text, 'utf8').toString('base64');
    if (Object.hasOwn(all, key) && all[key] !== value) {
      throw new Error(`Secret.stringData["${key}"] conflicts with Secret.data["${key}"]`);
    }
    all[key] = value;
  }
  return { ...rest, type: typeOf(secret), ...(Object.keys(all).length === 0 ? {} : { data: all }) };
}

function typeOf({ type }: Secret): string {
  return type || 'Opaque';
}

/** Pods are created once per name; a different spec is never applied, only metadata (spec 30, 6.4). */
export function applyPod(context: ApplyContext, required: Pod): Promise<Applied<Pod>> {
  return apply(context, PODS, required, onlyMetadata);
}

export function applyServiceAccount(context: ApplyContext, required: ServiceAccount): Promise<Applied<ServiceAccount>> {
  return apply(context, SERVICE_ACCOUNTS, required, onlyMetadata);
}

export function applyNamespace(context: ApplyContext, required: Namespace): Promise<Applied<Namespace>> {
  return apply(context, NAMESPACES, required, onlyMetadata);
}

/** Budgets: `spec` is ours alone, so that a policy nobody asks for any more goes (spec 30, 18.3). */
export function applyPodDisruptionBudget(
  context: ApplyContext,
  required: PodDisruptionBudget,
): Promise<Applied<PodDisruptionBudget>> {
  return apply(context, POD_DISRUPTION_BUDGETS, required, (existing, metadata) => ({
    result: { ...existing, metadata: metadata.result, ...(required.spec === undefined ? {} : { spec: required.spec }) },
    changed: metadata.changed || !semanticallyEqual(existing.spec, required.spec),
  }));
}

function onlyMetadata<T extends KubeObject>(existing: T, metadata: Merged<KubeObject['metadata']>): MergedObject<T> {
  return { result: { ...existing, metadata: metadata.result }, changed: metadata.changed };
}

/**
 * Any other kind: the fields of the required object are laid over the stored one, mappings key by key and everything
 * else as a whole, so that what the server filled in does not count as a difference. `status` is left alone.
 */
export function applyObject<T extends KubeObject>(
  context: ApplyContext,
  resource: Resource<T>,
  required: T,
): Promise<Applied<T>> {
  return apply(context, resource, required, (existing, metadata) => {
    const {
      apiVersion: _version,
      kind: _kind,
      metadata: _metadata,
      status: _status,
      ...fields
    } = required as T & {
      status?: unknown;
    };
    const result = { ...(laidOver(existing, fields) as T), metadata: metadata.result };
    return { result, changed: !semanticallyEqual(existing, result) };
  });
}

function laidOver(existing: unknown, required: unknown): unknown {
  if (!isMapping(existing) || !isMapping(required)) return required;
  const result: Record<string, unknown> = { ...existing };
  for (const [key, value] of Object.entries(required)) {
    if (value !== undefined) result[key] = laidOver(Object.hasOwn(existing, key) ? existing[key] : undefined, value);
  }
  return result;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Deletes an object if it is there. True when it was. */
export async function deleteObject(context: ApplyContext, resource: Resource, key: ObjectKey): Promise<boolean> {
  const object = { metadata: { ...key } } as KubeObject;
  try {
    await context.kube.delete(resource, key, { signal: context.signal });
  } catch (error) {
    if (isNotFound(error)) return false;
    reportDelete(context.events, resource, object, error);
    throw error;
  }
  reportDelete(context.events, resource, object);
  return true;
}

interface MergedObject<T extends KubeObject> extends Merged<T> {
  /** The second line of the update event. */
  readonly details?: string;
  /** Whether the object is deleted and made anew: at once, or where the API refuses the change of an immutable field. */
  readonly replacement?: 'never' | 'when immutable' | 'always';
}

/** Read, then create what is missing or write what differs. Conflicts are the caller's to retry (spec 30, 6.1). */
async function apply<T extends KubeObject>(
  context: ApplyContext,
  resource: Resource<T>,
  required: T,
  merge: (existing: T, metadata: Merged<NonNullable<T['metadata']>>) => MergedObject<T>,
  forCreate: (required: T) => T = object => object,
): Promise<Applied<T>> {
  const { kube, events, signal } = context;
  const key = keyOf(required);
  let existing = await getIfPresent(kube, resource, key, { signal });
  if (existing === undefined) {
    const fresh = { ...forCreate(required), metadata: metadataForCreate(required.metadata ?? {}) };
    try {
      const object = await kube.create(resource, fresh, { signal });
      reportCreate(events, resource, object);
      return { object, changed: true };
    } catch (error) {
      // Somebody was faster: go on with what they made (spec 30, T23).
      existing = isAlreadyExists(error) ? await getIfPresent(kube, resource, key, { signal }) : undefined;
      if (existing === undefined) {
        reportCreate(events, resource, required, error);
        throw error;
      }
    }
  }
  const metadata = mergeMetadata(existing.metadata ?? {}, required.metadata ?? {});
  const { result, changed, details, replacement = 'never' } = merge(existing, metadata);
  if (!changed) return { object: existing, changed: false };
  if (replacement === 'always') return { object: await replace(context, resource, result), changed: true };
  try {
    const object = await kube.update(resource, result, { signal });
    reportUpdate(events, resource, object, undefined, details);
    return { object, changed: true };
  } catch (error) {
    if (replacement === 'when immutable' && isImmutable(error)) {
      return { object: await replace(context, resource, result), changed: true };
    }
    reportUpdate(events, resource, required, error);
    throw error;
  }
}

function isImmutable(error: unknown): boolean {
  return error instanceof KubeError && error.message.includes('field is immutable');
}

/** The create half is tried again for a while: until it succeeds, the content exists in our memory only (spec 30, T24). */
const CREATE_ATTEMPTS = 6;
const CREATE_FIRST_PAUSE_MS = 100;

/** Deletes exactly the object that was read, then creates its successor. */
async function replace<T extends KubeObject>(context: ApplyContext, resource: Resource<T>, object: T): Promise<T> {
  const { kube, events, signal, clock = systemClock } = context;
  const { uid, resourceVersion, ...metadata } = object.metadata ?? {};
  try {
    await kube.delete(resource, keyOf(object), { signal, preconditions: { uid, resourceVersion } });
  } catch (error) {
    reportDelete(events, resource, object, error);
    throw error;
  }
  reportDelete(events, resource, object);
  for (let attempt = 1; ; attempt++) {
    try {
      // Not with the caller's signal: a stop between the two halves would lose the content.
      const created = await kube.create(resource, { ...object, metadata });
      reportCreate(events, resource, created);
      return created;
    } catch (error) {
      if (attempt === CREATE_ATTEMPTS || !isTransient(error)) {
        reportCreate(events, resource, object, error);
        throw error;
      }
      await sleep(clock, CREATE_FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}
