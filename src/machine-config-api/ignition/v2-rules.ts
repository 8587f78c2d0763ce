import { LABEL_BYTES } from './device-rules.ts';
import type { Problem } from './path-rules.ts';
import type { Ignition2Config, Ignition2File, Ignition2Filesystem, Ignition2Node, Ignition2User } from './v2-types.ts';

/** What spec 2 asks for and spec 3 does not, and what spec 3 has no place for (spec 50, RN-12). */
export function* spec2Problems(config: Ignition2Config, minor: number): Generator<Problem> {
  const { ignition, networkd, passwd = {}, storage = {} } = config;
  if ((ignition.config?.append?.length ?? 0) > 1)
    yield { field: 'ignition.config.append', message: 'only one document can be appended' };
  if (networkd?.units !== undefined)
    yield { field: 'networkd', message: 'networkd units are not supported; use files instead' };
  for (const [index, file] of (storage.files ?? []).entries()) yield* fileProblems(file, `storage.files[${index}]`);
  for (const list of ['files', 'directories', 'links'] as const) {
    for (const [index, node] of (storage[list] ?? []).entries()) yield* nodeProblems(node, `storage.${list}[${index}]`);
  }
  for (const [index, { partitions = [] }] of (storage.disks ?? []).entries()) {
    if (partitions.length > 0)
      yield { field: `storage.disks[${index}].partitions`, message: 'are measured in sectors, which is not supported' };
  }
  for (const [index, filesystem] of (storage.filesystems ?? []).entries())
    yield* filesystemProblems(filesystem, minor, `storage.filesystems[${index}]`);
  for (const [index, user] of (passwd.users ?? []).entries()) yield* userProblems(user, `passwd.users[${index}]`);
  for (const [index, { gid = 0 }] of (passwd.groups ?? []).entries()) {
    if (minor === 0 && gid < 0) yield { field: `passwd.groups[${index}].gid`, message: 'is negative' };
  }
}

const HIGHEST_MODE = 0o7777;
/** Files have no special bits, and unlike in spec 3 they are not taken away but refused (spec 50, RN-9). */
const HIGHEST_FILE_MODE = 0o777;

function* fileProblems({ append, overwrite, mode = 0 }: Ignition2File, field: string): Generator<Problem> {
  if (append === true && overwrite === true) yield { field, message: 'both appends and overwrites' };
  if (mode > HIGHEST_FILE_MODE && mode <= HIGHEST_MODE) {
    const message = `invalid mode 0${mode.toString(8)}, cannot exceed 0${HIGHEST_FILE_MODE.toString(8)}`;
    yield { field: `${field}.mode`, message, isOwnRule: true };
  }
}

function* nodeProblems({ filesystem, path }: Ignition2Node, field: string): Generator<Problem> {
  if (!filesystem) yield { field: `${field}.filesystem`, message: 'no filesystem specified' };
  yield* absolutePath(path, `${field}.path`);
}

/** Only the root file system can be named: it is there already, and whatever else is said of it is dropped. */
function* filesystemProblems(
  { name = '', path, mount }: Ignition2Filesystem,
  minor: number,
  field: string,
): Generator<Problem> {
  if (name !== 'root') yield { field: `${field}.name`, message: 'only the file system root is supported' };
  if ((path === undefined) === (mount === undefined)) yield { field, message: 'needs either a mount or a path' };
  if (path !== undefined) yield* absolutePath(path, `${field}.path`);
  if (mount === undefined) return;
  const { device = '', format = '', label = '', create, wipeFilesystem, options = [] } = mount;
  yield* absolutePath(device, `${field}.mount.device`);
  const formats = minor === 0 ? FORMATS_2_0 : FORMATS;
  if (!formats.has(format)) yield { field: `${field}.mount.format`, message: `expected one of ${[...formats].join()}` };
  else if (Buffer.byteLength(label) > (LABEL_BYTES[format] ?? 0))
    yield { field: `${field}.mount.label`, message: `has more than ${LABEL_BYTES[format]} bytes` };
  if (create !== undefined && (wipeFilesystem === true || options.length > 0))
    yield { field: `${field}.mount.create`, message: 'excludes wipeFilesystem and options' };
}

const FORMATS_2_0 = new Set(['ext4', 'btrfs', 'xfs']);
const FORMATS = new Set([...FORMATS_2_0, 'swap', 'vfat']);

/** Whoever uses `create` describes the account in it, and not beside it. It is of no use to us: the account exists. */
function* userProblems({ create, ...user }: Ignition2User, field: string): Generator<Problem> {
  if (create === undefined) return;
  const { name: _name, passwordHash: _password, sshAuthorizedKeys: _keys, ...account } = user;
  const isDescribed = Object.values(account).some(value => value !== '' && value !== false);
  if (isDescribed) yield { field: `${field}.create`, message: 'excludes describing the user itself' };
}

function* absolutePath(path: string, field: string): Generator<Problem> {
  if (!path.startsWith('/')) yield { field, message: `path not absolute: ${JSON.stringify(path)}` };
}
