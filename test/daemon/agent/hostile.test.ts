import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import { DAEMON_REASON, DAEMON_STATE } from '../../../src/machine-config-api/names.ts';
import { eventually } from '../../tools/eventually.ts';
import { ProcessCluster, type ProcessNode } from './node-process.ts';
import { config } from './scene.ts';

const BASE = { '/etc/base': 'base' };
const BOMB_BYTES = 100 * 1024 * 1024;

describe('configs and disks that mean harm, against the real command on a directory', () => {
  let cluster: ProcessCluster;
  let node: ProcessNode;
  let outside: string;
  const first = config('rendered-0', BASE);

  before(async () => {
    cluster = await ProcessCluster.start();
    node = await cluster.node('n', first);
    outside = join(cluster.dir, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'victim'), 'untouched');
    mkdirSync(join(node.root, 'etc/directory/inside'), { recursive: true });
    symlinkSync(outside, join(node.root, 'etc/absolute'));
    symlinkSync('../../../outside', join(node.root, 'etc/relative'));
    symlinkSync(join(outside, 'victim'), join(node.root, 'etc/link'));
    node.start();
    await node.isDone(first);
  });
  after(() => cluster.close());

  function bomb(name: string): MachineConfig {
    const wanted = config(name, BASE);
    const source = `data:;base64,${gzipSync(Buffer.alloc(BOMB_BYTES)).toString('base64')}`;
    const document = wanted.spec?.config as { storage: { files: object[] } };
    document.storage.files.push({ path: '/etc/bomb', contents: { source, compression: 'gzip' } });
    return wanted;
  }

  const refused: [string, () => MachineConfig, RegExp][] = [
    ['dot-dots in a path', () => config('bad-1', { ...BASE, '/etc/../../../outside/victim': 'x' }), /path/i],
    ['a file where a directory is', () => config('bad-2', { ...BASE, '/etc/directory/inside': 'x' }), /directory/],
    ['a directory where a file is', () => config('bad-3', { ...BASE, '/etc/base/below': 'x' }), /director|path/],
    ['a gzip bomb', () => bomb('bad-4'), /expands to more than/],
    [
      'a unit that leaves its folder',
      () => config('bad-5', BASE, { systemd: { units: [{ name: '../x.service', contents: '[Unit]\n' }] } }),
      /name|unit/i,
    ],
    [
      'a drop-in that leaves its folder',
      () =>
        config('bad-6', BASE, {
          systemd: { units: [{ name: 'a.service', dropins: [{ name: '../../x.conf', contents: '[Unit]\n' }] }] },
        }),
      /name|drop/i,
    ],
    [
      'a line feed in the name of a unit',
      () => config('bad-7', BASE, { systemd: { units: [{ name: 'a\nb.service', contents: '[Unit]\n' }] } }),
      /name|unit/i,
    ],
  ];
  for (const [what, make, reason] of refused) {
    test(`${what}: refused, and everything is as it was`, async () => {
      await node.target(make());
      await eventually('it is refused', async () =>
        /Degraded|Unreconcilable/.test((await node.annotations())[DAEMON_STATE] ?? ''),
      );
      assert.match((await node.annotations())[DAEMON_REASON] ?? '', reason);
      assert.deepEqual(readdirSync(outside), ['victim']);
      await node.target(first);
      await node.isDone(first);
      assert.equal(node.read('etc/base'), 'base');
    });
  }

  test('links in the root lead nowhere but below the root', async () => {
    const names = ['/etc/absolute/victim', '/etc/relative/new', '/etc/link'];
    for (const [index, path] of names.entries()) {
      const wanted = config(`linked-${index}`, { ...BASE, [path]: 'x' });
      await node.target(wanted);
      await eventually('it is done or refused', async () => {
        const { [DAEMON_STATE]: state = '', 'machineconfiguration.openshift.io/currentConfig': current } =
          await node.annotations();
        return state === 'Degraded' || (state === 'Done' && current === wanted.metadata?.name);
      });
      assert.deepEqual(
        [readdirSync(outside), readFileSync(join(outside, 'victim'), 'utf8')],
        [['victim'], 'untouched'],
      );
    }
    await node.target(first);
    await node.isDone(first);
  });

  test('SIGTERM ends it cleanly', async () => {
    assert.equal(await node.kill('SIGTERM'), 0);
  });
});
