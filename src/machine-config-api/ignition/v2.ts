import { posix } from 'node:path';
import type { Problem } from './path-rules.ts';
import { shaped } from './shape.ts';
import { levelOfSpec2 } from './spec-level.ts';
import {
  IGNITION_VERSION,
  type IgnitionConfig,
  IgnitionError,
  type IgnitionFile,
  type IgnitionNode,
  type IgnitionUnit,
  type IgnitionUser,
} from './types.ts';
import { rewrittenUrl } from './url-syntax.ts';
import { spec2Problems } from './v2-rules.ts';
import { IGNITION2_SHAPE } from './v2-schema.ts';
import type {
  Ignition2Config,
  Ignition2File,
  Ignition2Node,
  Ignition2Reference,
  Ignition2Unit,
  Ignition2User,
} from './v2-types.ts';
import { checkIgnition, entryProblems, refuse } from './validate.ts';

/**
 * A document of spec 2 as one of 3.4 (spec 50, RN-12). Every entry is judged by the rules of its own version, also one that a later
 * one of the same name replaces; what is left is judged as a document of 3.0. Throws `IgnitionError`.
 */
export function readIgnition2(document: unknown, minor: number, isStored: boolean): IgnitionConfig {
  const config = withDefaults((shaped(document, IGNITION2_SHAPE, minor, '') ?? {}) as Ignition2Config, minor);
  const level = levelOfSpec2(minor);
  refuse(spec2Problems(config, minor), isStored);
  refuse(entryProblems(converted(config), { ...level, schemes: new Set([...level.schemes, OEM_SCHEME]) }), isStored);
  const single = deduplicated(config);
  refuse(linkProblems(single), isStored);
  return checkIgnition(converted(single), { isStored, level });
}

/** Where an operating system keeps files of its vendor; spec 3 has no such place. */
const OEM_SCHEME = 'oem';

/** Before 2.2 a mode that is not said is 0. In 2.0 so is an owner, an empty password is none, and URLs were rewritten. */
function withDefaults(config: Ignition2Config, minor: number): Ignition2Config {
  if (minor === 2) return config;
  const { storage = {}, passwd = {}, ignition } = config;
  const withMode = {
    ...config,
    storage: {
      ...storage,
      ...(storage.files && { files: storage.files.map(file => ({ mode: 0, ...file })) }),
      ...(storage.directories && { directories: storage.directories.map(node => ({ mode: 0, ...node })) }),
    },
  };
  if (minor === 1) return withMode;
  const { append, replace } = ignition.config ?? {};
  const rewritten = <T extends Ignition2Reference>(reference: T): T => ({
    ...reference,
    ...(reference.source !== undefined && { source: rewrittenUrl(reference.source) }),
  });
  return {
    ...withMode,
    ignition: {
      ...ignition,
      config: { ...(append && { append: append.map(rewritten) }), ...(replace && { replace: rewritten(replace) }) },
    },
    storage: {
      ...withMode.storage,
      ...(withMode.storage.files && {
        files: withMode.storage.files.map(file => ({
          ...file,
          user: { id: file.user?.id ?? 0 },
          group: { id: file.group?.id ?? 0 },
          ...(file.contents && { contents: rewritten(file.contents) }),
        })),
      }),
    },
    passwd: {
      ...passwd,
      ...(passwd.users && {
        users: passwd.users.map(({ passwordHash, ...user }) => (passwordHash ? { ...user, passwordHash } : user)),
      }),
    },
  };
}

/** Nothing may lie behind a link of the same document, nor have a path that begins like one. */
function* linkProblems({ storage = {} }: Ignition2Config): Generator<Problem> {
  const linkPaths = (storage.links ?? []).map(({ path }) => cleaned(path));
  for (const list of ['files', 'directories', 'links'] as const) {
    for (const [index, node] of (storage[list] ?? []).entries()) {
      const path = cleaned(node.path);
      const link = linkPaths.find(linkPath => path.startsWith(linkPath) && path !== linkPath);
      if (link !== undefined)
        yield { field: `storage.${list}[${index}].path`, message: `uses the link ${link} of the same document` };
    }
  }
}

/**
 * Files, units and users once each: the last one wins, drop-ins of equal units are collected, keys of the user `core` are
 * joined. Later entries come first in the result.
 */
export function deduplicated(config: Ignition2Config): Ignition2Config {
  const { storage, systemd, passwd } = config;
  return {
    ...config,
    ...(storage && {
      storage: { ...storage, ...(storage.files && { files: lastOfEach(storage.files, ({ path }) => path) }) },
    }),
    ...(systemd?.units && { systemd: { units: collectedUnits(systemd.units) } }),
    ...(passwd && { passwd: { ...passwd, ...(passwd.users && { users: joinedUsers(passwd.users) }) } }),
  };
}

function lastOfEach<T>(items: readonly T[], key: (item: T) => string): T[] {
  const seen = new Set<string>();
  return items.toReversed().filter(item => !seen.has(key(item)) && seen.add(key(item)));
}

function collectedUnits(units: readonly Ignition2Unit[]): Ignition2Unit[] {
  return lastOfEach(units, ({ name }) => name).map(unit => {
    const dropins = [...(unit.dropins ?? [])];
    const older = units.filter(({ name }) => name === unit.name).slice(0, -1);
    for (const dropin of older.toReversed().flatMap(({ dropins = [] }) => dropins)) {
      if (!dropins.some(({ name }) => name === dropin.name)) dropins.push(dropin);
    }
    return dropins.length === 0 ? unit : { ...unit, dropins };
  });
}

function joinedUsers(users: readonly Ignition2User[]): Ignition2User[] {
  const latestFirst = users.toReversed();
  for (const { name } of latestFirst) {
    if (name !== 'core')
      throw new IgnitionError('passwd.users', `unexpected user with name: ${name}. Only core user is supported`);
  }
  const [latest] = latestFirst;
  if (latest === undefined) return [];
  const keys = [...new Set(latestFirst.flatMap(({ sshAuthorizedKeys = [] }) => sshAuthorizedKeys))];
  return [{ ...latest, ...(keys.length > 0 && { sshAuthorizedKeys: keys }) }];
}

function converted(config: Ignition2Config): IgnitionConfig {
  const { ignition, storage = {}, systemd, passwd } = config;
  return withoutEmpty({
    ignition: {
      version: IGNITION_VERSION,
      config: {
        merge: ignition.config?.append,
        replace: ignition.config?.replace,
      },
      security: ignition.security,
      timeouts: ignition.timeouts,
    },
    passwd: {
      users: passwd?.users?.map(convertedUser),
      groups: passwd?.groups?.map(({ name, gid, passwordHash, system }) => ({
        name,
        gid,
        passwordHash: passwordHash || undefined,
        system: system || undefined,
      })),
    },
    storage: {
      files: storage.files?.map(convertedFile),
      directories: storage.directories?.map(node => ({ ...convertedNode(node), mode: withoutSpecialBits(node.mode) })),
      links: storage.links?.map(node => ({
        ...convertedNode(node),
        target: node.target || undefined,
        hard: node.hard || undefined,
      })),
      disks: storage.disks?.map(({ device, wipeTable }) => ({ device, wipeTable: wipeTable || undefined })),
      raid: storage.raid?.map(array => ({ ...array, spares: array.spares || undefined })),
    },
    systemd: { units: systemd?.units?.map(convertedUnit) },
  }) as IgnitionConfig;
}

function convertedNode({ path, overwrite, user, group }: Ignition2Node): IgnitionNode {
  const owner = (said: Ignition2Node['user']) => ({ id: said?.id, name: said?.name || undefined });
  return withoutEmpty({ path: cleaned(path), overwrite, user: owner(user), group: owner(group) }) as IgnitionNode;
}

/** Whatever file system it names: there is one. */
function cleaned(path: string): string {
  const normal = posix.normalize(path);
  return normal.length > 1 && normal.endsWith('/') ? normal.slice(0, -1) : normal;
}

/** Spec 2 overwrites unless told otherwise, and appends with a flag where spec 3 has a list. */
function convertedFile(file: Ignition2File): IgnitionFile {
  const { source = '', compression = '', verification } = file.contents ?? {};
  const contents = { source, ...(compression !== '' && { compression }), ...(verification && { verification }) };
  const node = convertedNode(file);
  const mode = file.mode === undefined ? {} : { mode: file.mode };
  if (file.append === true) return { ...node, overwrite: false, append: [contents], ...mode };
  return { ...node, overwrite: file.overwrite ?? true, contents, ...mode };
}

/** Set-uid, set-gid and sticky bits mean something from 3.4 on. */
function withoutSpecialBits(mode: number | undefined): number | undefined {
  return mode === undefined || mode < 0 ? mode : mode & ~0o7000;
}

/** `enabled` wins over the older `enable`. */
function convertedUnit({ name, contents, enable, enabled, mask, dropins }: Ignition2Unit): IgnitionUnit {
  return withoutEmpty({
    name,
    contents: contents || undefined,
    enabled: enabled ?? (enable === true ? true : undefined),
    mask: mask || undefined,
    dropins: dropins?.map(dropin => ({ name: dropin.name, contents: dropin.contents || undefined })),
  }) as IgnitionUnit;
}

function convertedUser({ create: _create, passwordHash, uid, name, ...rest }: Ignition2User): IgnitionUser {
  const said = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== '' && value !== false));
  return withoutEmpty({ name, passwordHash, uid, ...said }) as IgnitionUser;
}

/** Without members that are not set and objects and lists that are empty. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, withoutEmpty(member)] as const);
  return Object.fromEntries(
    entries.filter(
      ([, member]) =>
        member !== undefined && !(typeof member === 'object' && member !== null && Object.keys(member).length === 0),
    ),
  );
}
