import type { ListShape, ObjectShape, Scalar, Shape } from './schema.ts';

const string: Scalar = { kind: 'string' };
const boolean: Scalar = { kind: 'boolean' };
const integer: Scalar = { kind: 'integer' };
const strings: ListShape = { kind: 'list', items: string };

/** `since` is the minor version of spec 2 that brought a member; it is nothing to older documents. */
function object(
  members: Readonly<Record<string, Shape>>,
  required: readonly string[] = [],
  since: ObjectShape['since'] = {},
): ObjectShape {
  return { kind: 'object', members, required, shared: [], since };
}

function list(items: ObjectShape): ListShape {
  return { kind: 'list', items };
}

const reference = object({ source: string, verification: object({ hash: string }) }, ['source']);
const owner = object({ id: integer, name: string }, [], { name: 1 });
const node = { filesystem: string, group: owner, overwrite: boolean, path: string, user: owner };
const dropin = object({ contents: string, name: string }, ['name']);

const account = {
  gecos: string,
  groups: strings,
  homeDir: string,
  noCreateHome: boolean,
  noLogInit: boolean,
  noUserGroup: boolean,
  primaryGroup: string,
  shell: string,
  system: boolean,
  uid: integer,
};
const user = object(
  { ...account, create: object(account), name: string, passwordHash: string, sshAuthorizedKeys: strings },
  ['name'],
  Object.fromEntries(Object.keys(account).map(name => [name, 1])),
);

const mount = object(
  {
    create: object({ force: boolean, options: strings }),
    device: string,
    format: string,
    label: string,
    options: strings,
    uuid: string,
    wipeFilesystem: boolean,
  },
  [],
  { label: 1, options: 1, uuid: 1, wipeFilesystem: 1 },
);

/** The shape of Ignition 2.0 to 2.2. */
export const IGNITION2_SHAPE: ObjectShape = object(
  {
    ignition: object(
      {
        config: object({ append: list(reference), replace: reference }),
        security: object({ tls: object({ certificateAuthorities: list(reference) }) }),
        timeouts: object({ httpResponseHeaders: integer, httpTotal: integer }),
        version: string,
      },
      ['version'],
      { security: 2, timeouts: 1 },
    ),
    networkd: object({ units: list(object({ name: string }, ['name'])) }),
    passwd: object({
      groups: list(object({ gid: integer, name: string, passwordHash: string, system: boolean }, ['name'])),
      users: list(user),
    }),
    storage: object(
      {
        directories: list(object({ ...node, mode: integer }, ['path'], { overwrite: 2 })),
        disks: list(
          object(
            {
              device: string,
              partitions: list(
                object(
                  { guid: string, label: string, number: integer, size: integer, start: integer, typeGuid: string },
                  [],
                  { guid: 1 },
                ),
              ),
              wipeTable: boolean,
            },
            ['device'],
          ),
        ),
        files: list(
          object(
            {
              ...node,
              append: boolean,
              contents: object({ compression: string, source: string, verification: object({ hash: string }) }),
              mode: integer,
            },
            ['path'],
            { append: 2, overwrite: 2 },
          ),
        ),
        filesystems: list(object({ mount, name: string, path: string })),
        links: list(object({ ...node, hard: boolean, target: string }, ['path'], { overwrite: 2 })),
        raid: list(
          object({ devices: strings, level: string, name: string, options: strings, spares: integer }, ['name'], {
            options: 2,
          }),
        ),
      },
      [],
      { directories: 1, links: 1 },
    ),
    systemd: object({
      units: list(
        object(
          { contents: string, dropins: list(dropin), enable: boolean, enabled: boolean, mask: boolean, name: string },
          ['name'],
          { enabled: 1 },
        ),
      ),
    }),
  },
  ['ignition'],
);
