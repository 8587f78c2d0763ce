import { isDeepStrictEqual } from 'node:util';
import { parse, type TomlTable } from 'smol-toml';

/** A `registries.conf` that cannot be read: the update is refused, since nobody knows what it would do (spec 60, 9.3). */
export class RegistriesConfError extends Error {
  override readonly name = 'RegistriesConfError';
}

/** A rendered config is one object of the API. */
const LARGEST_FILE_BYTES = 1024 * 1024;
const DIGEST_ONLY = 'digest-only';

/**
 * Why containers must leave the node before a change of `registries.conf` takes effect, undefined where running images cannot turn
 * into others: search registries appended, digest-only sources added, mirrors tightened to digests (spec 60, 9.3). What is not known
 * to be harmless is a reason (D-20). `undefined` is a file that is not there. Throws `RegistriesConfError`.
 */
export function registriesDrainReason(before: string | undefined, after: string | undefined): string | undefined {
  const [old, current] = [readRegistries(before, 'old'), readRegistries(after, 'new')];
  return (
    searchReason(old.search, current.search) ??
    otherSettingsReason('registries.conf', old.others, current.others) ??
    registriesReason(old.registries, current.registries)
  );
}

function searchReason(before: readonly string[], after: readonly string[]): string | undefined {
  return before.every((registry, index) => after[index] === registry)
    ? undefined
    : 'unqualified-search-registries were removed or reordered';
}

function otherSettingsReason(where: string, before: TomlTable, after: TomlTable): string | undefined {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  const changed = names.find(name => !isDeepStrictEqual(before[name], after[name]));
  return changed === undefined ? undefined : `${where}: ${changed} was changed`;
}

function registriesReason(before: readonly Registry[], after: readonly Registry[]): string | undefined {
  if (isDeepStrictEqual(before, after)) return undefined;
  const [old, current] = [byScope(before), byScope(after)];
  if (old === undefined || current === undefined) return 'a registry is listed twice';
  for (const scope of old.keys()) if (!current.has(scope)) return `registry ${scope} was removed`;
  for (const [scope, registry] of current) {
    const known = old.get(scope);
    const reason = known === undefined ? newRegistryReason(registry) : changedRegistryReason(known, registry);
    if (reason !== undefined) return `registry ${scope}: ${reason}`;
  }
  return undefined;
}

/** Undefined where a scope is given twice: which one counts is not for us to guess. */
function byScope(registries: readonly Registry[]): Map<string, Registry> | undefined {
  const scopes = new Map(registries.map(registry => [registry.prefix || registry.location, registry]));
  return scopes.size === registries.length ? scopes : undefined;
}

/** A new scope may only add sources that are asked by digest; the registry-wide flag does not speak for mirrors (spec 60, 9.3.4). */
function newRegistryReason({ mirrors, isDigestOnly }: Registry): string | undefined {
  if (mirrors.length === 0) return isDigestOnly ? undefined : 'was added without mirror-by-digest-only';
  const plain = mirrors.find(({ pull }) => pull !== DIGEST_ONLY);
  return plain === undefined ? undefined : `was added with mirror ${plain.location}, which is not digest-only`;
}

function changedRegistryReason(before: Registry, after: Registry): string | undefined {
  if (before.prefix !== after.prefix) return 'prefix was changed';
  if (before.location !== after.location) return 'location was changed';
  if (before.isBlocked !== after.isBlocked) return 'blocked was changed';
  if (before.isInsecure !== after.isInsecure) return 'insecure was changed';
  const others = otherSettingsReason('settings', before.others, after.others);
  if (others !== undefined) return others;
  if (before.isDigestOnly && !after.isDigestOnly && after.mirrors.length === 0)
    return 'mirror-by-digest-only was dropped';
  return mirrorsReason(before, after);
}

function mirrorsReason(before: Registry, after: Registry): string | undefined {
  const [old, current] = [byLocation(before.mirrors), byLocation(after.mirrors)];
  if (old === undefined || current === undefined) {
    return isDeepStrictEqual(before.mirrors, after.mirrors) && before.isDigestOnly === after.isDigestOnly
      ? undefined
      : 'a mirror is listed twice';
  }
  const kept = [...current.keys()].filter(location => old.has(location));
  if (!isDeepStrictEqual(kept, [...old.keys()])) return 'mirrors were removed or reordered';
  for (const [location, mirror] of current) {
    const reason = mirrorReason(old.get(location), mirror, before.isDigestOnly, after.isDigestOnly);
    if (reason !== undefined) return `mirror ${location}: ${reason}`;
  }
  return undefined;
}

function mirrorReason(
  before: Mirror | undefined,
  after: Mirror,
  wasDigestOnly: boolean,
  isDigestOnly: boolean,
): string | undefined {
  const isByDigest = after.pull === DIGEST_ONLY || isDigestOnly;
  if (before === undefined) return isByDigest ? undefined : 'was added and is not digest-only';
  if (before.pull !== after.pull && after.pull !== DIGEST_ONLY) return 'pull-from-mirror was loosened';
  if ((before.pull === DIGEST_ONLY || wasDigestOnly) && !isByDigest) return 'is no longer digest-only';
  if (before.isInsecure !== after.isInsecure) return 'insecure was changed';
  return otherSettingsReason('settings', before.others, after.others);
}

function byLocation(mirrors: readonly Mirror[]): Map<string, Mirror> | undefined {
  const locations = new Map(mirrors.map(mirror => [mirror.location, mirror]));
  return locations.size === mirrors.length ? locations : undefined;
}

interface RegistriesConf {
  readonly search: readonly string[];
  readonly registries: readonly Registry[];
  readonly others: TomlTable;
}

interface Registry {
  readonly prefix: string;
  readonly location: string;
  readonly isBlocked: boolean;
  readonly isInsecure: boolean;
  readonly isDigestOnly: boolean;
  readonly mirrors: readonly Mirror[];
  readonly others: TomlTable;
}

interface Mirror {
  readonly location: string;
  readonly isInsecure: boolean;
  readonly pull: string;
  readonly others: TomlTable;
}

function readRegistries(text: string | undefined, which: string): RegistriesConf {
  if (text === undefined) return { search: [], registries: [], others: {} };
  if (Buffer.byteLength(text) > LARGEST_FILE_BYTES)
    throw new RegistriesConfError(`the ${which} registries.conf is larger than ${LARGEST_FILE_BYTES} bytes`);
  try {
    const { 'unqualified-search-registries': search, registry, ...others } = parse(text);
    return {
      search: list(search, 'unqualified-search-registries').map(item => string(item, 'unqualified-search-registries')),
      registries: list(registry, 'registry').map(item => readRegistry(table(item, 'registry'))),
      others,
    };
  } catch (error) {
    const [problem = ''] = (error as Error).message.split('\n');
    throw new RegistriesConfError(`the ${which} registries.conf cannot be read: ${problem}`, { cause: error });
  }
}

function readRegistry(item: TomlTable): Registry {
  const { prefix, location, blocked, insecure, 'mirror-by-digest-only': digestOnly, mirror, ...others } = item;
  return {
    prefix: string(prefix, 'registry.prefix'),
    location: string(location, 'registry.location'),
    isBlocked: flag(blocked, 'registry.blocked'),
    isInsecure: flag(insecure, 'registry.insecure'),
    isDigestOnly: flag(digestOnly, 'registry.mirror-by-digest-only'),
    mirrors: list(mirror, 'registry.mirror').map(found => readMirror(table(found, 'registry.mirror'))),
    others,
  };
}

function readMirror({ location, insecure, 'pull-from-mirror': pull, ...others }: TomlTable): Mirror {
  return {
    location: string(location, 'registry.mirror.location'),
    isInsecure: flag(insecure, 'registry.mirror.insecure'),
    pull: string(pull, 'registry.mirror.pull-from-mirror'),
    others,
  };
}

function string(value: unknown, field: string): string {
  if (value === undefined) return '';
  if (typeof value !== 'string') throw new RegistriesConfError(`${field}: expected a text, found ${typeof value}`);
  return value;
}

function flag(value: unknown, field: string): boolean {
  if (value === undefined) return false;
  if (typeof value !== 'boolean')
    throw new RegistriesConfError(`${field}: expected true or false, found ${typeof value}`);
  return value;
}

function list(value: unknown, field: string): readonly unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new RegistriesConfError(`${field}: expected a list, found ${typeof value}`);
  return value;
}

function table(value: unknown, field: string): TomlTable {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Date)
    throw new RegistriesConfError(`${field}: expected a table, found ${typeof value}`);
  return value as TomlTable;
}
