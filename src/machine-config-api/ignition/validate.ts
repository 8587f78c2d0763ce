import type { Problem } from './path-rules.ts';
import { resourceProblems } from './resource-rules.ts';
import { IGNITION_SHAPE, type ListShape, type ObjectShape, type Shape } from './schema.ts';
import { levelOfSpec3, type SpecLevel } from './spec-level.ts';
import { storageProblems } from './storage-rules.ts';
import { type IgnitionConfig, IgnitionError } from './types.ts';
import { unitProblem } from './unit-syntax.ts';

/**
 * Checks a document by Ignition's own rules and ours: names stay inside of their directory, modes have no special bits, and what
 * must be held in memory and in the API is not too large (spec 50, RN-9). The last two are not asked of a config that a machine is
 * in. Throws `IgnitionError` with the first problem.
 */
export function checkIgnition(
  config: IgnitionConfig,
  { isStored = false, level = levelOfSpec3(LATEST_MINOR) }: { isStored?: boolean | undefined; level?: SpecLevel } = {},
): IgnitionConfig {
  refuse(ignitionProblems(config, level), isStored);
  return config;
}

/** Throws `IgnitionError` with the first problem; our own rules are not asked of a config that a machine is in. */
export function refuse(problems: Iterable<Problem>, isStored: boolean): void {
  for (const { field, message, isOwnRule = false } of problems) {
    if (!(isStored && isOwnRule)) throw new IgnitionError(field, message);
  }
}

const LATEST_MINOR = 4;

function* ignitionProblems(config: IgnitionConfig, level: SpecLevel): Generator<Problem, undefined> {
  yield* duplicates(config as unknown as JsonObject, IGNITION_SHAPE, '');
  yield* entryProblems(config, level);
  yield* systemdPathProblems(config);
  yield* proxyProblems(config);
}

/** What is wrong with single entries, whatever the others are. */
export function* entryProblems(config: IgnitionConfig, level: SpecLevel): Generator<Problem, undefined> {
  yield* resourceProblems(config, level);
  yield* storageProblems(config.storage ?? {}, level);
  yield* unitProblems(config);
}

type JsonObject = Readonly<Record<string, unknown>>;

/** Entries with the same key in one list, or in lists of one namespace. */
function* duplicates(object: JsonObject, shape: ObjectShape, path: string): Generator<Problem> {
  const seen = new Map<string, Set<string>>();
  for (const [name, member] of Object.entries(shape.members)) {
    const value = object[name];
    const field = path === '' ? name : `${path}.${name}`;
    if (value === undefined) continue;
    if (member.kind === 'object') yield* duplicates(value as JsonObject, member, field);
    if (member.kind !== 'list') continue;
    const namespace = shape.shared.find(lists => lists.includes(name))?.join() ?? name;
    const keys = seen.get(namespace) ?? new Set<string>();
    seen.set(namespace, keys);
    yield* duplicatesInList(value as unknown[], member, field, keys);
  }
}

function* duplicatesInList(
  list: readonly unknown[],
  { items, key }: ListShape,
  field: string,
  keys: Set<string>,
): Generator<Problem> {
  for (const [index, item] of list.entries()) {
    if (key !== undefined) {
      if (keys.has(key(item)))
        yield { field: `${field}[${index}]`, message: `${JSON.stringify(shortened(key(item)))} is there twice` };
      keys.add(key(item));
    }
    if (isObjectShape(items)) yield* duplicates(item as JsonObject, items, `${field}[${index}]`);
  }
}

function isObjectShape(shape: Shape): shape is ObjectShape {
  return shape.kind === 'object';
}

const LONGEST_QUOTED = 200;

function shortened(text: string): string {
  return text.length <= LONGEST_QUOTED ? text : `${text.slice(0, LONGEST_QUOTED)}...`;
}

const UNIT_NAME = /\.(?:service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)$/;
/** What the file system of a node takes. */
const LONGEST_NAME = 255;

function* unitProblems({ systemd }: IgnitionConfig): Generator<Problem> {
  for (const [index, unit] of (systemd?.units ?? []).entries()) {
    const field = `systemd.units[${index}]`;
    if (!UNIT_NAME.test(unit.name))
      yield {
        field: `${field}.name`,
        message: `${JSON.stringify(shortened(unit.name))} has no suffix of a systemd unit`,
      };
    yield* fileNameProblems(unit.name, `${field}.name`);
    yield* contentProblems(unit.contents, `${field}.contents`);
    for (const [at, dropin] of (unit.dropins ?? []).entries()) {
      const place = `${field}.dropins[${at}]`;
      if (!dropin.name.endsWith('.conf'))
        yield { field: `${place}.name`, message: `${JSON.stringify(shortened(dropin.name))} does not end in .conf` };
      yield* fileNameProblems(dropin.name, `${place}.name`);
      yield* contentProblems(dropin.contents, `${place}.contents`);
    }
  }
}

/** A name becomes a file in a directory of systemd, and must not lead out of it. */
function* fileNameProblems(name: string, field: string): Generator<Problem> {
  // oxlint-disable-next-line no-control-regex -- controls are what is refused
  if (/[/\x00-\x1f]/.test(name)) yield { field, message: 'must not contain slashes or control characters' };
  if (Buffer.byteLength(name) > LONGEST_NAME) yield { field, message: `must have at most ${LONGEST_NAME} bytes` };
}

function* contentProblems(contents: string | undefined, field: string): Generator<Problem> {
  const problem = unitProblem(contents ?? '');
  if (problem !== undefined) yield { field, message: `invalid unit content: ${problem}` };
}

/** A unit with contents is a file, which may not be given a second time below storage. */
function* systemdPathProblems({ systemd, storage = {} }: IgnitionConfig): Generator<Problem> {
  const taken = new Set(
    (systemd?.units ?? []).flatMap(({ name, contents = '', dropins = [] }) => [
      ...(contents === '' ? [] : [`/etc/systemd/system/${name}`]),
      ...dropins
        .filter(dropin => (dropin.contents ?? '') !== '')
        .map(dropin => `/etc/systemd/system/${name}.d/${dropin.name}`),
    ]),
  );
  for (const list of ['files', 'directories', 'links'] as const) {
    for (const [index, { path }] of (storage[list] ?? []).entries()) {
      if (taken.has(path))
        yield { field: `storage.${list}[${index}].path`, message: `${path} is also the file of a systemd unit` };
    }
  }
}

function* proxyProblems({ ignition }: IgnitionConfig): Generator<Problem> {
  for (const name of ['httpProxy', 'httpsProxy'] as const) {
    const url = ignition.proxy?.[name];
    if (url !== undefined && !/^https?:/.test(url))
      yield { field: `ignition.proxy.${name}`, message: 'expected an http or https URL' };
  }
}
