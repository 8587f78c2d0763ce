import { distinct, type Random } from '../random.ts';

/** A part of a generated document. What is wrong in it on purpose has no type. */
export type Part = Record<string, unknown>;

/** `bad`: how often a part is wrong; `rare`: how often sections are there that few configs have. */
export interface Taste {
  readonly bad: number;
  readonly rare: number;
}

export interface GeneratedDocument extends Part {
  ignition: Part & { version?: string };
  storage?: Part & { files?: Part[] };
  systemd?: Part & { units?: Part[] };
  passwd?: Part;
}

const PATHS = [
  '/etc/a',
  '/etc/b',
  '/etc/c/d',
  '/etc/containers/registries.conf',
  '/etc/containers/policy.json',
  '/var/lib/kubelet/config.json',
  '/etc/kubernetes/kubelet-ca.crt',
  '/etc/containers/registries.d/x.yaml',
  '/etc/nmstate/openshift/n.yml',
  '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt',
  '/etc/machine-config-daemon/no-reboot/containers-gpg.pub',
  '/etc/nmstate/openshift/deep/n.yml',
];
const BAD_PATHS = [
  'etc/rel',
  '',
  '/etc/../x',
  '/etc//x',
  '/etc/x/',
  '/run/machine-config-daemon-force',
  '/etc/systemd/system/a.service',
  '/etc/a/under',
];
const UNITS = ['a.service', 'b.service', 'c.socket', 'kubelet.service', 'd.mount'];
const BAD_UNITS = ['x', 'x.foo', '../a.service', '', 'a@.service', 'a b.service'];
const SOURCES = [
  'data:,',
  'data:,a',
  'data:,b%20c',
  'data:;base64,YWJj',
  'data:text/plain;charset=utf-8;base64,YWJj',
  'https://example.com/x',
  'http://example.com/x?y=1#z',
];
const BAD_SOURCES = [
  '',
  'ftp://x',
  'data:nocomma',
  'data:;base64,YW',
  'file:///x',
  's3://b/k',
  's3:///k',
  'gs://b/k',
  'tftp://h/x',
  'https://',
  'arn:aws:s3:::b/k',
  'data:,ä',
  'x',
  'http://a b',
];
/** "hello". */
const COMPRESSED = 'data:;base64,H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==';
const HASHES = [`sha256-${'ab'.repeat(32)}`, `sha512-${'cd'.repeat(64)}`];
const BAD_HASHES = ['sha512-00', 'md5-aa', 'sha256', ''];
const UNIT_TEXTS = [
  '[Unit]\nDescription=a\n',
  '[Service]\nExecStart=/bin/true\n',
  '',
  '[Service]\nA=b\\\n c\n# x\n',
  '[Install]\nWantedBy=multi-user.target',
];
const BAD_UNIT_TEXTS = [
  '[Unit',
  'garbage',
  '[Unit]\nnoequals\n',
  `[Unit]\nA=${'x'.repeat(3000)}\n`,
  '[Unit]x\n',
  '[Service]\n=v\n',
  '[A]\nB=\\\n',
  '\n\n;c',
  '[Unit]\nA=b\rC=d',
];
const KEYS = ['ssh-rsa AAA', 'ssh-ed25519 BBB', 'ssh-rsa CCC x@y'] as const;
export const GUIDS = ['', 'C12A7328-F81F-11D2-BA4B-00A0C93EC93B', '0fc63daf-8483-4772-8e79-3d69d8477de4'];
const VERSIONS = ['3.0.0', '3.1.0', '3.2.0', '3.2.0', '3.3.0', '3.4.0', '3.4.0'];
const BAD_VERSIONS = ['3.5.0', '3.0', '4.0.0', '', '3.4.0-experimental', '1.0.0', '2.4.0', '2.3.0', '3.4.1'];

/** Documents in which a member has the wrong type. */
const MISTYPED: readonly Part[] = [
  { storage: [] },
  { systemd: { units: {} } },
  { storage: { files: [{ path: 1 }] } },
  { storage: { files: [null] } },
  { storage: null },
  { storage: { files: [{ path: '/etc/a', mode: '0644' }] } },
  { systemd: { units: [{ name: 'a.service', enabled: 'true' }] } },
  { storage: { files: [{ path: '/etc/a', mode: 420.5 }] } },
];

/** A document of spec 3. */
export function ignition3(r: Random, taste: Taste): GeneratedDocument {
  const { bad, rare } = taste;
  const version = r.chance(bad) ? r.pick(BAD_VERSIONS) : r.pick(VERSIONS);
  return {
    ignition: { ...(r.chance(1 - bad) && { version }), ...ignitionSection(r, taste) },
    ...(r.chance(0.9) && { storage: storageSection(r, taste) }),
    ...(r.chance(0.6) && {
      systemd: {
        ...(r.chance(0.95) && {
          units: mostlyDistinct(
            r,
            bad,
            'name',
            r.list(3, () => unit(r, bad)),
          ),
        }),
      },
    }),
    ...(r.chance(0.35) && {
      passwd: {
        ...(r.chance(0.9) && {
          users: mostlyDistinct(
            r,
            bad,
            'name',
            r.list(2, () => user(r, bad)),
          ),
        }),
        ...(r.chance(rare) && {
          groups: mostlyDistinct(
            r,
            bad,
            'name',
            r.list(2, () => group(r)),
          ),
        }),
      },
    }),
    ...(r.chance(rare) && {
      kernelArguments: {
        ...(r.chance(0.8) && { shouldExist: r.some(['a', 'b', 'c=d']) }),
        ...(r.chance(0.4) && { shouldNotExist: r.some(['x', 'y', ...(r.chance(bad) ? ['a'] : [])]) }),
      },
    }),
    ...(r.chance(bad) && { unknownMember: 1 }),
    ...(r.chance(bad) && r.pick(MISTYPED)),
  };
}

function ignitionSection(r: Random, { bad, rare }: Taste): Part {
  const resources = () =>
    mostlyDistinct(
      r,
      bad,
      'source',
      r.list(2, () => resource(r, bad)),
    );
  return {
    ...(r.chance(rare) && {
      config: {
        ...(r.chance(0.5) && { merge: resources() }),
        ...(r.chance(0.4) && { replace: resource(r, bad) }),
      },
    }),
    ...(r.chance(rare) && { security: { tls: { ...(r.chance(0.9) && { certificateAuthorities: resources() }) } } }),
    ...(r.chance(rare) && {
      timeouts: {
        ...(r.chance(0.5) && { httpTotal: r.int(5) }),
        ...(r.chance(0.5) && { httpResponseHeaders: r.int(5) - (r.chance(bad) ? 3 : 0) }),
      },
    }),
    ...(r.chance(rare) && {
      proxy: {
        ...(r.chance(0.5) && { httpProxy: r.chance(bad * 3) ? r.pick(['ftp://p', 'p', '']) : 'http://p:1' }),
        ...(r.chance(0.5) && { httpsProxy: 'https://q' }),
        ...(r.chance(0.5) && { noProxy: r.some(['a', 'b', 'c']) }),
      },
    }),
  };
}

function storageSection(r: Random, { bad, rare }: Taste): Part {
  const files = mostlyDistinct(
    r,
    bad,
    'path',
    r.list(4, () => file(r, bad)),
  );
  const directory = () => ({
    ...node(r, bad, ['/etc/dir1', '/etc/dir2', '/etc/a']),
    ...(r.chance(0.6) && { mode: mode(r, bad) }),
  });
  const link = () => ({
    ...node(r, bad, ['/etc/link1', '/etc/link2', '/etc/b']),
    ...(r.chance(0.95) && { target: r.pick(['/etc/a', '../x', '/etc/dir1', '']) }),
    ...(r.chance(0.4) && { hard: r.chance(0.5) }),
  });
  const few = (key: string, make: () => Part) => mostlyDistinct(r, bad, key, r.list(2, make));
  return {
    ...(r.chance(0.8) && { files }),
    ...(r.chance(rare) && { directories: few('path', directory) }),
    ...(r.chance(rare) && { links: few('path', link) }),
    ...(r.chance(rare * 0.7) && { disks: few('device', () => disk(r, bad)) }),
    ...(r.chance(rare * 0.7) && { filesystems: few('device', () => filesystem(r, bad)) }),
    ...(r.chance(rare * 0.7) && { raid: few('name', () => raid(r, bad)) }),
    ...(r.chance(rare * 0.7) && { luks: few('name', () => luks(r, bad)) }),
  };
}

function mostlyDistinct(r: Random, bad: number, key: string, parts: readonly Part[]): Part[] {
  return r.chance(bad * 2) ? [...parts] : distinct(parts, part => part[key] ?? '');
}

export function resource(r: Random, bad: number): Part {
  return {
    ...(r.chance(0.9) && {
      source: r.chance(bad) ? r.pick(BAD_SOURCES) : r.chance(0.15) ? COMPRESSED : r.pick(SOURCES),
    }),
    ...(r.chance(0.25) && { compression: r.pick(['', 'gzip', ...(r.chance(bad) ? ['xz'] : [])]) }),
    ...(r.chance(0.12) && {
      verification: { ...(r.chance(0.9) && { hash: r.chance(bad * 2) ? r.pick(BAD_HASHES) : r.pick(HASHES) }) },
    }),
    ...(r.chance(0.08) && {
      httpHeaders: r.list(2, () => ({
        name: r.pick(['A', 'B', ...(r.chance(bad) ? [''] : [])]),
        ...(r.chance(0.7) && { value: r.pick(['1', '2', '']) }),
      })),
    }),
  };
}

export function file(r: Random, bad: number): Part {
  return {
    ...node(r, bad),
    ...(r.chance(0.8) && { contents: resource(r, bad) }),
    ...(r.chance(0.6) && { mode: mode(r, bad) }),
    ...(r.chance(0.05) && { append: r.list(2, () => resource(r, bad)) }),
  };
}

export function unit(r: Random, bad: number): Part {
  const text = () => (r.chance(bad * 2) ? r.pick(BAD_UNIT_TEXTS) : r.pick(UNIT_TEXTS));
  return {
    name: r.chance(bad) ? r.pick(BAD_UNITS) : r.pick(UNITS),
    ...(r.chance(0.6) && { contents: text() }),
    ...(r.chance(0.4) && { enabled: r.chance(0.5) }),
    ...(r.chance(0.2) && { mask: r.chance(0.5) }),
    ...(r.chance(0.3) && {
      dropins: r.list(3, () => ({
        name: r.chance(bad) ? r.pick(['x', '']) : r.pick(['10-a.conf', '20-b.conf']),
        ...(r.chance(0.8) && { contents: text() }),
      })),
    }),
  };
}

export function user(r: Random, bad: number): Part {
  return {
    name: r.chance(bad * 2) ? r.pick(['root', 'alice', '']) : 'core',
    ...(r.chance(0.8) && { sshAuthorizedKeys: [...r.some(KEYS), ...(r.chance(bad) ? [KEYS[0]] : [])] }),
    ...(r.chance(0.3) && { passwordHash: r.pick(['$6$x', '']) }),
    ...(r.chance(0.06) && { uid: r.int(3) }),
    ...(r.chance(0.05) && { gecos: r.pick(['', 'g']) }),
    ...(r.chance(0.05) && { groups: r.some(['wheel', 'sudo']) }),
    ...(r.chance(0.05) && { shell: '/bin/sh' }),
    ...(r.chance(0.05) && { system: r.chance(0.5) }),
    ...(r.chance(0.05) && { shouldExist: r.chance(0.5) }),
    ...(r.chance(0.05) && { noCreateHome: r.chance(0.5) }),
  };
}

function group(r: Random): Part {
  return {
    name: r.pick(['g1', 'g2']),
    ...(r.chance(0.4) && { gid: r.int(2) }),
    ...(r.chance(0.2) && { shouldExist: true }),
    ...(r.chance(0.2) && { passwordHash: 'x' }),
    ...(r.chance(0.2) && { system: true }),
  };
}

export function node(r: Random, bad: number, paths: readonly string[] = PATHS): Part {
  const owner = () => ({
    ...(r.chance(0.5) && { id: r.int(3) }),
    ...(r.chance(0.4) && { name: r.pick(['core', 'root', '']) }),
  });
  return {
    path: r.chance(bad) ? r.pick(BAD_PATHS) : r.pick(paths),
    ...(r.chance(0.3) && { overwrite: r.chance(0.6) }),
    ...(r.chance(0.1) && { user: owner() }),
    ...(r.chance(0.1) && { group: owner() }),
  };
}

export function mode(r: Random, bad: number): number {
  return r.chance(bad * 2) ? r.pick([-1, 0o1777, 0o4755, 0o10000, 99999]) : r.pick([420, 384, 493, 0, 511]);
}

function disk(r: Random, bad: number): Part {
  return {
    device: r.chance(bad) ? r.pick(['', 'sda', '/dev/../a']) : r.pick(['/dev/sda', '/dev/sdb']),
    ...(r.chance(0.4) && { wipeTable: r.chance(0.5) }),
    ...(r.chance(0.7) && {
      partitions: r.list(3, () => ({
        ...(r.chance(0.6) && { number: r.int(3) }),
        ...(r.chance(0.6) && { label: r.chance(bad) ? r.pick(['a:b', 'x'.repeat(37), '']) : r.pick(['l1', 'l2']) }),
        ...(r.chance(0.3) && { sizeMiB: r.int(50) }),
        ...(r.chance(0.3) && { startMiB: r.int(50) }),
        ...(r.chance(0.2) && { guid: r.chance(bad) ? 'nope' : r.pick(GUIDS) }),
        ...(r.chance(0.2) && { typeGuid: r.pick(GUIDS) }),
        ...(r.chance(0.1) && { shouldExist: r.chance(0.5) }),
        ...(r.chance(0.1) && { resize: r.chance(0.5) }),
        ...(r.chance(0.1) && { wipePartitionEntry: r.chance(0.5) }),
      })),
    }),
  };
}

function filesystem(r: Random, bad: number): Part {
  return {
    device: r.chance(bad) ? r.pick(['', 'x']) : r.pick(['/dev/disk/by-label/a', '/dev/sdb1']),
    ...(r.chance(0.8) && {
      format: r.chance(bad) ? r.pick(['', 'zfs']) : r.pick(['ext4', 'xfs', 'btrfs', 'vfat', 'swap', 'none']),
    }),
    ...(r.chance(0.5) && { path: r.chance(bad) ? r.pick(['var', '']) : r.pick(['/var', '/srv']) }),
    ...(r.chance(0.3) && { label: r.pick(['lab', 'quite-a-long-label', 'x'.repeat(12), '']) }),
    ...(r.chance(0.2) && { uuid: r.pick(['', 'aaaa']) }),
    ...(r.chance(0.2) && { options: r.some(['-a', '-b']) }),
    ...(r.chance(0.2) && { mountOptions: r.some(['ro', 'noatime']) }),
    ...(r.chance(0.2) && { wipeFilesystem: r.chance(0.5) }),
  };
}

const RAID_LEVELS = ['raid1', 'linear', 'raid0', 'raid5', 'raid6', 'raid10', 'stripe', 'mirror', '0', '1'];

export function raid(r: Random, bad: number): Part {
  const names = ['md0', 'md1', ...(r.chance(bad) ? ['x'.repeat(33), '', 'a/b'] : [])];
  return {
    name: r.pick(names),
    ...(r.chance(0.95) && { level: r.chance(bad) ? r.pick(['raid9', '']) : r.pick(RAID_LEVELS) }),
    ...(r.chance(0.95) && { devices: r.some(['/dev/sda', '/dev/sdb', ...(r.chance(bad) ? ['x'] : [])], 0.8) }),
    ...(r.chance(0.3) && { spares: r.int(2) }),
    ...(r.chance(0.2) && { options: r.some(['-x', '-y']) }),
  };
}

function luks(r: Random, bad: number): Part {
  return {
    name: r.chance(bad) ? r.pick(['', 'a/b']) : r.pick(['l0', 'l1']),
    ...(r.chance(0.95) && { device: r.chance(bad) ? 'x' : '/dev/sdc' }),
    ...(r.chance(0.3) && { label: r.pick(['lab', 'x'.repeat(48)]) }),
    ...(r.chance(0.4) && { keyFile: resource(r, bad) }),
    ...(r.chance(0.5) && { clevis: clevis(r, bad) }),
    ...(r.chance(0.1) && { openOptions: r.some(['--a', '--b']) }),
    ...(r.chance(0.1) && { options: ['--c'] }),
    ...(r.chance(0.1) && { discard: true }),
    ...(r.chance(0.1) && { wipeVolume: true }),
    ...(r.chance(0.1) && { uuid: 'u' }),
  };
}

function clevis(r: Random, bad: number): Part {
  return {
    ...(r.chance(0.6) && { tpm2: r.chance(0.6) }),
    ...(r.chance(0.3) && { threshold: r.int(3) - (r.chance(bad) ? 2 : 0) }),
    ...(r.chance(0.4) && {
      tang: r.list(2, () => ({
        url: r.chance(bad) ? r.pick(['', 'ftp://x']) : r.pick(['https://t1', 'http://t2/']),
        ...(r.chance(0.9) && { thumbprint: r.chance(bad) ? '' : 'abc' }),
        ...(r.chance(0.2) && { advertisement: r.pick(['{}', 'x', '']) }),
      })),
    }),
    ...(r.chance(0.15) && {
      custom: {
        ...(r.chance(0.8) && { pin: r.pick(['tpm2', 'tang', 'sss', 'other', '']) }),
        ...(r.chance(0.8) && { config: r.pick(['{}', '']) }),
        ...(r.chance(0.3) && { needsNetwork: true }),
      },
    }),
  };
}
