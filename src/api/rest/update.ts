import type { KubeObject } from '../../kube/resource.ts';
import { apiVersionOfKind, type Fields, type Kind, pathOf } from '../kinds/kind.ts';
import { trackUpdate } from '../patch/update.ts';
import { invalidObject } from '../schema/field-error.ts';
import { sameJson } from '../schema/json.ts';
import { identityErrors, metadataUpdateErrors } from '../schema/metadata.ts';
import { pathSegment } from '../schema/name.ts';
import type { JsonObject } from '../schema/schema.ts';
import { validate } from '../schema/validate.ts';
import { badRequest, conflict, notFound } from '../status.ts';
import type { Entry } from '../store/entry.ts';
import type { Decision } from '../store/store.ts';
import { authorize } from './authorize.ts';
import { type Body, readObject } from './body.ts';
import { commit } from './commit.ts';
import type { Call, Core, WriteParameters } from './core.ts';
import { prepareNew } from './create.ts';
import { type Endpoint, endpointOf } from './endpoint.ts';
import { checkNamespace, withKeptMetadata, withoutRepeatedOwners } from './metadata.ts';
import { uidOnUpdate, versionOnUpdate } from './version.ts';
import { present, toStored } from './view.ts';

export interface Written {
  readonly entry: Entry;
  readonly created: boolean;
}

/** Replaces an object, or the part of it that the subresource stands for. */
export async function update(core: Core, call: Call, body: Body, parameters: WriteParameters): Promise<Written> {
  const { kind, namespace, name } = call;
  const endpoint = endpointOf(kind, call.subresource);
  const updated = readObject(endpoint.body, body, parameters.fieldValidation, call.warn);
  checkNamespace(call, updated);
  checkName(call, updated);
  let created = false;
  const entry = await commit(core, kind, pathOf(namespace, name), parameters, newest => {
    if (newest !== undefined) {
      uidOnUpdate(kind, name, updated, newest);
      return decideUpdate(core, call, endpoint, updated, newest, parameters.fieldManager);
    }
    if (kind.rules.createsOnUpdate !== true || call.subresource !== '') throw notFound(kind, name);
    created = true;
    return createInstead(core, call, updated, { manager: parameters.fieldManager, tracked: true });
  });
  return { entry, created };
}

/** PUT or apply to a name that is free: needs the permission to create. */
export function createInstead(
  core: Core,
  call: Call,
  object: KubeObject,
  ownership: { manager: string; tracked: boolean },
): Decision {
  const { kind, name } = call;
  const uid = object.metadata?.uid ?? '';
  if (uid !== '') {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
    throw conflict(kind, name, why);
  }
  authorize(core, { ...call, subresource: '' }, 'create');
  return { put: toStored(kind, prepareNew(core, call, object, ownership)) };
}

/**
 * What becomes of a stored object when somebody wants it to look like `updated`. `manager` owns the changes; absent when
 * `updated` already says who owns what.
 */
export function decideUpdate(
  core: Core,
  call: Call,
  endpoint: Endpoint,
  updated: KubeObject,
  newest: Entry,
  manager: string | undefined,
): Decision {
  const { kind, name } = call;
  versionOnUpdate(kind, name, updated, newest);
  const old = present(kind, newest) as Fields;
  const now = core.clock.now();
  const distinct = withoutRepeatedOwners(updated, call.warn);
  const written = endpoint.write(distinct as Fields, old, { now, user: call.user });
  const kept = withGeneration(kind, withKeptMetadata(call, written, old) as Fields, old);
  const admitted = core.admission.update(call, kept, old) as Fields;
  check(call, admitted, old);
  const object = manager === undefined ? admitted : tracked(call, endpoint, admitted, old, manager, now);
  if (isFinished(kind, object as Fields, old)) return { remove: toStored(kind, object) };
  if (sameJson(object, old)) return { keep: newest };
  for (const text of kind.rules.warnings?.(object as Fields) ?? []) call.warn(text);
  return { put: toStored(kind, object) };
}

function tracked(
  call: Call,
  endpoint: Endpoint,
  updated: Fields,
  live: Fields,
  manager: string,
  now: Date,
): KubeObject {
  const { kind } = call;
  return trackUpdate({
    schema: kind.schema,
    live,
    updated,
    apiVersion: apiVersionOfKind(kind),
    manager,
    now,
    resetFields: endpoint.resetFields,
    ...(endpoint.subresource === '' ? {} : { subresource: endpoint.subresource }),
  });
}

function check({ kind, name, subresource }: Call, object: Fields, old: Fields): void {
  const errors = [
    ...identityErrors(object.metadata as JsonObject, kind.namespaced, pathSegment),
    ...metadataUpdateErrors(object.metadata as JsonObject, old.metadata as JsonObject),
    ...validate(kind.schema, object, old),
    ...(kind.rules.checkUpdate?.(object, old, subresource) ?? []),
  ];
  if (errors.length > 0) throw invalidObject(kind.group, kind.kind, name, errors);
}

function withGeneration(kind: Kind, object: Fields, old: Fields): Fields {
  if (kind.rules.generation !== true) return object;
  const before = old.metadata?.generation ?? 0;
  const changed = !sameJson(counted(kind, object), counted(kind, old));
  return { ...object, metadata: { ...object.metadata, generation: changed ? before + 1 : before } };
}

/** What a generation counts the changes of. Without a status subresource, `status` is a field like any other. */
function counted(kind: Kind, object: Fields): unknown[] {
  const { metadata: _, apiVersion: __, kind: ___, status, ...rest } = object;
  return [rest, kind.status ? undefined : status, kind.rules.alsoCounted?.(object)];
}

/** The last finalizer of an object that is being deleted has gone: the update is its end. */
export function isFinished(kind: Kind, object: Fields, old: Fields): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = old.metadata ?? {};
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds > 0) return false;
  if ((object.metadata?.finalizers?.length ?? 0) > 0) return false;
  return kind.rules.isHeld?.(object) !== true;
}

/** The name in the body must be that of the URL. */
export function checkName({ name }: Call, object: KubeObject): void {
  const given = object.metadata?.name ?? '';
  if (given === '') {
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  }
  if (given !== name)
    throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
}
