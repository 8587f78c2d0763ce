import type { KubeObject } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { setField } from '../schema/json.ts';
import { type Field, fieldsOf, INLINE, kindOf, MAGIC } from './messages.ts';
import { WireError, type WireField, wireFields } from './wire.ts';

/** Reads an object that a client sent as a protocol buffer. The result is what the same client would send as JSON. */
export function decodeProtobuf(bytes: Buffer): KubeObject {
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new WireError('the envelope of Kubernetes is missing');
  const envelope = new Map(
    [...wireFields(bytes.subarray(MAGIC.length))].map(field => [field.number, field.bytes] as const),
  );
  const [apiVersion = '', kind = ''] = typeMeta(envelope.get(1) ?? Buffer.alloc(0));
  const message = kindOf(apiVersion, kind);
  if (message === undefined) throw new WireError(`no kind ${kind} of ${apiVersion} is known`);
  if ((envelope.get(3)?.length ?? 0) > 0) throw new WireError('expected a message that is not compressed');
  return { apiVersion, kind, ...(decodeMessage(message, envelope.get(2) ?? Buffer.alloc(0), 0) as KubeObject) };
}

function typeMeta(bytes: Buffer): string[] {
  const parts: string[] = [];
  for (const { number, bytes: text } of wireFields(bytes)) parts[number - 1] = text.toString('utf8');
  return parts;
}

const DEEPEST = 100;

function decodeMessage(message: string, bytes: Buffer, depth: number): Record<string, unknown> {
  if (depth > DEEPEST) throw new WireError('nested too deeply');
  const object: Record<string, unknown> = {};
  for (const wire of wireFields(bytes)) {
    const field = fieldsOf(message).get(wire.number);
    if (field === undefined) continue;
    switch (field.shape) {
      case 'one':
        putValue(object, field, decodeValue(field.type, wire, depth));
        break;
      case 'list':
        ((object[field.name] ??= []) as unknown[]).push(decodeValue(field.type, wire, depth));
        break;
      case 'map': {
        const map = (object[field.name] ??= {}) as Record<string, unknown>;
        const [key, value] = decodeEntry(field.type, wire.bytes, depth);
        setField(map, key, value);
        break;
      }
    }
  }
  return object;
}

function putValue(object: Record<string, unknown>, { name, type, keepsZero }: Field, value: unknown): void {
  if (name === INLINE) Object.assign(object, value);
  else if (value !== undefined && (keepsZero || !SCALARS.has(type) || !isZero(value))) object[name] = value;
}

const SCALARS: ReadonlySet<string> = new Set(['string', 'bytes', 'int', 'bool']);

function isZero(value: unknown): boolean {
  return value === '' || value === 0 || value === false;
}

function decodeEntry(type: string, bytes: Buffer, depth: number): [string, unknown] {
  let key = '';
  let value: unknown = ZEROES[type];
  for (const wire of wireFields(bytes)) {
    if (wire.number === 1) key = wire.bytes.toString('utf8');
    else if (wire.number === 2) value = decodeValue(type, wire, depth);
  }
  return [key, value];
}

const ZEROES: Readonly<Record<string, unknown>> = { string: '', bytes: '', Strings: [], Quantity: '0' };

function decodeValue(type: string, wire: WireField, depth: number): unknown {
  const { bytes, varint = 0n } = wire;
  switch (type) {
    case 'string':
      return bytes.toString('utf8');
    case 'bytes':
      return bytes.toString('base64');
    case 'int':
      return Number(BigInt.asIntN(64, varint));
    case 'bool':
      return varint !== 0n;
    case 'Time':
      return decodeTime(bytes, formatRfc3339);
    case 'MicroTime':
      return decodeTime(bytes, (time, nanos) => `${formatRfc3339(time).slice(0, -1)}.${microseconds(nanos)}Z`);
    case 'Quantity':
      return [...wireFields(bytes)].find(({ number }) => number === 1)?.bytes.toString('utf8') ?? '0';
    case 'IntOrString':
      return decodeIntOrString(bytes);
    case 'Strings':
      return [...wireFields(bytes)].map(field => field.bytes.toString('utf8'));
    case 'Json':
      return decodeJson(bytes);
    default:
      return decodeMessage(type, bytes, depth + 1);
  }
}

/** An empty message is no time at all, which JSON writes as null. */
function decodeTime(bytes: Buffer, format: (time: Date, nanos: number) => string): string | null {
  let [seconds, nanos] = [0n, 0n];
  for (const { number, varint = 0n } of wireFields(bytes)) {
    if (number === 1) seconds = BigInt.asIntN(64, varint);
    else if (number === 2) nanos = varint;
  }
  if (bytes.length === 0) return null;
  const time = new Date(Number(seconds) * 1000);
  if (Number.isNaN(time.getTime())) throw new WireError('a time is out of range');
  return format(time, Number(nanos));
}

function microseconds(nanos: number): string {
  return String(Math.floor(nanos / 1000)).padStart(6, '0');
}

const IS_STRING = 1n;

function decodeIntOrString(bytes: Buffer): number | string {
  let [type, number, text] = [0n, 0, ''];
  for (const field of wireFields(bytes)) {
    if (field.number === 1) type = field.varint ?? 0n;
    else if (field.number === 2) number = Number(BigInt.asIntN(64, field.varint ?? 0n));
    else if (field.number === 3) text = field.bytes.toString('utf8');
  }
  return type === IS_STRING ? text : number;
}

/** Free-form parts are JSON even inside a protocol buffer. */
function decodeJson(bytes: Buffer): unknown {
  const raw = [...wireFields(bytes)].find(({ number }) => number === 1)?.bytes;
  if (raw === undefined || raw.length === 0) return undefined;
  try {
    return JSON.parse(raw.toString('utf8')) as unknown;
  } catch {
    throw new WireError('a free-form field holds no JSON');
  }
}
