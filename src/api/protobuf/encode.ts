import { parseRfc3339 } from '../../kube/time.ts';
import { isObject } from '../schema/json.ts';
import type { JsonObject } from '../schema/schema.ts';
import { type Field, fieldsOf, INLINE, kindOf, MAGIC } from './messages.ts';

/** An object or a list as a protocol buffer in its envelope; `undefined` for a kind that has none. */
export function encodeProtobuf(object: JsonObject): Buffer | undefined {
  const { apiVersion, kind } = object;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return undefined;
  const message = kindOf(apiVersion, kind);
  const items = kindOf(apiVersion, kind.replace(/List$/, ''));
  const raw =
    message !== undefined
      ? encodeMessage(message, object)
      : items !== undefined && Array.isArray(object['items'])
        ? encodeList(items, object)
        : undefined;
  if (raw === undefined) return undefined;
  const typeMeta = Buffer.concat([delimited(1, Buffer.from(apiVersion)), delimited(2, Buffer.from(kind))]);
  return Buffer.concat([MAGIC, delimited(1, typeMeta), delimited(2, raw), delimited(3, EMPTY), delimited(4, EMPTY)]);
}

const EMPTY = Buffer.alloc(0);

/** An event of a watch, which tells how long it is. */
export function encodeWatchEvent(type: string, object: JsonObject): Buffer {
  const raw = delimited(1, encodeProtobuf(object) ?? EMPTY);
  const event = Buffer.concat([delimited(1, Buffer.from(type)), delimited(2, raw)]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

function encodeList(message: string, { metadata, items }: JsonObject): Buffer {
  const parts = [delimited(1, encodeValue('ListMeta', metadata))];
  for (const item of items as JsonObject[]) parts.push(delimited(2, encodeMessage(message, item)));
  return Buffer.concat(parts);
}

function encodeMessage(message: string, object: JsonObject): Buffer {
  const parts: Buffer[] = [];
  for (const [at, field] of fieldsOf(message)) {
    const value = field.name === INLINE ? object : object[field.name];
    if (value === undefined || value === null) continue;
    for (const part of elementsOf(field, value))
      parts.push(typeof part === 'object' ? delimited(at, part) : number(at, part));
  }
  return Buffer.concat(parts);
}

/** What a field is written as: once, or once for each element or entry. */
function elementsOf({ shape, type }: Field, value: unknown): (Buffer | bigint)[] {
  switch (shape) {
    case 'one':
      return [encodeValue(type, value)];
    case 'list':
      return (value as unknown[]).map(element => encodeValue(type, element));
    case 'map':
      return Object.entries(value as JsonObject).map(([key, element]) =>
        Buffer.concat([delimited(1, Buffer.from(key)), delimited(2, encodeValue(type, element) as Buffer)]),
      );
  }
}

function encodeValue(type: string, value: unknown): Buffer | bigint {
  switch (type) {
    case 'string':
      return Buffer.from(String(value));
    case 'bytes':
      return Buffer.from(String(value), 'base64');
    case 'int':
    case 'bool':
      return BigInt(value as number | boolean);
    case 'Time':
    case 'MicroTime':
      return encodeTime(String(value));
    case 'Quantity':
      return delimited(1, Buffer.from(String(value)));
    case 'IntOrString':
      return typeof value === 'string'
        ? Buffer.concat([number(1, 1), number(2, 0), delimited(3, Buffer.from(value))])
        : Buffer.concat([number(1, 0), number(2, value), delimited(3, EMPTY)]);
    case 'Strings':
      return Buffer.concat((value as string[]).map(text => delimited(1, Buffer.from(text))));
    case 'Json':
      return delimited(1, Buffer.from(JSON.stringify(value)));
    default:
      return encodeMessage(type, isObject(value) ? value : {});
  }
}

const NANOS = 1_000_000_000n;

function encodeTime(text: string): Buffer {
  const nanos = parseRfc3339(text)?.nanos ?? 0n;
  const rest = ((nanos % NANOS) + NANOS) % NANOS;
  return Buffer.concat([number(1, (nanos - rest) / NANOS), number(2, rest)]);
}

const VARINT = 0;
const LENGTH_DELIMITED = 2;

function delimited(at: number, bytes: Buffer | bigint): Buffer {
  if (typeof bytes === 'bigint') return number(at, bytes);
  return Buffer.concat([varint(BigInt((at << 3) | LENGTH_DELIMITED)), varint(BigInt(bytes.length)), bytes]);
}

function number(at: number, value: unknown): Buffer {
  return Buffer.concat([varint(BigInt((at << 3) | VARINT)), varint(BigInt(value as number | bigint))]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}
