import { isObject } from './json.ts';
import type { JsonObject } from './schema.ts';

/** What `kubectl` accepts. It takes nothing else, but chokes on the at sign in the answer. */
export const OPENAPI_V2_ACCEPT = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
export const OPENAPI_V2_CONTENT_TYPE = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** The OpenAPI v2 document in the protobuf form of the gnostic project. */
export function encodeOpenApiV2(document: object): Uint8Array {
  return message('Document', document as JsonObject);
}

/** How a field is written: the number of the field, and its type. Lists are written element by element. */
type Field = readonly [number: number, type: Scalar | Composite | MessageName];
type Scalar = 'string' | 'bool' | 'int' | 'double' | 'any';
/** Types whose JSON form is not that of their message. */
type Composite = 'parameter' | 'responses' | 'paths' | 'schemas' | 'schema item' | 'schema or bool' | 'type' | 'items';
type MessageName = keyof typeof MESSAGES;

const PARAMETER = {
  required: [1, 'bool'],
  in: [2, 'string'],
  description: [3, 'string'],
  name: [4, 'string'],
} as const;

/** The messages we use, as far as we use them. `x-` is where extensions go. */
const MESSAGES = {
  Document: {
    swagger: [1, 'string'],
    info: [2, 'Info'],
    paths: [8, 'paths'],
    definitions: [9, 'schemas'],
  },
  Info: { title: [1, 'string'], version: [2, 'string'] },
  PathItem: {
    get: [2, 'Operation'],
    put: [3, 'Operation'],
    post: [4, 'Operation'],
    delete: [5, 'Operation'],
    patch: [8, 'Operation'],
    parameters: [9, 'parameter'],
    'x-': [10, 'any'],
  },
  Operation: {
    tags: [1, 'string'],
    description: [3, 'string'],
    operationId: [5, 'string'],
    produces: [6, 'string'],
    consumes: [7, 'string'],
    parameters: [8, 'parameter'],
    responses: [9, 'responses'],
    schemes: [10, 'string'],
    'x-': [13, 'any'],
  },
  BodyParameter: {
    description: [1, 'string'],
    name: [2, 'string'],
    in: [3, 'string'],
    required: [4, 'bool'],
    schema: [5, 'Schema'],
  },
  QueryParameter: { ...PARAMETER, type: [6, 'string'], uniqueItems: [20, 'bool'] },
  PathParameter: { ...PARAMETER, type: [5, 'string'], uniqueItems: [19, 'bool'] },
  Response: { description: [1, 'string'], schema: [2, 'schema item'] },
  Schema: {
    $ref: [1, 'string'],
    format: [2, 'string'],
    title: [3, 'string'],
    description: [4, 'string'],
    default: [5, 'any'],
    multipleOf: [6, 'double'],
    maximum: [7, 'double'],
    exclusiveMaximum: [8, 'bool'],
    minimum: [9, 'double'],
    exclusiveMinimum: [10, 'bool'],
    maxLength: [11, 'int'],
    minLength: [12, 'int'],
    pattern: [13, 'string'],
    maxItems: [14, 'int'],
    minItems: [15, 'int'],
    uniqueItems: [16, 'bool'],
    maxProperties: [17, 'int'],
    minProperties: [18, 'int'],
    required: [19, 'string'],
    enum: [20, 'any'],
    additionalProperties: [21, 'schema or bool'],
    type: [22, 'type'],
    items: [23, 'items'],
    properties: [25, 'schemas'],
    'x-': [31, 'any'],
  },
} as const satisfies Record<string, Readonly<Record<string, readonly [number, string]>>>;

function message(name: MessageName, value: JsonObject): Buffer {
  const fields: Readonly<Record<string, readonly [number, string]>> = MESSAGES[name];
  const parts: Buffer[] = [];
  for (const [key, child] of Object.entries(value)) {
    const field = Object.hasOwn(fields, key) ? (fields[key] as Field) : undefined;
    if (field !== undefined) {
      const elements: readonly unknown[] = Array.isArray(child) ? child : [child];
      for (const element of elements) parts.push(written(field, element));
    } else if (key.startsWith('x-') && fields['x-'] !== undefined) {
      parts.push(bytes(fields['x-'][0], Buffer.concat([text(1, key), written([2, 'any'], child)])));
    }
  }
  return Buffer.concat(parts);
}

function written([number, type]: Field, value: unknown): Buffer {
  switch (type) {
    case 'string':
      return text(number, String(value));
    case 'bool':
      return value === true ? flag(number, true) : Buffer.alloc(0);
    case 'int':
      return Buffer.concat([tag(number, 0), varint(Number(value))]);
    case 'double': {
      const buffer = Buffer.alloc(8);
      buffer.writeDoubleLE(Number(value));
      return Buffer.concat([tag(number, 1), buffer]);
    }
    case 'any':
      // JSON is YAML.
      return bytes(number, text(2, JSON.stringify(value)));
    case 'parameter':
      return bytes(number, bytes(1, parameter(value as JsonObject)));
    case 'paths':
      return bytes(
        number,
        named(2, value, item => message('PathItem', item)),
      );
    case 'schemas':
      return bytes(
        number,
        named(1, value, schema => message('Schema', schema)),
      );
    case 'responses':
      return bytes(
        number,
        named(1, value, response => bytes(1, message('Response', response))),
      );
    case 'schema item':
    case 'items':
      return bytes(number, bytes(1, message('Schema', value as JsonObject)));
    case 'schema or bool':
      return bytes(number, isObject(value) ? bytes(1, message('Schema', value)) : flag(2, value === true));
    case 'type':
      return bytes(number, text(1, String(value)));
    default:
      return bytes(number, message(type, value as JsonObject));
  }
}

function parameter(value: JsonObject): Buffer {
  if (value['in'] === 'body') return bytes(1, message('BodyParameter', value));
  return value['in'] === 'path'
    ? bytes(2, bytes(4, message('PathParameter', value)))
    : bytes(2, bytes(3, message('QueryParameter', value)));
}

/** A map: a list of pairs of name and value. */
function named(number: number, value: unknown, write: (entry: JsonObject) => Buffer): Buffer {
  const pairs = Object.entries(value as Record<string, JsonObject>);
  return Buffer.concat(
    pairs.map(([name, entry]) => bytes(number, Buffer.concat([text(1, name), bytes(2, write(entry))]))),
  );
}

function text(number: number, value: string): Buffer {
  return bytes(number, Buffer.from(value, 'utf8'));
}

/** A field with a length in front: a string or a message. */
function bytes(number: number, content: Buffer): Buffer {
  return Buffer.concat([tag(number, 2), varint(content.length), content]);
}

/** A boolean that is written even when false. */
function flag(number: number, value: boolean): Buffer {
  return Buffer.concat([tag(number, 0), varint(value ? 1 : 0)]);
}

function tag(number: number, wireType: 0 | 1 | 2): Buffer {
  return varint(number * 8 + wireType);
}

/** Seven bits a byte, lowest first. Negative numbers do not occur in these documents. */
function varint(value: number): Buffer {
  const out: number[] = [];
  let rest = Math.max(0, Math.trunc(value));
  while (rest >= 128) {
    out.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  out.push(rest);
  return Buffer.from(out);
}
