import type { KubeObject } from '../../kube/resource.ts';
import { apiVersionOfKind, type Fields, pathOf } from '../kinds/kind.ts';
import { trackUpdate } from '../patch/update.ts';
import { invalidObject } from '../schema/field-error.ts';
import { identityErrors } from '../schema/metadata.ts';
import { nameRuleOf } from '../schema/name.ts';
import type { JsonObject } from '../schema/schema.ts';
import { validate } from '../schema/validate.ts';
import { alreadyExists, noFreeName } from '../status.ts';
import type { Entry } from '../store/entry.ts';
import { type Body, bodyKind, readObject } from './body.ts';
import { commit } from './commit.ts';
import type { Call, Core, WriteParameters } from './core.ts';
import { checkNamespace, withNewMetadata, withoutRepeatedOwners } from './metadata.ts';
import { versionOnCreate } from './version.ts';
import { toStored } from './view.ts';

/** Stores a new object. Rejects with `KubeError` 409 when there is one of that name. */
export async function create(core: Core, call: Call, body: Body, parameters: WriteParameters): Promise<Entry> {
  const decoded = readObject(bodyKind(call.kind), body, parameters.fieldValidation, call.warn);
  const object = prepareNew(core, call, decoded, { manager: parameters.fieldManager, tracked: true });
  const name = object.metadata?.name ?? '';
  return commit(core, call.kind, pathOf(call.namespace, name), parameters, newest => {
    if (newest !== undefined) throw alreadyExists(call.kind, name);
    return { put: toStored(call.kind, object) };
  });
}

/** A decoded object made ready to be stored for the first time: named, completed, checked, owned. */
export function prepareNew(
  core: Core,
  call: Call,
  decoded: KubeObject,
  { manager, tracked }: { manager: string; tracked: boolean },
): KubeObject {
  const { kind } = call;
  checkNamespace(call, decoded);
  versionOnCreate(decoded);
  const name = nameOf(core, call, decoded);
  const named = withNewMetadata(core, call, withoutRepeatedOwners(decoded, call.warn), name);
  const started = kind.status && kind.rules.keepsStatusOnCreate !== true ? withoutStatus(named) : named;
  const now = core.clock.now();
  const { group, kind: kindName, rules, schema } = kind;
  // The client owns what it sent; what is added below is nobody's.
  const owned = tracked
    ? trackUpdate({ schema, live: undefined, updated: started, apiVersion: apiVersionOfKind(kind), manager, now })
    : started;
  const admitted = core.admission.create({ ...call, name }, owned) as Fields;
  const prepared = rules.prepareCreate?.(admitted, { now, user: call.user }) ?? admitted;
  const errors = [
    ...identityErrors(prepared.metadata as JsonObject, kind.namespaced, nameRuleOf(group, kindName)),
    ...validate(schema, prepared),
    ...(rules.checkCreate?.(prepared) ?? []),
  ];
  if (errors.length > 0) throw invalidObject(group, kindName, name, errors);
  for (const text of rules.warnings?.(prepared) ?? []) call.warn(text);
  return prepared;
}

/** How often a generated name is thrown away because it is taken. */
const NAME_TRIES = 8;
/** A generated name is cut so that it stays a valid name with its suffix. */
const LONGEST_GENERATED_BASE = 58;

function nameOf(core: Core, call: Call, object: KubeObject): string {
  const { name = '', generateName = '' } = object.metadata ?? {};
  if (name !== '' || generateName === '') return name;
  const base = generateName.slice(0, LONGEST_GENERATED_BASE);
  let generated = '';
  for (let tries = 0; tries < NAME_TRIES; tries++) {
    generated = base + core.random.suffix();
    if (core.store.newest(call.kind.bucket, pathOf(call.namespace, generated)) === undefined) return generated;
  }
  throw noFreeName(call.kind, generated);
}

function withoutStatus(object: KubeObject): KubeObject {
  const { status: _, ...rest } = object as Fields;
  return rest;
}
