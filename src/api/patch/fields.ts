import { fieldOf, isObject, sameJson, setField } from '../schema/json.ts';
import type { JsonObject, Schema } from '../schema/schema.ts';
import { FieldSet } from './field-set.ts';
import { isNamed, type Shape, schemaBelow, shapeOf } from './shape.ts';

/** What values and field sets have to do with each other. */

/** The fields that whoever applies this value owns. */
export function fieldsOf(schema: Schema, value: unknown): FieldSet {
  const shape = shapeOf(schema, value);
  const set = new FieldSet();
  if (shape.is === 'fields') {
    for (const [field, child] of Object.entries(shape.object)) {
      const step = `f:${field}`;
      const below = schemaBelow(schema, step);
      const alone = isLeaf(below, child) || isEmpty(child) || !isNamed(schema, step);
      set.graft(step, alone, fieldsOf(below, child));
    }
  } else if (shape.is === 'elements') {
    const items = schema.items ?? {};
    for (const [step, elements] of grouped(shape)) {
      // What has no identity of its own is owned as one.
      set.graft(step, true, elements.length === 1 ? fieldsOf(items, elements[0]) : new FieldSet());
    }
  }
  return set;
}

function isLeaf(schema: Schema, value: unknown): boolean {
  return shapeOf(schema, value).is === 'leaf';
}

/** Nothing in it can be owned, so it is owned itself; otherwise whoever applies it could never take it back. */
function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && size(value) === 0;
}

export interface Changes {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** The fields that differ between two values. */
export function changesBetween(schema: Schema, before: unknown, after: unknown): Changes {
  const changes = { added: new FieldSet(), modified: new FieldSet(), removed: new FieldSet() };
  compare(schema, before, after, [], changes);
  return changes;
}

function compare(schema: Schema, before: unknown, after: unknown, path: readonly string[], changes: Changes): void {
  if (before === after) return;
  if (before === undefined) {
    changes.added.graftAt(path, everythingIn(schema, after));
    return;
  }
  if (after === undefined) {
    changes.removed.graftAt(path, everythingIn(schema, before));
    return;
  }
  const left = shapeOf(schema, before);
  const right = shapeOf(schema, after);
  if (left.is === 'fields' && right.is === 'fields') {
    compareFields(schema, left.object, right.object, path, changes);
  } else if (left.is === 'elements' && right.is === 'elements') {
    compareElements(schema, left, right, path, changes);
  } else if (!sameJson(before, after)) {
    // A value that turns from something with parts into one thing, or back, loses the parts it had.
    changes.modified.insert(path);
    changes.removed.graftBelow(path, everythingIn(schema, before));
    changes.added.graftBelow(path, everythingIn(schema, after));
  }
}

function compareFields(
  schema: Schema,
  before: JsonObject,
  after: JsonObject,
  path: readonly string[],
  changes: Changes,
): void {
  for (const [field, value] of Object.entries(before)) {
    const step = `f:${field}`;
    if (!Object.hasOwn(after, field)) compare(schemaBelow(schema, step), value, undefined, [...path, step], changes);
  }
  for (const [field, value] of Object.entries(after)) {
    const old = fieldOf(before, field);
    if (old === value) continue;
    const step = `f:${field}`;
    compare(schemaBelow(schema, step), old, value, [...path, step], changes);
  }
}

type Elements = Shape & { is: 'elements' };

function compareElements(
  schema: Schema,
  before: Elements,
  after: Elements,
  path: readonly string[],
  changes: Changes,
): void {
  const items = schema.items ?? {};
  const [from, to] = [grouped(before), grouped(after)];
  for (const step of new Set([...from.keys(), ...to.keys()])) {
    compareSame(items, from.get(step) ?? [], to.get(step) ?? [], [...path, step], changes);
  }
}

/** Elements with one identity: at most one on each side, as a rule. More than one are compared as one. */
function compareSame(
  schema: Schema,
  before: readonly unknown[],
  after: readonly unknown[],
  path: readonly string[],
  changes: Changes,
): void {
  if (before.length <= 1 && after.length <= 1) {
    compare(schema, before[0], after[0], path, changes);
  } else if (before.length > 1 && after.length > 1) {
    if (!sameJson(before, after)) changes.modified.insert(path);
  } else if (before.length > 1) {
    if (after.length > 0) compare(schema, undefined, after[0], path, changes);
    changes.removed.insert(path);
  } else {
    if (before.length > 0) compare(schema, before[0], undefined, path, changes);
    changes.added.insert(path);
  }
}

/** Every part of a value, down to the leaves, whoever may own them. */
function everythingIn(schema: Schema, value: unknown): FieldSet {
  const shape = shapeOf(schema, value);
  const set = new FieldSet();
  if (shape.is === 'fields') {
    for (const [field, child] of Object.entries(shape.object)) {
      const step = `f:${field}`;
      set.graft(step, true, everythingIn(schemaBelow(schema, step), child));
    }
  } else if (shape.is === 'elements') {
    const items = schema.items ?? {};
    for (const [step, elements] of grouped(shape)) {
      set.graft(step, true, elements.length === 1 ? everythingIn(items, elements[0]) : new FieldSet());
    }
  }
  return set;
}

function grouped({ list, step }: Elements): Map<string, unknown[]> {
  const groups = new Map<string, unknown[]>();
  list.forEach((element, index) => {
    const id = step(element) ?? `i:${index}`;
    const group = groups.get(id);
    if (group === undefined) groups.set(id, [element]);
    else group.push(element);
  });
  return groups;
}

function size(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return isObject(value) ? Object.keys(value).length : 0;
}

/** The value without the fields of the set. What becomes empty by that goes too, unless it is wanted even so. */
export function withoutFields(schema: Schema, value: unknown, removed: FieldSet, wanted: FieldSet): unknown {
  return remaining(schema, value, removed, wanted, true);
}

function remaining(schema: Schema, value: unknown, removed: FieldSet, wanted: FieldSet, stays: boolean): unknown {
  if (removed.isEmpty) return value;
  const shape = shapeOf(schema, value);
  const part = (child: unknown, step: string) =>
    removed.hasMember(step)
      ? undefined
      : remaining(schemaBelow(schema, step), child, removed.below(step), wanted.below(step), wanted.hasMember(step));
  if (shape.is === 'fields') {
    const result: Record<string, unknown> = {};
    for (const [field, child] of Object.entries(shape.object)) {
      const kept = part(child, `f:${field}`);
      if (kept !== undefined) setField(result, field, kept);
    }
    return stays || Object.keys(result).length > 0 ? result : undefined;
  }
  if (shape.is === 'elements') {
    const elements = shape.list
      .map((element, index) => part(element, shape.step(element) ?? `i:${index}`))
      .filter(element => element !== undefined);
    return stays || elements.length > 0 ? elements : undefined;
  }
  return value;
}

/** The set with every field that the schema names and that has something of the set below. */
export function withNamedFields(schema: Schema, set: FieldSet): FieldSet {
  const result = new FieldSet();
  for (const { step, member, children } of set.entries()) {
    const named = !children.isEmpty && isNamed(schema, step);
    result.graft(step, member || named, withNamedFields(schemaBelow(schema, step), children));
  }
  return result;
}

/** Fields of Go structs that hold structs rather than pointers: they are always there, so nobody adds them. */
const ALWAYS_THERE: ReadonlySet<string> = new Set([
  'f:metadata',
  'f:spec',
  'f:status',
  'f:template',
  'f:strategy',
  'f:updateStrategy',
  'f:jobTemplate',
]);

/** The set without the fields that are always there; what is in them stays. */
export function withoutStructs(schema: Schema, set: FieldSet): FieldSet {
  const result = new FieldSet();
  for (const { step, member, children } of set.entries()) {
    const struct = schema.builtin !== undefined && ALWAYS_THERE.has(step) && isNamed(schema, step);
    result.graft(step, member && !struct, withoutStructs(schemaBelow(schema, step), children));
  }
  return result;
}
