/** Enabling without a running systemd, against the program it imitates: `systemctl --root` makes and removes the same links. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { rootedFiles } from '../../../src/host/directory-disk.ts';
import { unitsOnDisk } from '../../../src/host/units-on-disk.ts';

const hasSystemctl = spawnSync('systemctl', ['--version']).status === 0;
const skip = hasSystemctl ? false : 'there is no systemctl on this machine';

const UNITS: Record<string, string> = {
  'plain.service': '[Unit]\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n',
  'many.service':
    '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target graphical.target\nRequiredBy=network.target\n',
  'aliased.service':
    '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\nAlias=other-name.service\n',
  'also.service': '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\nAlso=also.socket\n',
  'also.socket': '[Socket]\nListenStream=/run/also\n[Install]\nWantedBy=sockets.target\n',
  'static.service': '[Service]\nExecStart=/bin/true\n',
  'getty@.service': '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=getty.target\n',
};

const SEQUENCES: [string, [verb: 'enable' | 'disable' | 'preset', unit: string][]][] = [
  ['enable', [['enable', 'plain.service']]],
  [
    'enable twice',
    [
      ['enable', 'plain.service'],
      ['enable', 'plain.service'],
    ],
  ],
  ['several targets', [['enable', 'many.service']]],
  [
    'and back',
    [
      ['enable', 'many.service'],
      ['disable', 'many.service'],
    ],
  ],
  ['alias', [['enable', 'aliased.service']]],
  [
    'alias and back',
    [
      ['enable', 'aliased.service'],
      ['disable', 'aliased.service'],
    ],
  ],
  ['also', [['enable', 'also.service']]],
  [
    'also and back',
    [
      ['enable', 'also.service'],
      ['disable', 'also.service'],
    ],
  ],
  ['static', [['enable', 'static.service']]],
  ['instance of a template', [['enable', 'getty@tty1.service']]],
  ['preset enables', [['preset', 'plain.service']]],
  [
    'preset disables',
    [
      ['enable', 'many.service'],
      ['preset', 'many.service'],
    ],
  ],
  ['disable what is not enabled', [['disable', 'plain.service']]],
];

describe('links of units are those of systemctl --root', { skip }, () => {
  for (const directory of ['/etc/systemd/system', '/usr/lib/systemd/system']) {
    for (const [what, steps] of SEQUENCES) {
      test(`${what}, units in ${directory}`, async t => {
        const [ours, theirs] = [await makeRoot(directory), await makeRoot(directory)];
        t.after(() => Promise.all([ours, theirs].map(root => rm(root, { recursive: true, force: true }))));
        const units = unitsOnDisk(rootedFiles(ours));
        for (const [verb, unit] of steps) {
          await (verb === 'preset' ? units.preset(unit) : units[verb]([unit]));
          const { status, stderr } = spawnSync('systemctl', [`--root=${theirs}`, verb, unit], { encoding: 'utf8' });
          assert.equal(status, 0, stderr);
        }
        assert.deepEqual(await linksBelow(ours), await linksBelow(theirs));
        for (const unit of Object.keys(UNITS).filter(name => !name.includes('@'))) {
          const { stdout } = spawnSync('systemctl', [`--root=${theirs}`, 'is-enabled', unit], { encoding: 'utf8' });
          const expected = stdout.trim() === 'alias' || stdout.trim() === 'indirect' ? 'disabled' : stdout.trim();
          assert.deepEqual([unit, await units.isEnabled(unit)], [unit, expected]);
        }
      });
    }
  }

  test('what is masked or not there cannot be enabled', async t => {
    const root = await makeRoot('/usr/lib/systemd/system');
    t.after(() => rm(root, { recursive: true, force: true }));
    const files = rootedFiles(root);
    await files.symlink('/dev/null', '/etc/systemd/system/plain.service');
    for (const unit of ['plain.service', 'missing.service']) {
      await assert.rejects(unitsOnDisk(files).enable([unit]), { code: 'command' });
      assert.notEqual(spawnSync('systemctl', [`--root=${root}`, 'enable', unit]).status, 0);
    }
    assert.equal(await unitsOnDisk(files).isEnabled('plain.service'), 'masked');
  });
});

async function makeRoot(directory: string): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'rotunda-units-'));
  const files = rootedFiles(root);
  for (const [name, contents] of Object.entries(UNITS))
    await files.write(`${directory}/${name}`, Buffer.from(contents));
  await files.write('/etc/systemd/system-preset/50-test.preset', Buffer.from('enable plain.service\ndisable *\n'));
  return root;
}

async function linksBelow(root: string): Promise<Record<string, string>> {
  const files = rootedFiles(root);
  const found: Record<string, string> = {};
  const walk = async (path: string): Promise<void> => {
    for (const name of (await files.list(path)) ?? []) {
      const below = join(path, name);
      const link = await files.readLink(below);
      // Where it leads is what counts: newer versions write relative links, older ones absolute.
      if (link !== undefined) found[below] = link.split('/').at(-1) ?? '';
      else if ((await files.stat(below))?.kind === 'directory') await walk(below);
    }
  };
  await walk('/etc/systemd/system');
  return found;
}
