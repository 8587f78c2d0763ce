import { pathProblem } from './path-rules.ts';
import { shaped } from './shape.ts';
import {
  IGNITION_VERSION,
  type IgnitionConfig,
  IgnitionError,
  type IgnitionFile,
  type IgnitionNode,
  type IgnitionUnit,
  type IgnitionUser,
} from './types.ts';
import { IGNITION2_SHAPE } from './v2-schema.ts';
import type { Ignition2Config, Ignition2File, Ignition2Node, Ignition2Unit, Ignition2User } from './v2-types.ts';

/**
 * A document of spec 2 as one of 3.4 (spec 50, RN-12). What spec 3 has no place for is refused with a reason: networkd units,
 * file systems other than root, sizes in sectors. Throws `IgnitionError`.
 */
export function readIgnition2(document: unknown): IgnitionConfig {
  const config = (shaped(document, IGNITION2_SHAPE, 0, '') ?? {}) as Ignition2Config;
  if (config.networkd?.units !== undefined) {
    throw new IgnitionError('networkd', 'networkd units are not supported; use files instead');
  }
  return converted(deduplicated(config));
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
  const security = ignition.security?.tls?.certificateAuthorities;
  for (const [index, { name = '' }] of (storage.filesystems ?? []).entries()) {
    if (name !== ROOT)
      throw new IgnitionError(`storage.filesystems[${index}].name`, 'only the file system root is supported');
  }
  for (const [index, { partitions = [] }] of (storage.disks ?? []).entries()) {
    if (partitions.some(({ size = 0, start = 0 }) => size !== 0 || start !== 0)) {
      throw new IgnitionError(`storage.disks[${index}].partitions`, 'sizes in sectors are not supported');
    }
  }
  return withoutEmpty({
    ignition: {
      version: IGNITION_VERSION,
      config: { merge: ignition.config?.append, replace: ignition.config?.replace },
      security: { tls: { certificateAuthorities: security } },
      timeouts: ignition.timeouts,
    },
    passwd: { users: passwd?.users?.map(convertedUser), groups: passwd?.groups },
    storage: {
      files: storage.files?.map(convertedFile),
      directories: storage.directories?.map((node, i) => ({
        ...convertedNode(node, `storage.directories[${i}]`),
        mode: node.mode,
      })),
      links: storage.links?.map((node, i) => ({
        ...convertedNode(node, `storage.links[${i}]`),
        target: node.target,
        hard: node.hard || undefined,
      })),
      disks: storage.disks?.map(({ device, wipeTable, partitions }) => ({
        device,
        wipeTable: wipeTable || undefined,
        partitions: partitions?.map(({ label, number, guid, typeGuid }) => ({ label, number, guid, typeGuid })),
      })),
      raid: storage.raid?.map(array => ({ ...array, spares: array.spares || undefined })),
    },
    systemd: { units: systemd?.units?.map(convertedUnit) },
  }) as IgnitionConfig;
}

const ROOT = 'root';

function convertedNode(node: Ignition2Node, field: string): IgnitionNode {
  if (node.filesystem !== ROOT)
    throw new IgnitionError(`${field}.filesystem`, `expected ${ROOT}, found ${JSON.stringify(node.filesystem ?? '')}`);
  const problem = pathProblem(node.path);
  if (problem !== undefined) throw new IgnitionError(`${field}.path`, problem);
  const { path, overwrite, user, group } = node;
  return withoutEmpty({ path, overwrite, user, group }) as IgnitionNode;
}

/** Spec 2 overwrites unless told otherwise, and appends with a flag where spec 3 has a list. */
function convertedFile(file: Ignition2File, index: number): IgnitionFile {
  const field = `storage.files[${index}]`;
  if (file.append === true && file.overwrite === true) throw new IgnitionError(field, 'both appends and overwrites');
  const { source = '', compression = '', verification } = file.contents ?? {};
  const contents = { source, ...(compression !== '' && { compression }), ...(verification && { verification }) };
  const node = convertedNode(file, field);
  const mode = file.mode === undefined ? {} : { mode: file.mode };
  if (file.append === true) return { ...node, overwrite: false, append: [contents], ...mode };
  return { ...node, overwrite: file.overwrite ?? true, contents, ...mode };
}

/** `enabled` wins over the older `enable`. */
function convertedUnit(unit: Ignition2Unit): IgnitionUnit {
  const enabled = unit.enabled ?? (unit.enable === true ? true : undefined);
  const { name, contents, mask, dropins } = unit;
  return withoutEmpty({
    name,
    contents: contents || undefined,
    enabled,
    mask: mask || undefined,
    dropins,
  }) as IgnitionUnit;
}

function convertedUser(user: Ignition2User, index: number): IgnitionUser {
  if (user.create !== undefined)
    throw new IgnitionError(`passwd.users[${index}].create`, 'is not supported; describe the user itself');
  const { passwordHash, uid, name, ...rest } = user;
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
