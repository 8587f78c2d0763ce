import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { localHost } from '../../host/local.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { applyConfig, finishUpdate } from './apply-config.ts';
import { snapshot } from './snapshot.test-support.ts';

const DATA = { source: 'data:,ours' };
const good = { path: '/etc/good', contents: DATA };

function config(storage: object, others: object = {}): MachineConfig {
  return {
    metadata: { name: 'rendered-hostile' },
    spec: { config: { ignition: { version: '3.4.0' }, storage, ...others } },
  };
}

async function makeNode(t: TestContext) {
  const base = await mkdtemp(join(tmpdir(), 'rotunda-hostile-'));
  t.after(() => rm(base, { recursive: true, force: true }));
  const [root, outside] = [join(base, 'root'), join(base, 'outside')];
  await mkdir(join(root, 'etc'), { recursive: true });
  await mkdir(outside);
  await writeFile(join(outside, 'secret'), 'secret');
  return { root, outside, host: localHost({ root }) };
}

/** Nothing was written next to the root. */
async function requireUntouched(outside: string): Promise<void> {
  assert.deepEqual(await readdir(outside), ['secret']);
  assert.equal(await readFile(join(outside, 'secret'), 'utf8'), 'secret');
}

describe('a config is refused, with the disk as it was:', () => {
  const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024), { level: 9 }).toString('base64');
  const refused: [string, MachineConfig, RegExp][] = [
    ['a path with ..', config({ files: [good, { path: '/etc/../../outside/x', contents: DATA }] }), /not clean/],
    ['a relative path', config({ files: [good, { path: 'etc/x', contents: DATA }] }), /not absolute/],
    ['a path with a zero byte', config({ files: [good, { path: '/etc/\0', contents: DATA }] }), /zero byte/],
    [
      'a bomb of 100 MB',
      config({
        files: [good, { path: '/etc/bomb', contents: { source: `data:;base64,${bomb}`, compression: 'gzip' } }],
      }),
      /expands to more than/,
    ],
    [
      'what is no gzip',
      config({ files: [good, { path: '/etc/x', contents: { source: 'data:,x', compression: 'gzip' } }] }),
      /not valid gzip/,
    ],
    [
      'a source elsewhere',
      config({ files: [good, { path: '/etc/x', contents: { source: 'https://example.com/x' } }] }),
      /expected a data URL/,
    ],
    [
      'a user that is not there',
      config({ files: [good, { path: '/etc/x', user: { name: 'nobody-here' }, contents: DATA }] }),
      /ownership/,
    ],
    [
      'a file where a directory must be',
      config({ files: [good, { path: '/etc/file/x', contents: DATA }] }),
      /no directory/,
    ],
    [
      'a directory where a file must be',
      config({ files: [good, { path: '/etc/directory', contents: DATA }] }),
      /it is a directory/,
    ],
    [
      'a unit with a slash',
      config({}, { systemd: { units: [{ name: '../../x.service', contents: '[Unit]\n' }] } }),
      /slashes/,
    ],
    [
      'a unit with a line feed',
      config({}, { systemd: { units: [{ name: 'a\nb.service', contents: '[Unit]\n' }] } }),
      /control/,
    ],
    [
      'a drop-in with ..',
      config(
        {},
        { systemd: { units: [{ name: 'a.service', dropins: [{ name: '../b.conf', contents: '[Unit]\n' }] }] } },
      ),
      /slashes/,
    ],
    [
      'a hash with a colon',
      config({ files: [good] }, { passwd: { users: [{ name: 'core', passwordHash: 'x:0:0' }] } }),
      /not well-formed/,
    ],
  ];
  for (const [what, hostile, message] of refused) {
    test(what, async t => {
      const { host, outside } = await makeNode(t);
      await host.accounts.addUser('core', []);
      await host.files.write('/etc/file', Buffer.from('there'));
      await host.files.makeDirectory('/etc/directory');
      await host.bootId();
      const before = await snapshot(host.files);
      await assert.rejects(applyConfig(host, undefined, hostile), message);
      assert.deepEqual(await snapshot(host.files), before);
      await requireUntouched(outside);
    });
  }

  test('a pipe or a device at the place of a file', {
    skip: process.getuid?.() !== 0 && 'only root makes devices',
  }, async t => {
    const { root, host } = await makeNode(t);
    assert.equal(spawnSync('mkfifo', [join(root, 'etc/pipe')]).status, 0);
    assert.equal(spawnSync('mknod', [join(root, 'etc/device'), 'b', '7', '0']).status, 0);
    for (const path of ['/etc/pipe', '/etc/device']) {
      await assert.rejects(
        applyConfig(host, undefined, config({ files: [good, { path, contents: DATA }] })),
        /neither a file nor a link/,
      );
      assert.equal((await host.files.stat(path))?.kind, 'other');
      assert.equal(await host.files.stat('/etc/good'), undefined);
    }
  });
});

describe('planted links are contained:', () => {
  test('parents that lead out lead into the root instead', async t => {
    const { root, outside, host } = await makeNode(t);
    await symlink(outside, join(root, 'etc/absolute'));
    await symlink('../../outside', join(root, 'etc/relative'));
    await symlink(join(outside, 'secret'), join(root, 'etc/file'));
    await symlink(outside, join(root, 'etc/machine-config-daemon'));
    const hostile = config({
      files: ['absolute/secret', 'relative/secret', 'file'].map(name => ({ path: `/etc/${name}`, contents: DATA })),
    });
    await applyConfig(host, undefined, hostile);
    for (const path of ['/etc/absolute/secret', '/etc/relative/secret', '/etc/file']) {
      assert.equal((await host.files.read(path))?.toString(), 'ours');
    }
    assert.equal((await host.files.stat('/etc/file'))?.kind, 'file');
    await finishUpdate(host);
    await applyConfig(host, hostile, config({}));
    await requireUntouched(outside);
  });

  test('directories of units and of keys', async t => {
    const { root, outside, host } = await makeNode(t);
    await host.accounts.addUser('core', []);
    await mkdir(join(root, 'etc/systemd'), { recursive: true });
    await symlink(outside, join(root, 'etc/systemd/system'));
    await symlink(outside, join(root, 'home/core/.ssh'));
    const units = [{ name: 'a.service', enabled: true, contents: '[Install]\nWantedBy=multi-user.target\n' }];
    await applyConfig(
      host,
      undefined,
      config({}, { systemd: { units }, passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['key'] }] } }),
    );
    assert.equal(await host.services.isEnabled('a.service'), 'enabled');
    assert.equal((await host.files.stat('/home/core/.ssh'))?.kind, 'directory');
    assert.equal(await readFile(join(root, 'home/core/.ssh/authorized_keys'), 'utf8'), 'key\n');
    await requireUntouched(outside);
  });

  test('a unit cannot be enabled out of its directory', async t => {
    const { root, host } = await makeNode(t);
    const contents = '[Install]\nWantedBy=../../../outside\nAlias=../../escaped.service\n';
    await applyConfig(
      host,
      undefined,
      config({}, { systemd: { units: [{ name: 'a.service', enabled: true, contents }] } }),
    );
    assert.deepEqual(await readdir(join(root, 'etc/systemd/system')), ['a.service']);
    assert.ok(!existsSync(join(root, 'escaped.service')));
  });
});
