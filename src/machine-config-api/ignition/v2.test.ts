import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readIgnition } from './read.ts';
import { IgnitionError } from './types.ts';
import { deduplicated } from './v2.ts';

describe('equal units of spec 2 (RN-12)', () => {
  const dropin = (name: string, contents: string) => ({ name, contents });
  const document = (units: { name: string; dropins: object[] }[]) =>
    ({ ignition: { version: '2.2.0' }, systemd: { units } }) as Parameters<typeof deduplicated>[0];

  test('the last one keeps its drop-ins, and gets of older ones what it does not have, the younger first', () => {
    const config = document([
      { name: 'a.service', dropins: [dropin('x.conf', '1'), dropin('z.conf', '1')] },
      { name: 'a.service', dropins: [dropin('x.conf', '2'), dropin('y.conf', '2')] },
      { name: 'a.service', dropins: [dropin('x.conf', '3')] },
    ]);
    const [unit, ...more] = deduplicated(config).systemd?.units ?? [];
    assert.deepEqual(unit?.dropins, [dropin('x.conf', '3'), dropin('y.conf', '2'), dropin('z.conf', '1')]);
    assert.deepEqual(more, []);
  });

  test('two of a name in one unit are not collected but refused', () => {
    const config = document([{ name: 'a.service', dropins: [dropin('x.conf', '1'), dropin('x.conf', '2')] }]);
    assert.equal(deduplicated(config).systemd?.units?.[0]?.dropins?.length, 2);
    assert.throws(() => readIgnition(config), IgnitionError);
  });
});

describe('each version of spec 2 by its own rules (RN-12)', () => {
  const files = (...files: object[]) => ({ storage: { files: files.map(file => ({ filesystem: 'root', ...file })) } });
  const read = (version: string, parts: object) => readIgnition({ ignition: { version }, ...parts });
  const firstFile = (version: string, file: object) => read(version, files(file))?.storage?.files?.[0];
  const sha512 = `sha512-${'0'.repeat(128)}`;
  const sha256 = `sha256-${'0'.repeat(64)}`;

  const refused: [what: string, version: string, parts: object][] = [
    ['special bits of a mode', '2.2.0', files({ path: '/a', mode: 0o1777 })],
    ['special bits of a file that a later one replaces', '2.2.0', files({ path: '/a', mode: 0o4755 }, { path: '/a' })],
    [
      'a hash that came with 3.1',
      '2.2.0',
      files({ path: '/a', contents: { source: 'data:,', verification: { hash: sha256 } } }),
    ],
    ['a scheme that came with 3.4', '2.2.0', files({ path: '/a', contents: { source: 'arn:aws:s3:::b/k' } })],
    ['a scheme that came with 2.1', '2.0.0', files({ path: '/a', contents: { source: 'tftp://h/x' } })],
    ['a scheme that went with 3.0', '2.2.0', files({ path: '/a', contents: { source: 'oem:///x' } })],
    ['appending to what is overwritten', '2.2.0', files({ path: '/a', append: true, overwrite: true })],
    ['any partition', '2.2.0', { storage: { disks: [{ device: '/dev/a', partitions: [{ number: 0, label: 'x' }] }] } }],
    [
      'a path that begins like a link',
      '2.2.0',
      {
        storage: {
          files: [{ filesystem: 'root', path: '/etc/ab' }],
          links: [{ filesystem: 'root', path: '/etc/a', target: '/b' }],
        },
      },
    ],
    ['a root file system that is neither mounted nor there', '2.2.0', { storage: { filesystems: [{ name: 'root' }] } }],
    [
      'a swap area',
      '2.0.0',
      { storage: { filesystems: [{ name: 'root', mount: { device: '/dev/a', format: 'swap' } }] } },
    ],
    [
      'an account described twice',
      '2.2.0',
      { passwd: { users: [{ name: 'core', create: { uid: 1 }, shell: '/bin/sh' }] } },
    ],
  ];
  for (const [what, version, parts] of refused)
    test(`${version} refuses ${what}`, () => assert.throws(() => read(version, parts), IgnitionError));

  test('members that a version does not have are nothing to it', () => {
    assert.equal(firstFile('2.1.0', { path: '/a', append: true, overwrite: false })?.overwrite, true);
    assert.equal(read('2.0.0', { passwd: { users: [{ name: 'core', uid: 7 }] } })?.passwd?.users?.[0]?.uid, undefined);
    assert.equal(read('2.1.0', { ignition: { version: '2.1.0', security: 1 } })?.ignition.security, undefined);
  });

  test('what is not said has the default of its version', () => {
    assert.equal(firstFile('2.2.0', { path: '/a' })?.mode, undefined);
    assert.equal(firstFile('2.1.0', { path: '/a' })?.mode, 0);
    assert.deepEqual(firstFile('2.0.0', { path: '/a' })?.user, { id: 0 });
  });

  test('what spec 3 says otherwise is translated', () => {
    const contents = { source: 'data:,', verification: { hash: sha512 } };
    const file = firstFile('2.2.0', { filesystem: 'boot', path: '/etc//b/../a', user: { id: 0, name: '' }, contents });
    assert.deepEqual(file, { path: '/etc/a', overwrite: true, user: { id: 0 }, contents });
    assert.equal(
      read('2.2.0', { passwd: { users: [{ name: 'core', create: { uid: 1 } }] } })?.passwd?.users?.length,
      1,
    );
    const root = { storage: { filesystems: [{ name: 'root', path: '/sysroot' }] } };
    assert.equal(read('2.2.0', root)?.storage, undefined);
  });
});
