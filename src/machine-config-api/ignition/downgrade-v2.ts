import { levelOfSpec2 } from './spec-level.ts';
import {
  type IgnitionConfig,
  IgnitionError,
  type IgnitionFile,
  type IgnitionFilesystem,
  type IgnitionNode,
  type IgnitionPartition,
  type IgnitionResource,
} from './types.ts';
import { checkIgnition } from './validate.ts';

/**
 * A document of 3.2 in 2.2, which names file systems, has one content a file and appends with a flag (spec 50, section 10.2). Throws
 * `IgnitionError` for what it cannot carry.
 */
export function downgradedTo2(config: IgnitionConfig): object {
  checkIgnition(config, { level: levelOfSpec2(2) });
  for (const { field, isSaid } of unsayable(config))
    if (isSaid) throw new IgnitionError(field, 'cannot be said in Ignition 2.2.0');
  const { ignition, passwd, storage = {}, systemd } = config;
  const names = (storage.filesystems ?? []).flatMap(({ path }) => (path === undefined ? [] : [path]));
  return {
    ignition: {
      version: '2.2.0',
      config: {
        append: ignition.config?.merge?.map(reference),
        replace: ignition.config?.replace?.source === undefined ? undefined : reference(ignition.config.replace),
      },
      security: ignition.security,
      timeouts: ignition.timeouts,
    },
    passwd: {
      users: passwd?.users?.map(user => ({ ...withoutDefaults(user), passwordHash: user.passwordHash })),
      groups: passwd?.groups?.map(withoutDefaults),
    },
    storage: {
      disks: storage.disks?.map(disk => withoutDefaults({ ...disk, partitions: disk.partitions?.map(partition) })),
      raid: storage.raid?.map(withoutDefaults),
      filesystems: namedFilesystems(storage.filesystems ?? []),
      files: storage.files?.flatMap((file, index) => filesOf(file, names, `storage.files[${index}]`)),
      directories: storage.directories?.map((node, index) => named(node, names, `storage.directories[${index}]`)),
      links: storage.links?.map((node, index) => withoutDefaults(named(node, names, `storage.links[${index}]`))),
    },
    systemd: {
      units: systemd?.units?.map(({ enabled, dropins, ...unit }) => ({
        ...withoutDefaults(unit),
        enabled,
        dropins: dropins?.map(withoutDefaults),
      })),
    },
  };
}

interface Saying {
  readonly field: string;
  readonly isSaid: boolean;
}

function* unsayable({ ignition, passwd = {}, storage = {} }: IgnitionConfig): Generator<Saying> {
  const { config = {}, security, proxy } = ignition;
  const references = [...(config.merge ?? []), config.replace, ...(security?.tls?.certificateAuthorities ?? [])];
  const isPacked = references.some(found => found?.compression !== undefined || found?.httpHeaders !== undefined);
  yield { field: 'ignition', isSaid: proxy !== undefined || isPacked };
  yield { field: 'storage.luks', isSaid: storage.luks !== undefined };
  const accounts = [...(passwd.users ?? []), ...(passwd.groups ?? [])];
  yield { field: 'passwd', isSaid: accounts.some(({ shouldExist }) => shouldExist === false) };
  const partitions = (storage.disks ?? []).flatMap(disk => disk.partitions ?? []);
  yield { field: 'storage.disks', isSaid: partitions.some(isBeyond2) };
  for (const [index, { mountOptions, format = '' }] of (storage.filesystems ?? []).entries())
    yield { field: `storage.filesystems[${index}]`, isSaid: mountOptions !== undefined || format === '' };
  for (const [index, { contents, append = [] }] of (storage.files ?? []).entries()) {
    const isFetched = [contents, ...append].some(found => found?.httpHeaders !== undefined);
    yield { field: `storage.files[${index}]`, isSaid: isFetched };
  }
}

/** 4.16 leaves the last two out, and a machine then makes the partition that should not be. */
function isBeyond2({ sizeMiB, startMiB, resize, shouldExist, wipePartitionEntry }: IgnitionPartition): boolean {
  const isMeasured = sizeMiB !== undefined || startMiB !== undefined;
  return isMeasured || resize === true || shouldExist === false || wipePartitionEntry === true;
}

function partition({ label, number, guid, typeGuid }: IgnitionPartition): object {
  return withoutDefaults({ label, number, guid, typeGuid });
}

/** A file system has the name of its path; one without is counted. */
function namedFilesystems(filesystems: readonly IgnitionFilesystem[]): object[] {
  let count = 0;
  return filesystems.map(({ device, format, path, label, uuid, options, wipeFilesystem }) => ({
    name: path ?? String(++count),
    mount: { device, format, label, uuid, options, wipeFilesystem: wipeFilesystem || undefined },
  }));
}

/** The node on the file system with the longest path that its own begins with. */
function named<T extends IgnitionNode>(node: T, filesystems: readonly string[], field: string): T & object {
  const [filesystem = ''] = filesystems.filter(path => node.path.startsWith(path)).sort((a, b) => b.length - a.length);
  const path = node.path.slice(filesystem.length);
  if (!path.startsWith('/')) throw new IgnitionError(`${field}.path`, `is not below ${filesystem}`);
  return {
    ...node,
    filesystem: filesystem || 'root',
    path,
    ...(node.user && { user: withoutDefaultName(node.user) }),
    ...(node.group && { group: withoutDefaultName(node.group) }),
  };
}

function withoutDefaultName({ id, name }: NonNullable<IgnitionNode['user']>): object {
  return { id, name: name || undefined };
}

/** Each content is a file of its own; a file without any is none. */
function filesOf(
  { append = [], contents, ...node }: IgnitionFile,
  filesystems: readonly string[],
  field: string,
): object[] {
  const base = { ...named(node, filesystems, field), overwrite: node.overwrite ?? false };
  return [
    ...(contents?.source === undefined ? [] : [{ ...base, contents: withoutDefaults(contents) }]),
    ...append.map(part => ({ ...base, overwrite: false, append: true, contents: withoutDefaults(part) })),
  ];
}

function reference({ source, verification }: IgnitionResource): object {
  return { source, verification };
}

/** Without empty texts, zeros and falsehoods, except for what must be told apart from nothing. */
function withoutDefaults(object: object): object {
  return Object.fromEntries(
    Object.entries(object).filter(
      ([name, value]) =>
        TOLD_APART.has(name) || (value !== '' && value !== false && value !== 0 && name !== 'shouldExist'),
    ),
  );
}

const TOLD_APART = new Set(['gid', 'mode', 'overwrite', 'uid']);
