/** The shape of an Ignition 3.4 document as data: what `merge.ts` and `read.ts` walk along. */
export type Shape = Scalar | ObjectShape | ListShape;

/** A number, a boolean or a text. */
export interface Scalar {
  readonly kind: 'string' | 'boolean' | 'integer';
  /** A zero says the same as nothing. */
  readonly isZeroNothing?: boolean;
}

export interface ObjectShape {
  readonly kind: 'object';
  readonly members: Readonly<Record<string, Shape>>;
  readonly required: readonly string[];
  /** Lists whose keys are one namespace: an entry that moves from one to the other is in one of them only. */
  readonly shared: readonly (readonly string[])[];
  /** The minor version of spec 3 that brought a member; it is nothing to older documents. */
  readonly since: Readonly<Record<string, number>>;
  /** Members that are empty in that minor version where nothing is said of them. */
  readonly requiredIn?: Readonly<Record<number, readonly string[]>>;
}

export interface ListShape {
  readonly kind: 'list';
  readonly items: Scalar | ObjectShape;
  /** What makes two entries the same one; absent: nothing does, and lists are put one after the other. */
  readonly key?: (item: unknown) => string;
}

const string: Scalar = { kind: 'string' };
const boolean: Scalar = { kind: 'boolean' };
const integer: Scalar = { kind: 'integer' };

function object(
  members: Readonly<Record<string, Shape>>,
  required: readonly string[] = [],
  { shared = [], since = {}, requiredIn = {} }: Partial<Pick<ObjectShape, 'shared' | 'since' | 'requiredIn'>> = {},
): ObjectShape {
  return { kind: 'object', members, required, shared, since, requiredIn };
}

/** Entries with the same value of that member are the same. */
function listBy(member: string, items: ObjectShape): ListShape {
  return { kind: 'list', items, key: item => (item as Record<string, string | undefined>)[member] ?? '' };
}

/** A list that is a set. */
const set: ListShape = { kind: 'list', items: string, key: String };
/** A list in which things may come twice. */
const strings: ListShape = { kind: 'list', items: string };

const headers = listBy('name', object({ name: string, value: string }, ['name']));
const resource = { compression: string, httpHeaders: headers, source: string, verification: object({ hash: string }) };
/** Something that is fetched, or is in the document itself as a data URL. */
export const RESOURCE_SHAPE: ObjectShape = object(resource, [], { since: { httpHeaders: 1 } });
/** Another document or a certificate authority, of which 3.0 knows source and hash only. */
export const REFERENCE_SHAPE: ObjectShape = object(resource, [], { since: { compression: 1, httpHeaders: 1 } });
const references: ListShape = listBy('source', REFERENCE_SHAPE);
const owner = object({ id: integer, name: string });
const node = { group: owner, overwrite: boolean, path: string, user: owner };

const file = object(
  { ...node, append: { kind: 'list', items: RESOURCE_SHAPE }, contents: RESOURCE_SHAPE, mode: integer },
  ['path'],
);
const partition = object(
  {
    guid: string,
    label: string,
    number: { ...integer, isZeroNothing: true },
    resize: boolean,
    shouldExist: boolean,
    sizeMiB: integer,
    startMiB: integer,
    typeGuid: string,
    wipePartitionEntry: boolean,
  },
  [],
  { since: { resize: 2 } },
);
const user = object(
  {
    gecos: string,
    groups: set,
    homeDir: string,
    name: string,
    noCreateHome: boolean,
    noLogInit: boolean,
    noUserGroup: boolean,
    passwordHash: string,
    primaryGroup: string,
    sshAuthorizedKeys: set,
    shell: string,
    shouldExist: boolean,
    system: boolean,
    uid: integer,
  },
  ['name'],
  { since: { shouldExist: 2 } },
);
const group = object(
  { gid: integer, name: string, passwordHash: string, shouldExist: boolean, system: boolean },
  ['name'],
  { since: { shouldExist: 2 } },
);
const luks = object(
  {
    clevis: object({
      custom: object({ config: string, needsNetwork: boolean, pin: string }, [], {
        requiredIn: { 2: ['config', 'pin'] },
      }),
      tang: listBy(
        'url',
        object({ advertisement: string, thumbprint: string, url: string }, [], { since: { advertisement: 4 } }),
      ),
      threshold: integer,
      tpm2: boolean,
    }),
    device: string,
    discard: boolean,
    keyFile: RESOURCE_SHAPE,
    label: string,
    name: string,
    openOptions: set,
    options: strings,
    uuid: string,
    wipeVolume: boolean,
  },
  ['name'],
  { since: { discard: 4, openOptions: 4 } },
);

export const IGNITION_SHAPE: ObjectShape = object(
  {
    ignition: object(
      {
        config: object({ merge: references, replace: REFERENCE_SHAPE }),
        proxy: object({ httpProxy: string, httpsProxy: string, noProxy: set }),
        security: object({ tls: object({ certificateAuthorities: references }) }),
        timeouts: object({ httpResponseHeaders: integer, httpTotal: integer }),
        version: string,
      },
      ['version'],
      { since: { proxy: 1 } },
    ),
    kernelArguments: object({ shouldExist: set, shouldNotExist: set }, [], {
      shared: [['shouldExist', 'shouldNotExist']],
    }),
    passwd: object({
      groups: listBy('name', group),
      users: listBy('name', user),
    }),
    storage: object(
      {
        directories: listBy('path', object({ ...node, mode: integer }, ['path'])),
        disks: listBy(
          'device',
          object(
            { device: string, partitions: { kind: 'list', items: partition, key: partitionKey }, wipeTable: boolean },
            ['device'],
          ),
        ),
        files: listBy('path', file),
        filesystems: listBy(
          'device',
          object(
            {
              device: string,
              format: string,
              label: string,
              mountOptions: strings,
              options: strings,
              path: string,
              uuid: string,
              wipeFilesystem: boolean,
            },
            ['device'],
            { since: { mountOptions: 1 } },
          ),
        ),
        links: listBy('path', object({ ...node, hard: boolean, target: string }, ['path'])),
        luks: listBy('name', luks),
        raid: listBy(
          'name',
          object({ devices: set, level: string, name: string, options: strings, spares: integer }, ['name']),
        ),
      },
      [],
      { shared: [['directories', 'files', 'links']], since: { luks: 2 } },
    ),
    systemd: object({
      units: listBy(
        'name',
        object(
          {
            contents: string,
            dropins: listBy('name', object({ contents: string, name: string }, ['name'])),
            enabled: boolean,
            mask: boolean,
            name: string,
          },
          ['name'],
        ),
      ),
    }),
  },
  ['ignition'],
  { since: { kernelArguments: 3 } },
);

/** The number where it has one, else the label. */
function partitionKey(item: unknown): string {
  const { number = 0, label } = item as { number?: number; label?: string };
  if (number !== 0) return `number:${number}`;
  return label === undefined ? '' : `label:${label}`;
}
