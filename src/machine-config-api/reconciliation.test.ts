import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MachineConfig } from './machine-config.ts';
import { reconciliation } from './reconciliation.ts';

const config = (parts: object, spec: object = {}): MachineConfig => ({
  metadata: { name: 'new' },
  spec: { config: { ignition: { version: '3.4.0' }, ...parts }, ...spec },
});
const passwd = (...users: object[]) => config({ passwd: { users } });
const storage = (parts: object) => config({ storage: parts });
const core = (fields: object) => passwd({ name: 'core', ...fields });

describe('what can be changed in place (spec 60, section 7; the tables of seed 003)', () => {
  const empty = config({});
  const keys = core({ sshAuthorizedKeys: ['k'] });
  const link = { path: '/etc/l', target: '/etc/t' };
  const table: [what: string, before: MachineConfig, after: MachineConfig, reason: RegExp | undefined][] = [
    ['nothing', empty, empty, undefined],
    ['files', empty, storage({ files: [{ path: '/etc/a' }] }), undefined],
    ['units', empty, config({ systemd: { units: [{ name: 'a.service' }] } }), undefined],
    ['keys of core', empty, keys, undefined],
    ['other keys of core', keys, core({ sshAuthorizedKeys: ['l'] }), undefined],
    ['a password of core', keys, core({ passwordHash: 'h' }), undefined],
    ['core gone', keys, empty, undefined],
    ['an empty list of users', keys, passwd(), undefined],
    [
      'the image, arguments, kernel, extensions',
      empty,
      config({}, { osImageURL: 'i', kernelArguments: ['a'], kernelType: 'realtime', extensions: ['usbguard'] }),
      undefined,
    ],
    ['LUKS', empty, storage({ luks: [{ name: 'l', device: '/dev/sda' }] }), undefined],
    ['all links gone', storage({ links: [link] }), empty, undefined],
    [
      'a list that is empty instead of absent (D-16)',
      empty,
      storage({ directories: [], disks: [], raid: [], links: [] }),
      undefined,
    ],
    [
      'an old file of a mode we do not take any more',
      storage({ files: [{ path: '/etc/a', mode: 0o1777 }] }),
      storage({ files: [{ path: '/etc/a', mode: 0o644 }] }),
      undefined,
    ],
    ['a foreign user that stays', passwd({ name: 'alice' }), passwd({ name: 'alice' }), undefined],

    ['a foreign user', empty, passwd({ name: 'alice', sshAuthorizedKeys: ['k'] }), /non-core user/],
    [
      'a foreign user that was there, beside new keys',
      passwd({ name: 'alice' }),
      passwd({ name: 'alice' }, { name: 'core', sshAuthorizedKeys: ['k'] }),
      /non-core user/,
    ],
    ['core without anything', empty, core({}), /user must be core and have 1 or more sshKeys/],
    ['core with a home', empty, core({ sshAuthorizedKeys: ['k'], homeDir: '/h' }), /not reconcilable.*homeDir/],
    ['core with a shell that is empty', empty, core({ passwordHash: 'h', shell: '' }), /not reconcilable.*shell/],
    ['a group', empty, config({ passwd: { groups: [{ name: 'g' }] } }), /Passwd Groups section contains changes/],
    [
      'kernel arguments of Ignition',
      empty,
      config({ kernelArguments: { shouldExist: ['a'] } }),
      /kargs section contains changes/,
    ],
    ['a disk', empty, storage({ disks: [{ device: '/dev/sda' }] }), /disks section contains changes/],
    [
      'a file system',
      empty,
      storage({ filesystems: [{ device: '/dev/sda', format: 'ext4', path: '/a' }] }),
      /filesystems section contains changes/,
    ],
    [
      'RAID',
      empty,
      storage({ raid: [{ name: 'd', level: 'stripe', devices: ['/dev/a', '/dev/b'] }] }),
      /raid section contains changes/,
    ],
    ['a directory', empty, storage({ directories: [{ path: '/etc/d' }] }), /directories section contains changes/],
    ['a directory gone', storage({ directories: [{ path: '/etc/d' }] }), empty, /directories section contains changes/],
    ['a link', empty, storage({ links: [link] }), /links section contains changes/],
    [
      'one of two links gone',
      storage({ links: [link, { ...link, path: '/etc/m' }] }),
      storage({ links: [link] }),
      /links section contains changes/,
    ],
    [
      'a file that appends',
      empty,
      storage({ files: [{ path: '/etc/a', append: [{ source: 'data:,x' }] }] }),
      /includes append/,
    ],
    ['the force file', empty, storage({ files: [{ path: '/run/machine-config-daemon-force' }] }), /cannot create/],
    ['FIPS', empty, config({}, { fips: true }), /FIPS/],
    [
      'networkd of spec 2',
      empty,
      { spec: { config: { ignition: { version: '2.2.0' }, networkd: { units: [{ name: 'a.network' }] } } } },
      /networkd/,
    ],
    ['a path that leads elsewhere', empty, storage({ files: [{ path: '/etc/../a' }] }), /not clean/],
    ['a version of the future', empty, { spec: { config: { ignition: { version: '4.0.0' } } } }, /unknown version/],
    ['no version', empty, { spec: { config: { storage: {} } } }, /invalid version/],
    [
      'an old config that cannot be read',
      { spec: { config: { ignition: { version: '9.0.0' } } } },
      empty,
      /unknown version/,
    ],
  ];
  for (const [what, before, after, reason] of table) {
    test(what, () => {
      const found = reconciliation(before, after);
      if (reason === undefined) assert.ok(found.isPossible, JSON.stringify(found));
      else {
        assert.ok(!found.isPossible);
        assert.match(found.reason, reason);
        assert.match(found.reason, /^can't reconcile config .* with /);
      }
    });
  }

  test('the first problem is told, in the order of the rules', () => {
    const all = config(
      {
        passwd: { groups: [{ name: 'g' }], users: [{ name: 'alice' }] },
        storage: { directories: [{ path: '/etc/d' }] },
      },
      { fips: true },
    );
    const found = reconciliation(empty, all);
    assert.ok(!found.isPossible && found.reason.includes('Groups'));
  });

  test('no config before is an empty one', () => assert.ok(reconciliation(undefined, keys).isPossible));
});
