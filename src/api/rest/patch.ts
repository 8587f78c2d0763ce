import { KubeError } from '../../kube/error.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { apiVersionOfKind, pathOf } from '../kinds/kind.ts';
import { applyConfiguration } from '../patch/apply.ts';
import { applyJsonPatch } from '../patch/json.ts';
import { applyMergePatch } from '../patch/merge.ts';
import { applyStrategicMergePatch } from '../patch/strategic.ts';
import { duplicateFields } from '../schema/duplicates.ts';
import { invalid, invalidObject } from '../schema/field-error.ts';
import { isObject, tooDeep } from '../schema/json.ts';
import type { JsonObject } from '../schema/schema.ts';
import { strictErrors, unknownFields } from '../schema/unknown.ts';
import { badRequest, notFound, unsupportedMediaType } from '../status.ts';
import { type Body, checkExact, completeObject, kindIn, strictProblems, typed, typeError, wrongKind } from './body.ts';
import { commit } from './commit.ts';
import type { Call, Core, WriteParameters } from './core.ts';
import { type Endpoint, endpointOf } from './endpoint.ts';
import { checkNamespace } from './metadata.ts';
import { checkName, createInstead, decideUpdate, type Written } from './update.ts';
import { withoutVersion } from './version.ts';
import { present } from './view.ts';

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

export const PATCH_MEDIA_TYPES: Readonly<Record<PatchType, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

export interface PatchParameters extends WriteParameters {
  readonly type: PatchType;
  readonly force: boolean;
}

/** Changes an object the way a patch says. Server-side apply creates what does not exist. */
export async function patch(core: Core, call: Call, body: Body, parameters: PatchParameters): Promise<Written> {
  const endpoint = endpointOf(call.kind, call.subresource);
  checkType(call, endpoint, parameters.type);
  if (tooDeep(body.value)) throw badRequest('the patch is nested too deeply');
  checkExact(endpoint.body, body, why => `error decoding patch: ${why}`);
  let created = false;
  const needsOwners = parameters.type === 'apply';
  const options = { dryRun: parameters.dryRun, needsOwners };
  const entry = await commit(core, call.kind, pathOf(call.namespace, call.name), options, newest => {
    if (needsOwners) {
      const live = newest === undefined ? undefined : present(call.kind, newest);
      const applied = applyPatch(core, call, endpoint, live, body, parameters);
      if (newest !== undefined) return decideUpdate(core, call, endpoint, applied, newest, undefined);
      if (call.subresource !== '') throw notFound(call.kind, call.name);
      created = true;
      return createInstead(core, call, withoutVersion(applied), { manager: parameters.fieldManager, tracked: false });
    }
    if (newest === undefined) throw notFound(call.kind, call.name);
    const old = endpoint.read(present(call.kind, newest));
    const updated = patched(call, endpoint, old, body, parameters);
    return decideUpdate(core, call, endpoint, updated, newest, parameters.fieldManager);
  });
  return { entry, created };
}

function checkType({ kind }: Call, endpoint: Endpoint, type: PatchType): void {
  const refused: ReadonlySet<PatchType> = new Set([
    ...(kind.custom === undefined ? [] : (['strategic'] as const)),
    ...(endpoint.subresource === 'scale' ? (['apply'] as const) : []),
  ]);
  if (!refused.has(type)) return;
  const accepted = (Object.keys(PATCH_MEDIA_TYPES) as PatchType[]).filter(other => !refused.has(other));
  throw unsupportedMediaType(accepted.map(other => PATCH_MEDIA_TYPES[other]));
}

/** The object after a JSON, merge or strategic patch: decoded, complete, of the same name. */
function patched(
  call: Call,
  endpoint: Endpoint,
  old: KubeObject,
  body: Body,
  { type, fieldValidation }: PatchParameters,
): KubeObject {
  const result = applied(endpoint, type, old, body);
  const fail = (why: string) => {
    const shown = call.kind.bucket === '/secrets' ? '<secret contents redacted>' : JSON.stringify(result);
    return invalidObject('', '', '', [invalid('patch', shown, why)]);
  };
  if (!isObject(result)) throw fail('expected an object');
  const wrong = typeError(endpoint.body, result);
  if (wrong !== undefined) throw fail(wrong);
  const other = wrongKind(endpoint.body, result, call.name);
  if (other !== undefined) throw typeof other === 'string' ? fail(other) : other;
  const repeated = body.text === undefined || fieldValidation === 'Ignore' ? [] : duplicateFields(body.text);
  const problems = [
    ...strictErrors([], repeated),
    ...strictProblems(endpoint.body, { value: result }, fieldValidation),
  ];
  if (problems.length > 0 && fieldValidation === 'Strict') throw fail(`strict decoding error: ${problems.join(', ')}`);
  for (const problem of problems) call.warn(problem);
  const object = completeObject(endpoint.body, typed(endpoint.body, result));
  checkNamespace(call, object);
  checkName(call, object);
  return object;
}

function applied(
  endpoint: Endpoint,
  type: Exclude<PatchType, 'apply'> | 'apply',
  old: KubeObject,
  { value }: Body,
): unknown {
  switch (type) {
    case 'json':
      if (!Array.isArray(value)) throw badRequest(`error decoding patch: expected an array of operations`);
      return applyJsonPatch(old, value);
    case 'merge':
      if (!isObject(value)) throw badRequest('error decoding patch: expected an object');
      return applyMergePatch(old, value);
    default:
      if (!isObject(value)) throw badRequest('error decoding patch: expected an object');
      return applyStrategicMergePatch(endpoint.body.schema, old as JsonObject, value);
  }
}

/** The object after server-side apply, with ownership brought up to date. */
function applyPatch(
  core: Core,
  call: Call,
  endpoint: Endpoint,
  live: KubeObject | undefined,
  { value, text }: Body,
  { fieldManager, force, fieldValidation }: PatchParameters,
): KubeObject {
  const { kind } = call;
  if (!isObject(value)) throw badRequest('error decoding YAML: expected an object');
  const wanted = value as KubeObject;
  const { apiVersion, kind: kindName } = kindIn(value);
  if (apiVersion !== apiVersionOfKind(kind) || kindName !== kind.kind) {
    const groupVersion = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
    throw badRequest(`invalid object type: ${groupVersion}, Kind=${kindName}`);
  }
  if (wanted.metadata?.managedFields !== undefined) throw badRequest('metadata.managedFields must be nil');
  const unknown = unknownFields(kind.schema, value);
  if (unknown.length > 0) {
    const { namespace = '', name = '' } = wanted.metadata ?? {};
    const where = `${namespace}/${name}; ${kind.group}/${kind.version}, Kind=${kind.kind}`;
    const list = unknown.map(path => `.${path}: field not declared in schema`).join('\n');
    throw new KubeError(500, '', `failed to create typed patch object (${where}): ${list}`);
  }
  const repeated = text === undefined || fieldValidation === 'Ignore' ? [] : strictErrors([], duplicateFields(text));
  if (repeated.length > 0) {
    if (fieldValidation === 'Strict') throw badRequest(`error strict decoding YAML: ${repeated.join(', ')}`);
    for (const problem of repeated) call.warn(problem);
  }
  const result = applyConfiguration({
    schema: kind.schema,
    live,
    applied: wanted,
    apiVersion,
    manager: fieldManager,
    force,
    resetFields: endpoint.resetFields,
    now: core.clock.now(),
    ...(endpoint.subresource === '' ? {} : { subresource: endpoint.subresource }),
  });
  const wrong = typeError(endpoint.body, result as JsonObject);
  if (wrong !== undefined) throw badRequest(wrong);
  const object = completeObject(endpoint.body, result as JsonObject);
  checkNamespace(call, object);
  checkName(call, object);
  return object;
}
