import { fieldOf, isObject, sameJson, setField } from '../schema/json.ts';
import { malformed, tooLarge, unfit } from './refused.ts';

/** Operations of one patch. */
export const MAX_OPERATIONS = 10_000;
/** Text that the `copy` operations of one patch may add: repeated copies double the document each time. */
export const MAX_COPIED_BYTES = 3 * 1024 * 1024;

/** The document after a JSON patch (RFC 6902): all operations in order, or none. */
export function applyJsonPatch(document: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw malformed('error decoding patch: a JSON patch must be an array of operations');
  if (operations.length > MAX_OPERATIONS) {
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${operations.length}`);
  }
  const target: Target = { root: structuredClone(document), copiedBytes: 0 };
  for (const operation of operations.map(readOperation)) carryOut(target, operation);
  return target.root;
}

interface Target {
  root: unknown;
  copiedBytes: number;
}

type Path = readonly string[];

type Operation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: Path; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: Path }
  | { readonly op: 'move' | 'copy'; readonly path: Path; readonly from: Path };

function readOperation(given: unknown, index: number): Operation {
  if (!isObject(given)) throw malformed(`error decoding patch: operation ${index} must be an object`);
  const { op } = given;
  const path = readPath(given['path'], `path of operation ${index}`);
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      if (!Object.hasOwn(given, 'value'))
        throw malformed(`error decoding patch: operation ${index} (${op}) has no value`);
      return { op, path, value: structuredClone(given['value']) };
    case 'remove':
      return { op, path };
    case 'move':
    case 'copy':
      return { op, path, from: readPath(given['from'], `from of operation ${index}`) };
    default:
      throw unfit(`operation ${index} has the unknown kind ${JSON.stringify(op) ?? 'nothing'}`);
  }
}

/** A JSON pointer (RFC 6901). */
function readPath(pointer: unknown, what: string): Path {
  if (pointer === undefined) throw unfit(`${what} is missing`);
  if (typeof pointer !== 'string') throw malformed(`error decoding patch: ${what} must be a string`);
  if (pointer === '') return [];
  if (!pointer.startsWith('/')) throw unfit(`${what} must start with a slash, but is ${pointer}`);
  return pointer
    .slice(1)
    .split('/')
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function carryOut(target: Target, operation: Operation): void {
  switch (operation.op) {
    case 'add':
      add(target, operation.path, operation.value, 'add');
      return;
    case 'replace':
      replace(target, operation.path, operation.value);
      return;
    case 'remove':
      remove(target, operation.path, 'remove');
      return;
    case 'move':
      move(target, operation.from, operation.path);
      return;
    case 'copy':
      copy(target, operation.from, operation.path);
      return;
    case 'test': {
      const found = find(target.root, operation.path);
      const value = found.exists ? found.value : null;
      if (!sameJson(value, operation.value))
        throw unfit(`testing path ${show(operation.path)} value failed: test failed`);
    }
  }
}

function add(target: Target, path: Path, value: unknown, op: string): void {
  const last = path.at(-1);
  if (last === undefined) {
    target.root = value;
    return;
  }
  const parent = parentOf(target.root, path, op);
  if (Array.isArray(parent)) parent.splice(indexIn(parent.length, last, path, op, true), 0, value);
  else setField(parent, last, value);
}

/** As the API server has always done, and other than RFC 6902 says, a field that is not there is added. */
function replace(target: Target, path: Path, value: unknown): void {
  const last = path.at(-1);
  if (last === undefined) {
    target.root = value;
    return;
  }
  const parent = parentOf(target.root, path, 'replace');
  if (Array.isArray(parent)) parent[indexIn(parent.length, last, path, 'replace', false)] = value;
  else setField(parent, last, value);
}

function remove(target: Target, path: Path, op: string): unknown {
  const last = path.at(-1);
  if (last === undefined) throw unfit(`${op} operation does not apply: the whole document cannot be removed`);
  const parent = parentOf(target.root, path, op);
  if (Array.isArray(parent)) return parent.splice(indexIn(parent.length, last, path, op, false), 1)[0];
  if (!Object.hasOwn(parent, last)) throw missing(op, path);
  const value = parent[last];
  delete parent[last];
  return value;
}

function move(target: Target, from: Path, path: Path): void {
  if (from.length < path.length && from.every((step, index) => step === path[index])) {
    throw unfit(`move operation does not apply: ${show(from)} cannot move into itself`);
  }
  if (from.length === 0 && path.length === 0) return;
  add(target, path, remove(target, from, 'move'), 'move');
}

function copy(target: Target, from: Path, path: Path): void {
  const found = find(target.root, from);
  if (!found.exists) throw missing('copy', from);
  target.copiedBytes += Buffer.byteLength(JSON.stringify(found.value));
  if (target.copiedBytes > MAX_COPIED_BYTES) {
    throw tooLarge(
      `unable to complete the copy, the accumulated size increase of copy is more than ${MAX_COPIED_BYTES} bytes`,
    );
  }
  add(target, path, structuredClone(found.value), 'copy');
}

type Container = unknown[] | Record<string, unknown>;

function parentOf(root: unknown, path: Path, op: string): Container {
  const parent = find(root, path.slice(0, -1));
  if (!parent.exists || typeof parent.value !== 'object' || parent.value === null) throw missing(op, path);
  return parent.value as Container;
}

function find(root: unknown, path: Path): { exists: boolean; value: unknown } {
  let value = root;
  for (const step of path) {
    if (Array.isArray(value)) {
      if (!ARRAY_INDEX.test(step) || Number(step) >= value.length) return { exists: false, value: undefined };
      value = value[Number(step)];
    } else if (isObject(value) && Object.hasOwn(value, step)) {
      value = fieldOf(value, step);
    } else {
      return { exists: false, value: undefined };
    }
  }
  return { exists: true, value };
}

const ARRAY_INDEX = /^(?:0|[1-9]\d{0,8})$/;

function indexIn(length: number, step: string, path: Path, op: string, inserting: boolean): number {
  if (step === '-' && inserting) return length;
  if (!ARRAY_INDEX.test(step))
    throw unfit(`${op} operation does not apply: ${show(path)} is not the index of an element`);
  const index = Number(step);
  if (index > length || (index === length && !inserting)) {
    throw unfit(`${op} operation does not apply: Unable to access invalid index: ${index}: invalid index referenced`);
  }
  return index;
}

function missing(op: string, path: Path): Error {
  return unfit(`${op} operation does not apply: doc is missing path: ${JSON.stringify(show(path))}: missing value`);
}

function show(path: Path): string {
  return path.map(step => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
