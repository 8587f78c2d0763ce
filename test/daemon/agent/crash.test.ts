import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { readStored } from '../../../src/daemon/apply/stored.ts';
import { validateDisk } from '../../../src/daemon/decide/disk-validation.ts';
import { sleep, systemClock } from '../../../src/kube/clock.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { NODES } from '../../../src/kube/resource.ts';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import { DAEMON_STATE } from '../../../src/machine-config-api/names.ts';
import { readConfig } from '../../../src/machine-config-api/reconciliation.ts';
import { seeded } from '../../informer/seeded.ts';
import { eventually } from '../../tools/eventually.ts';
import { ProcessCluster, type ProcessNode } from './node-process.ts';
import { config } from './scene.ts';

/** How often the agent is killed; `ROTUNDA_CRASH_POINTS=200` for the long run. */
const POINTS = Number(process.env.ROTUNDA_CRASH_POINTS ?? 16);
const SEED = Number(process.env.ROTUNDA_CRASH_SEED ?? 1);
const NODE_COUNT = 2;
const FILE_COUNT = 50;
const KILLS_AN_UPDATE = 4;
/** About as long as the start of a process and an update take. */
const LIFE_MS = 1600;
/** About as long as the files, the unit and the keys of an update take. */
const WRITING_MS = 400;

test(`${POINTS} times kill -9 of the real command at random points of updates: Done, complete, never Degraded`, async t => {
  const cluster = await ProcessCluster.start();
  const seen = new Informer<Node>(cluster.api.kube, NODES).start();
  const states = new Set<string>();
  seen.subscribe({
    update: (_before, { metadata }) => states.add(metadata?.annotations?.[DAEMON_STATE] ?? ''),
  });
  let left = POINTS;
  let amid = 0;
  try {
    const runs = Array.from({ length: NODE_COUNT }, async (_, index) => {
      const random = seeded(SEED * 100 + index);
      const node = await cluster.node(`n${index}`, generation(index, 0));
      for (const path of ['/etc/shipped', '/usr/etc/shipped']) {
        await node.host.files.write(path, Buffer.from('shipped by the system'));
      }
      node.start();
      for (let serial = 1; left > 0; serial++) {
        const wanted = generation(index, serial);
        await node.target(wanted);
        for (let kill = 0; kill < KILLS_AN_UPDATE && left > 0; kill++) {
          left--;
          // Every other one while files are written, the first of them as soon as that is seen; the rest anywhere.
          if (kill % 2 === 0) await isUnderWay(node, wanted);
          await sleep(systemClock, random() * (kill === 0 ? 0 : kill % 2 === 0 ? WRITING_MS : LIFE_MS));
          await node.kill();
          if (journals(node.root).length > 0) amid++;
          node.start();
        }
        await node.isDone(wanted);
        const { ignition } = readConfig(wanted);
        const keys = '/home/core/.ssh/authorized_keys';
        assert.equal(await validateDisk(ignition, node.host, { sshKeysPath: keys }), undefined);
        assert.equal((await readStored(node.host))?.config.metadata?.name, wanted.metadata?.name);
        assert.deepEqual(leftovers(node.root), []);
        // What the config before had and this one has not is gone, and what the system shipped is back.
        assert.equal(node.read('etc/shipped'), serial % 2 === 0 ? 'shipped by the system' : `ours ${serial}`);
      }
    });
    for (const run of await Promise.allSettled(runs)) if (run.status === 'rejected') throw run.reason;
    assert.ok(!states.has('Degraded') && !states.has('Unreconcilable'), [...states].join());
    assert.ok(amid > 0, 'no kill hit an update under way');
    t.diagnostic(`${POINTS} kills, ${amid} of them while an update was under way on the disk`);
  } finally {
    await seen.stop();
    await cluster.close();
  }
});

function journals(root: string): string[] {
  return globSync('etc/machine-config-daemon/rotunda-update-*.json', { cwd: root });
}

/** Waits until an update has begun to change the disk; some are over before anybody sees that. */
async function isUnderWay({ root, host }: Pick<ProcessNode, 'root' | 'host'>, wanted: MachineConfig): Promise<void> {
  const isOver = async () => (await readStored(host))?.config.metadata?.name === wanted.metadata?.name;
  const hasBegun = async () => journals(root).length > 0 || (await isOver());
  await eventually('an update under way', hasBegun, () => '', 1);
}

/** A config that differs from its neighbours in all files, a unit and the keys. */
function generation(node: number, serial: number): MachineConfig {
  const files = Object.fromEntries(
    Array.from({ length: FILE_COUNT }, (_, index) => [
      `/etc/d${index % 7}/file-${index}`,
      `${index} of ${serial}\n`.repeat(50),
    ]),
  );
  const contents = `[Service]\nExecStart=/bin/echo ${serial}\n[Install]\nWantedBy=multi-user.target\n`;
  return config(
    `rendered-${node}-${serial}`,
    { ...files, ...(serial % 2 === 0 ? { [`/etc/only-${serial}`]: 'x' } : { '/etc/shipped': `ours ${serial}` }) },
    {
      systemd: { units: [{ name: 'a.service', enabled: serial % 3 !== 0, contents }] },
      passwd: { users: [{ name: 'core', sshAuthorizedKeys: [`ssh-ed25519 AAAA${serial} a`] }] },
    },
  );
}

/** Temporary files and journals that nobody needs any more. */
function leftovers(root: string): string[] {
  return globSync(['etc/**/.*', 'etc/machine-config-daemon/rotunda-*', 'home/**/.*.*'], { cwd: root }).filter(
    path => !path.endsWith('.ssh') && !join(root, path).includes('/.ssh/'),
  );
}
