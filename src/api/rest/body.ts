import type { KubeError } from '../../kube/error.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { apiVersionOfKind, type Kind } from '../kinds/kind.ts';
import { decode, decodeError } from '../schema/decode.ts';
import { applyDefaults } from '../schema/defaults.ts';
import { duplicateFields } from '../schema/duplicates.ts';
import { invalid, invalidObject } from '../schema/field-error.ts';
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
  /** A number that `value` does not hold as it was given. */
  readonly inexact?: string | undefined;
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
  checkExact(kind, body, why => unhandledText(kind, kind, why));
  const object = typed(kind, value);
  const problems = strictProblems(kind, { value: object, text: body.text }, fieldValidation);
  const wrong = typeError(kind, object);
  if (wrong !== undefined) throw unhandled(kind, kind, wrong);
  if (problems.length > 0) {
    if (fieldValidation === 'Strict') throw unhandled(kind, kind, `strict decoding error: ${problems.join(', ')}`);
    for (const problem of problems) warn(problem);
  }
  return completeObject(kind, object);
}

/** The object with the kind of its endpoint, whatever it says itself. */
export function typed(kind: BodyKind, value: JsonObject): JsonObject {
  const { apiVersion: _, kind: __, ...rest } = value;
  return { kind: kind.kind, apiVersion: apiVersionOfKind(kind), ...rest };
}

/**
 * Refuses a number that would come back as another one. In definitions the only numbers of that size are bounds, which are
 * floating-point numbers in the real server too.
 */
export function checkExact(kind: BodyKind, { inexact }: Body, message: (why: string) => string): void {
  if (inexact === undefined || kind.kind === 'CustomResourceDefinition') return;
  throw badRequest(message(`the number ${inexact} cannot be kept as it is (integers can up to 2^53)`));
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

/**
 * What is wrong with the kind an object says it has; `undefined` when it says nothing or the right thing. Objects of custom
 * resources are judged field by field, others cannot be read at all.
 */
export function wrongKind(expected: BodyKind, value: JsonObject, name: string): KubeError | string | undefined {
  const { apiVersion, kind } = kindIn(value);
  const isKind = kind === '' || kind === expected.kind;
  const isVersion = apiVersion === '' || apiVersion === apiVersionOfKind(expected);
  if (isKind && isVersion) return undefined;
  if (!expected.custom) {
    const [found, version] = [kind || expected.kind, apiVersion || apiVersionOfKind(expected)];
    return `no kind ${quote(found)} is registered for version ${quote(version)} here`;
  }
  return invalidObject(expected.group, kind || expected.kind, name, [
    ...(isKind ? [] : [invalid('kind', kind, `must be ${expected.kind}`)]),
    ...(isVersion ? [] : [invalid('apiVersion', apiVersion, `must be ${apiVersionOfKind(expected)}`)]),
  ]);
}

/** What an object says it is. */
export function kindIn({ apiVersion, kind }: JsonObject): { apiVersion: string; kind: string } {
  return { apiVersion: text(apiVersion), kind: text(kind) };
}

function checkKind(expected: BodyKind, value: JsonObject): void {
  const { apiVersion, kind } = kindIn(value);
  if (expected.custom) {
    if (kind === '') {
      throw badRequest(
        `the object provided is unrecognized (must be of type ${expected.kind}): Object 'Kind' is missing`,
      );
    }
    if (apiVersion !== apiVersionOfKind(expected)) {
      throw badRequest(
        `the API version in the data (${apiVersion}) does not match the expected API version (${apiVersionOfKind(expected)})`,
      );
    }
  }
  const { metadata } = value;
  const wrong = wrongKind(expected, value, isObject(metadata) ? text(metadata['name']) : '');
  if (wrong === undefined) return;
  if (typeof wrong !== 'string') throw wrong;
  const version = apiVersion || apiVersionOfKind(expected);
  const found = { version: version.slice(version.indexOf('/') + 1), kind: kind || expected.kind };
  throw unhandled(found, expected, wrong);
}

function unhandled(found: { version: string; kind: string }, expected: BodyKind, why: string): Error {
  return badRequest(unhandledText(found, expected, why));
}

function unhandledText(found: { version: string; kind: string }, expected: BodyKind, why: string): string {
  return `${found.kind} in version ${quote(found.version)} cannot be handled as a ${expected.kind}: ${why}`;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
