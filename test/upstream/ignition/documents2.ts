import type { Random } from '../random.ts';
import {
  file,
  type GeneratedDocument,
  GUIDS,
  ignition3,
  mode,
  node,
  type Part,
  raid,
  resource,
  type Taste,
  unit,
  user,
} from './documents.ts';

/** A document of spec 2. */
export function ignition2(r: Random, { bad, rare }: Taste): GeneratedDocument {
  const reference = () => {
    const { source, verification } = resource(r, bad);
    return { ...(source !== undefined && { source }), ...(verification !== undefined && { verification }) };
  };
  return {
    ignition: {
      version: r.chance(bad)
        ? r.pick(['2.3.0', '2.4.0', '1.0.0', ''])
        : r.pick(['2.0.0', '2.1.0', '2.2.0', '2.2.0', '2.2.0']),
      ...(r.chance(rare) && {
        config: {
          ...(r.chance(0.5) && { append: r.list(2, reference) }),
          ...(r.chance(0.4) && { replace: reference() }),
        },
      }),
      ...(r.chance(rare) && { security: { tls: { certificateAuthorities: r.list(2, reference) } } }),
      ...(r.chance(rare) && {
        timeouts: {
          ...(r.chance(0.5) && { httpTotal: r.int(5) }),
          ...(r.chance(0.5) && { httpResponseHeaders: r.int(5) }),
        },
      }),
    },
    ...(r.chance(0.9) && { storage: storageSection(r, { bad, rare }) }),
    ...(r.chance(0.6) && {
      systemd: {
        units: r.list(4, () => ({ ...unit(r, bad), ...(r.chance(0.1) && { enable: r.chance(0.5) }) })),
      },
    }),
    ...(r.chance(0.35) && { passwd: passwdSection(r, { bad, rare }) }),
    ...(r.chance(rare * 0.3) && {
      networkd: { units: r.list(1, () => ({ name: 'a.network', contents: '[Match]\nName=x\n' })) },
    }),
  };
}

/** One document in five is of spec 2. */
export function ignition(r: Random, taste: Taste): GeneratedDocument {
  return r.chance(0.2) ? ignition2(r, taste) : ignition3(r, taste);
}

function storageSection(r: Random, { bad, rare }: Taste): Part {
  const filesystem = () => (r.chance(bad) ? r.pick(['', 'boot']) : 'root');
  const contents = () => {
    const { httpHeaders: _headers, compression, ...rest } = resource(r, bad);
    const isKept = compression === 'gzip' || r.chance(bad);
    return { ...rest, ...(compression !== undefined && isKept && { compression }) };
  };
  const file2 = () => {
    const { append: _append, contents: _contents, ...rest } = file(r, bad);
    return {
      filesystem: filesystem(),
      ...rest,
      ...(r.chance(0.9) && { contents: contents() }),
      ...(r.chance(0.08) && { append: r.chance(0.6) }),
    };
  };
  const partition = () => ({
    label: r.pick(['l1', 'l2']),
    number: r.int(3),
    ...(r.chance(0.2) && { size: r.int(2) }),
    ...(r.chance(0.2) && { start: r.int(2) }),
    ...(r.chance(0.3) && { typeGuid: r.pick(GUIDS) }),
  });
  return {
    ...(r.chance(0.9) && { files: r.list(4, file2) }),
    ...(r.chance(rare) && {
      directories: r.list(2, () => ({
        filesystem: filesystem(),
        ...node(r, bad, ['/etc/dir1', '/etc/dir2']),
        ...(r.chance(0.6) && { mode: mode(r, bad) }),
      })),
    }),
    ...(r.chance(rare) && {
      links: r.list(2, () => ({
        filesystem: filesystem(),
        ...node(r, bad, ['/etc/link1', '/etc/link2']),
        target: r.pick(['/etc/a', '../x']),
        ...(r.chance(0.4) && { hard: r.chance(0.5) }),
      })),
    }),
    ...(r.chance(rare * 0.5) && {
      filesystems: r.list(1, () => ({
        name: filesystem(),
        ...(r.chance(0.5) && { path: '/sysroot' }),
        ...(r.chance(0.3) && { mount: { device: '/dev/sda', format: 'ext4' } }),
      })),
    }),
    ...(r.chance(rare * 0.5) && { raid: r.list(1, () => raid(r, bad)) }),
    ...(r.chance(rare * 0.5) && {
      disks: r.list(1, () => ({
        device: '/dev/sda',
        wipeTable: r.chance(0.5),
        partitions: r.list(2, partition),
      })),
    }),
  };
}

function passwdSection(r: Random, { bad, rare }: Taste): Part {
  return {
    users: r.list(3, () => {
      const { shouldExist: _shouldExist, ...rest } = user(r, bad);
      return { ...rest, ...(r.chance(bad) && { create: { uid: 1 } }) };
    }),
    ...(r.chance(rare) && {
      groups: r.list(1, () => ({
        name: 'g1',
        ...(r.chance(0.4) && { gid: 0 }),
        ...(r.chance(0.4) && { passwordHash: r.pick(['', 'x']) }),
        ...(r.chance(0.4) && { system: r.chance(0.5) }),
      })),
    }),
  };
}
