import type { ListShape, ObjectShape, Scalar, Shape } from './schema.ts';

const string: Scalar = { kind: 'string' };
const boolean: Scalar = { kind: 'boolean' };
const integer: Scalar = { kind: 'integer' };
const strings: ListShape = { kind: 'list', items: string };

function object(members: Readonly<Record<string, Shape>>, required: readonly string[] = []): ObjectShape {
  return { kind: 'object', members, required, shared: [], since: {} };
}

function list(items: ObjectShape): ListShape {
  return { kind: 'list', items };
}

const reference = object({ source: string, verification: object({ hash: string }) });
const owner = object({ id: integer, name: string });
const node = { filesystem: string, group: owner, overwrite: boolean, path: string, user: owner };
const dropin = object({ contents: string, name: string }, ['name']);

const user = object(
  {
    create: object({
      uid: integer,
      gecos: string,
      homeDir: string,
      shell: string,
      primaryGroup: string,
      groups: strings,
    }),
    gecos: string,
    groups: strings,
    homeDir: string,
    name: string,
    noCreateHome: boolean,
    noLogInit: boolean,
    noUserGroup: boolean,
    passwordHash: string,
    primaryGroup: string,
    sshAuthorizedKeys: strings,
    shell: string,
    system: boolean,
    uid: integer,
  },
  ['name'],
);

/** The shape of Ignition 2.2, which takes older documents of spec 2 too. */
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
    ),
    networkd: object({ units: list(object({ name: string }, ['name'])) }),
    passwd: object({
      groups: list(object({ gid: integer, name: string, passwordHash: string, system: boolean }, ['name'])),
      users: list(user),
    }),
    storage: object({
      directories: list(object({ ...node, mode: integer }, ['path'])),
      disks: list(
        object(
          {
            device: string,
            partitions: list(
              object({ guid: string, label: string, number: integer, size: integer, start: integer, typeGuid: string }),
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
        ),
      ),
      filesystems: list(object({ name: string })),
      links: list(object({ ...node, hard: boolean, target: string }, ['path'])),
      raid: list(
        object({ devices: strings, level: string, name: string, options: strings, spares: integer }, ['name']),
      ),
    }),
    systemd: object({
      units: list(
        object(
          { contents: string, dropins: list(dropin), enable: boolean, enabled: boolean, mask: boolean, name: string },
          ['name'],
        ),
      ),
    }),
  },
  ['ignition'],
);
