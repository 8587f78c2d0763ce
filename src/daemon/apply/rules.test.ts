/** Rule by rule, what an update does to files, units, originals and users (spec 60, 8.2 to 8.6). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { memoryHost } from '../../host/memory.ts';
import { operatingSystemOf } from '../../host/os-release.ts';
import type { Host } from '../../host/port.ts';
import type { IgnitionConfig, IgnitionUnit } from '../../machine-config-api/ignition/types.ts';
import { writeFiles } from './files.ts';
import { keepOriginal, noOriginalStampOf, originalOf } from './originals.ts';
import { updatePasswords } from './password.ts';
import { decidePruning, prune } from './prune.ts';
import { moveSshKeys, updateSshKeys } from './ssh-keys.ts';
import { writeUnits } from './units.ts';

const RHCOS9 = operatingSystemOf('ID=rhcos\nRHEL_VERSION=9.2\n');
const RHCOS8 = operatingSystemOf('ID=rhcos\nRHEL_VERSION=8.6\n');
const SKIP = { skipCertificateWrite: true };
const COREOS = { isCoreOSVariant: true };
const INSTALL = '[Install]\nWantedBy=multi-user.target\n';
const UNITS = '/etc/systemd/system';

const put = (host: Host, path: string, text = 'x', mode = 0o644) => host.files.write(path, Buffer.from(text), { mode });
const text = async (host: Host, path: string) => (await host.files.read(path))?.toString();

describe('files', () => {
  test('an absent or empty source is an empty file; mode and owner have defaults', async () => {
    const host = memoryHost();
    await writeFiles(host, [{ path: '/etc/a' }, { path: '/etc/b', contents: { source: '' } }], SKIP);
    for (const path of ['/etc/a', '/etc/b']) {
      assert.deepEqual(await host.files.stat(path), { kind: 'file', mode: 0o644, uid: 0, gid: 0, size: 0 });
    }
  });

  test('owners are ids or names', async () => {
    const host = memoryHost();
    await host.accounts.addUser('core', []);
    await writeFiles(host, [{ path: '/a', user: { name: 'core' }, group: { id: 7 } }], SKIP);
    assert.deepEqual([(await host.files.stat('/a'))?.uid, (await host.files.stat('/a'))?.gid], [1000, 7]);
  });

  test('only what differs in content, mode or owner is written', async () => {
    const host = memoryHost();
    const file = { path: '/etc/a', contents: { source: 'data:,x' } };
    assert.deepEqual(await writeFiles(host, [file], SKIP), ['/etc/a']);
    assert.deepEqual(await writeFiles(host, [file], SKIP), []);
    assert.deepEqual(await writeFiles(host, [{ ...file, mode: 0o600 }], SKIP), ['/etc/a']);
    assert.deepEqual(await writeFiles(host, [{ ...file, mode: 0o600, user: { id: 5 } }], SKIP), ['/etc/a']);
    assert.deepEqual(
      await writeFiles(host, [{ ...file, contents: { source: 'data:,y' }, mode: 0o600, user: { id: 5 } }], SKIP),
      ['/etc/a'],
    );
  });

  test('a link at the place is replaced', async () => {
    const host = memoryHost();
    await put(host, '/etc/target', 'x');
    await host.files.symlink('/etc/target', '/etc/a');
    assert.deepEqual(await writeFiles(host, [{ path: '/etc/a', contents: { source: 'data:,x' } }], SKIP), ['/etc/a']);
    assert.equal((await host.files.stat('/etc/a'))?.kind, 'file');
  });

  test('the CA of the kubelet is left to the certificate writer', async () => {
    const host = memoryHost();
    assert.deepEqual(await writeFiles(host, [{ path: '/etc/kubernetes/kubelet-ca.crt' }], SKIP), []);
    assert.equal(await host.files.stat('/etc/kubernetes/kubelet-ca.crt'), undefined);
  });
});

describe('originals', () => {
  test('the first backup is kept with its mode, also when it is a dangling link', async () => {
    const host = memoryHost({ packages: { owns: async () => true } });
    await put(host, '/etc/a', 'shipped', 0o600);
    await keepOriginal(host, '/etc/a');
    await put(host, '/etc/a', 'ours');
    await keepOriginal(host, '/etc/a');
    assert.equal(await text(host, originalOf('/etc/a')), 'shipped');
    assert.equal((await host.files.stat(originalOf('/etc/a')))?.mode, 0o600);
    await host.files.symlink('/nowhere', '/etc/link');
    await keepOriginal(host, '/etc/link');
    await host.files.symlink('/elsewhere', '/etc/link');
    await keepOriginal(host, '/etc/link');
    assert.equal(await host.files.readLink(originalOf('/etc/link')), '/nowhere');
  });

  test('a backup of what was never shipped gives way to a stamp; a stamp is never followed by a backup of our own file', async () => {
    const shipped = { owns: async () => false };
    const host = memoryHost({ packages: shipped });
    await put(host, '/var/a');
    await put(host, originalOf('/var/a'));
    await keepOriginal(host, '/var/a');
    assert.equal(await host.files.stat(originalOf('/var/a')), undefined);
    assert.equal((await host.files.stat(noOriginalStampOf('/var/a')))?.size, 0);
    shipped.owns = async () => true;
    await keepOriginal(host, '/var/a');
    assert.equal(await host.files.stat(originalOf('/var/a')), undefined);
  });

  test('an error of the package database ends it', async () => {
    const host = memoryHost({ packages: { owns: () => Promise.reject(new Error('database is locked')) } });
    await put(host, '/etc/a');
    await assert.rejects(keepOriginal(host, '/etc/a'), /locked/);
  });
});

describe('units', () => {
  const cases: [string, IgnitionUnit, (host: Host) => Promise<void>, (host: Host) => Promise<void>][] = [
    [
      'contents, enabled',
      { name: 'a.service', contents: INSTALL, enabled: true },
      async () => {},
      async host => {
        assert.deepEqual(
          [await text(host, `${UNITS}/a.service`), await host.services.isEnabled('a.service')],
          [INSTALL, 'enabled'],
        );
      },
    ],
    [
      'another install section moves the links',
      { name: 'a.service', contents: INSTALL, enabled: true },
      async host => {
        await put(host, `${UNITS}/a.service`, '[Install]\nWantedBy=old.target\n');
        await host.services.enable(['a.service']);
      },
      async host => {
        assert.equal(await host.files.readLink(`${UNITS}/old.target.wants/a.service`), undefined);
        assert.equal(await host.files.readLink(`${UNITS}/multi-user.target.wants/a.service`), `${UNITS}/a.service`);
      },
    ],
    [
      'disabled',
      { name: 'a.service', contents: INSTALL, enabled: false },
      async host => {
        await put(host, `${UNITS}/a.service`, INSTALL);
        await host.services.enable(['a.service']);
      },
      async host => assert.equal(await host.services.isEnabled('a.service'), 'disabled'),
    ],
    [
      'a mask replaces what is there',
      { name: 'a.service', contents: INSTALL, mask: true, enabled: true },
      host => put(host, `${UNITS}/a.service`),
      async host => assert.equal(await host.services.isEnabled('a.service'), 'masked'),
    ],
    [
      'mask: false lifts a mask',
      { name: 'a.service', mask: false, enabled: true },
      async host => {
        await put(host, '/usr/lib/systemd/system/a.service', INSTALL);
        await host.files.symlink('/dev/null', `${UNITS}/a.service`);
      },
      async host => assert.equal(await host.services.isEnabled('a.service'), 'enabled'),
    ],
    [
      'a unit that is not there is not enabled, and does not stop the others (D-29)',
      { name: 'missing.service', enabled: true },
      async () => {},
      async host => assert.equal(await host.services.isEnabled('missing.service'), 'not-found'),
    ],
    [
      'enabled is not said: by preset',
      { name: 'a.service', contents: INSTALL },
      host => put(host, '/usr/lib/systemd/system-preset/99-default.preset', 'enable b*\ndisable *\n'),
      async host => assert.equal(await host.services.isEnabled('a.service'), 'disabled'),
    ],
    [
      'an empty drop-in goes',
      { name: 'a.service', dropins: [{ name: '10.conf' }, { name: '20.conf', contents: '[Service]\n' }] },
      host => put(host, `${UNITS}/a.service.d/10.conf`),
      async host => assert.deepEqual(await host.files.list(`${UNITS}/a.service.d`), ['20.conf']),
    ],
    [
      'what ships with the image is backed up on CoreOS',
      { name: 'a.service', contents: INSTALL },
      async host => {
        await put(host, `/usr${UNITS}/a.service`, 'shipped');
        await put(host, `${UNITS}/a.service`, 'shipped');
      },
      async host => assert.equal(await text(host, originalOf(`${UNITS}/a.service`)), 'shipped'),
    ],
  ];
  for (const [what, unit, before, check] of cases) {
    test(what, async () => {
      const host = memoryHost();
      await before(host);
      await writeUnits(host, [unit], COREOS);
      await check(host);
      await writeUnits(host, [unit], COREOS);
      await check(host);
    });
  }
});

describe('pruning', () => {
  const config = (units: IgnitionUnit[], paths: string[] = []): IgnitionConfig => ({
    ignition: { version: '3.4.0' },
    storage: { files: paths.map(path => ({ path })) },
    systemd: { units },
  });
  const pruned = async (host: Host, before: IgnitionConfig, after: IgnitionConfig) =>
    prune(host, await decidePruning(host, before, after), COREOS);

  test('certificates stay', async () => {
    const host = memoryHost();
    const paths = ['/etc/kubernetes/kubelet-ca.crt', '/etc/docker/certs.d/registry:5000/ca.crt', '/etc/a'];
    for (const path of paths) await put(host, path);
    assert.deepEqual(await pruned(host, config([], paths), config([])), ['/etc/a']);
  });

  test('a unit that leaves loses its links; one of the operating system goes back to its preset', async () => {
    const host = memoryHost();
    await writeUnits(host, [{ name: 'a.service', contents: INSTALL, enabled: true }], COREOS);
    await put(host, '/usr/lib/systemd/system/vendor.service', INSTALL);
    const before = config([
      { name: 'a.service', contents: INSTALL, enabled: true },
      { name: 'vendor.service', enabled: false },
    ]);
    assert.deepEqual(await pruned(host, before, config([])), [`${UNITS}/a.service`]);
    assert.deepEqual(await host.files.list(`${UNITS}/multi-user.target.wants`), ['vendor.service']);
  });

  test('contents or a mask that leave a unit which stays are taken away', async () => {
    const host = memoryHost();
    await put(host, `${UNITS}/a.service`, INSTALL);
    await host.files.symlink('/dev/null', `${UNITS}/b.service`);
    const before = config([
      { name: 'a.service', contents: INSTALL },
      { name: 'b.service', mask: true },
    ]);
    const after = config([
      { name: 'a.service', enabled: true },
      { name: 'b.service', enabled: true },
    ]);
    assert.deepEqual(await pruned(host, before, after), [`${UNITS}/a.service`, `${UNITS}/b.service`]);
  });

  test('a file that has become a unit or a drop-in stays', async () => {
    const host = memoryHost();
    const paths = [`${UNITS}/a.service`, `${UNITS}/a.service.d/10.conf`];
    for (const path of paths) await put(host, path);
    const after = config([
      { name: 'a.service', contents: INSTALL, dropins: [{ name: '10.conf', contents: '[Unit]\n' }] },
    ]);
    assert.deepEqual(await pruned(host, config([], paths), after), []);
  });

  test('a shipped file comes back with its mode, even when ours was deleted meanwhile', async () => {
    for (const isDeleted of [false, true]) {
      const host = memoryHost();
      await put(host, '/usr/etc/a', 'shipped');
      await put(host, '/etc/a', 'shipped', 0o600);
      await writeFiles(host, [{ path: '/etc/a', contents: { source: 'data:,ours' } }], SKIP);
      if (isDeleted) await host.files.remove('/etc/a');
      await pruned(host, config([], ['/etc/a']), config([]));
      assert.deepEqual([await text(host, '/etc/a'), (await host.files.stat('/etc/a'))?.mode], ['shipped', 0o600]);
      assert.equal(await host.files.stat(originalOf('/etc/a')), undefined);
    }
  });

  test('leaked links go', async () => {
    const host = memoryHost();
    const link = `${UNITS}/network-online.target.requires/node-valid-hostname.service`;
    await host.files.symlink('/x', link);
    await pruned(host, config([]), config([]));
    assert.equal(await host.files.readLink(link), undefined);
  });
});

describe('users', () => {
  const user = { name: 'core', sshAuthorizedKeys: ['one', 'two'] };
  const withCore = async () => {
    const host = memoryHost();
    await host.accounts.addUser('core', []);
    return host;
  };

  test('without the user nothing is written', async () => {
    const host = memoryHost();
    await updateSshKeys(host, RHCOS9, [], [user]);
    assert.equal(await host.files.stat('/home/core/.ssh'), undefined);
  });

  test('the older place has no directory of fragments (D-35)', async () => {
    const host = await withCore();
    await updateSshKeys(host, RHCOS8, [], [user]);
    assert.deepEqual(await host.files.list('/home/core/.ssh'), ['authorized_keys']);
    assert.equal(await text(host, '/home/core/.ssh/authorized_keys'), 'one\ntwo\n');
  });

  test('keys move to the newer place once', async () => {
    const host = await withCore();
    await updateSshKeys(host, RHCOS8, [], [user]);
    assert.equal(await moveSshKeys(host, RHCOS8, [user]), false);
    assert.equal(await moveSshKeys(host, RHCOS9, [user]), true);
    assert.equal(await moveSshKeys(host, RHCOS9, [user]), false);
    assert.deepEqual(await host.files.list('/home/core/.ssh'), ['authorized_keys.d']);
  });

  test('a user who leaves is locked, not opened (D-18)', async () => {
    const host = await withCore();
    await updatePasswords(host, [], [{ ...user, passwordHash: '$6$x' }]);
    assert.match((await text(host, '/etc/shadow')) ?? '', /^core:\$6\$x:/m);
    await updatePasswords(host, [user], []);
    assert.match((await text(host, '/etc/shadow')) ?? '', /^core:\*:/m);
  });
});
