import type { KubeObject } from '../../kube/resource.ts';
import { apiVersionOfKind, type Kind } from '../kinds/kind.ts';
import { decode, decodeError } from '../schema/decode.ts';
import { applyDefaults } from '../schema/defaults.ts';
import { duplicateFields } from '../schema/duplicates.ts';
import { isObject, tooDeep } from '../schema/json.ts';
import { prune } from '../schema/prune.ts';
import type { JsonObject, Schema } from '../schema/schema.ts';
import { strictErrors, unknownFields } from '../schema/unknown.ts';
import { badRequest, quote } from '../status.ts';
import type { FieldValidation } from './core.ts';

/** What a client sent: the value, and its JSON text when there was one, since a field given twice shows only there. */
export interface Body {
  readonly value: unknown;
  readonly text?: string | undefined;
}

/** What an endpoint takes: the kind of the resource, or another one such as Scale. */
export interface BodyKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schema: Schema;
  readonly custom: boolean;
}

export function bodyKind(kind: Kind): BodyKind {
  const { group, version, schema } = kind;
  return { group, version, kind: kind.kind, schema, custom: kind.custom !== undefined };
}

/** The object in a request body: of the right kind, without unknown fields, with defaults. Throws 400. */
export function readObject(
  kind: BodyKind,
  body: Body,
  fieldValidation: FieldValidation,
  warn: (text: string) => void,
): KubeObject {
  const value = body.value === null ? {} : body.value;
  if (!isObject(value))
    throw badRequest(`the object provided is unrecognized (must be of type ${kind.kind}): ${NOT_AN_OBJECT}`);
  if (tooDeep(value)) throw badRequest('the object provided is nested too deeply');
  checkKind(kind, value);
  const { apiVersion: _, kind: __, ...rest } = value;
  const typed = { kind: kind.kind, apiVersion: apiVersionOfKind(kind), ...rest };
  const problems = strictProblems(kind, { value: typed, text: body.text }, fieldValidation);
  const wrong = typeError(kind, typed);
  if (wrong !== undefined) throw unhandled(kind, kind, wrong);
  if (problems.length > 0) {
    if (fieldValidation === 'Strict') throw unhandled(kind, kind, `strict decoding error: ${problems.join(', ')}`);
    for (const problem of problems) warn(problem);
  }
  return completeObject(kind, typed);
}

const NOT_AN_OBJECT = "couldn't get version/kind; json parse error: expected a JSON object";

/** Drops what the schema does not know and adds its defaults. */
export function completeObject(kind: BodyKind, value: JsonObject): KubeObject {
  const known = kind.custom ? prune(kind.schema, value) : decode(kind.schema, value);
  return applyDefaults(kind.schema, known);
}

/** Unknown and repeated fields, when anybody wants to know. */
export function strictProblems(kind: BodyKind, { value, text }: Body, fieldValidation: FieldValidation): string[] {
  if (fieldValidation === 'Ignore') return [];
  return strictErrors(unknownFields(kind.schema, value), text === undefined ? [] : duplicateFields(text));
}

/** The first value of a wrong type, in Go's words. Of custom resources only the metadata has Go types. */
export function typeError(kind: BodyKind, value: JsonObject): string | undefined {
  if (!kind.custom) return decodeError(kind.schema, value);
  const metadata = kind.schema.properties?.['metadata'];
  return metadata === undefined ? undefined : decodeError(metadata, value['metadata']);
}

function checkKind(expected: BodyKind, { apiVersion, kind }: JsonObject): void {
  const [version, name] = [text(apiVersion) || apiVersionOfKind(expected), text(kind) || expected.kind];
  if (version === apiVersionOfKind(expected) && name === expected.kind) return;
  const found = { version: version.slice(version.indexOf('/') + 1), kind: name };
  if (expected.custom && name === expected.kind) {
    throw badRequest(
      `the API version in the data (${version}) does not match the expected API version (${apiVersionOfKind(expected)})`,
    );
  }
  throw unhandled(found, expected, `no kind ${quote(name)} is registered for version ${quote(version)} here`);
}

function unhandled(found: { version: string; kind: string }, expected: BodyKind, why: string): Error {
  return badRequest(`${found.kind} in version ${quote(found.version)} cannot be handled as a ${expected.kind}: ${why}`);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
