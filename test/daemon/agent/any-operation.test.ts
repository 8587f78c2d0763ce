import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validateDisk } from '../../../src/daemon/decide/disk-validation.ts';
import { isReading, observed } from '../../../src/host/memory.ts';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import { DAEMON_REASON, DAEMON_STATE } from '../../../src/machine-config-api/names.ts';
import { readConfig } from '../../../src/machine-config-api/reconciliation.ts';
import { config, machine, Scene, WORKER } from './scene.ts';

const MOST_OPERATIONS = 2000;

test('an agent that dies before any of its operations on the host is followed by one that ends Done', async t => {
  const scene = await Scene.create();
  const host = await machine();
  try {
    await scene.create(generation(0));
    await scene.install(host, generation(0));
    await scene.cluster.addNode('n', WORKER, 'rendered-0');
    let serial = 0;
    let at = 1;
    for (; at < MOST_OPERATIONS; at++) {
      let isDead = false;
      let count = 0;
      const die = () => {
        if (isDead) throw new Error('this process is dead');
      };
      const dying = observed(host, operation => {
        if (!isReading(operation) && operation.name !== 'bootId' && ++count === at) isDead = true;
        die();
      });
      const wanted = generation(++serial);
      await scene.target('n', wanted);
      // A dead process neither writes to its disk nor to the API.
      const agent = scene.run('n', { ...dying, asked: host.asked }, scene.api(die));
      const name = wanted.metadata?.name ?? '';
      await scene.until('it is dead, or done', async () => isDead || (await isDone(scene, name)));
      await agent.stop();
      const successor = scene.run('n', host);
      await scene.isDone('n', name);
      await successor.stop();
      assert.equal((await scene.annotations('n'))[DAEMON_REASON] ?? '', '');
      assert.equal(
        await validateDisk(readConfig(wanted).ignition, host, { sshKeysPath: KEYS }),
        undefined,
        `operation ${at}`,
      );
      if (!isDead) break;
    }
    assert.ok(at > 100 && at < MOST_OPERATIONS, `${at} operations`);
    t.diagnostic(`died at each of ${at - 1} operations`);
  } finally {
    await scene.close();
  }
});

const KEYS = '/home/core/.ssh/authorized_keys';

async function isDone(scene: Scene, name: string): Promise<boolean> {
  const annotations = await scene.annotations('n');
  return (
    annotations['machineconfiguration.openshift.io/currentConfig'] === name && annotations[DAEMON_STATE] === 'Done'
  );
}

function generation(serial: number): MachineConfig {
  const files = Object.fromEntries(
    Array.from({ length: 12 }, (_, index) => [`/etc/d/${index}`, `${index} of ${serial}`]),
  );
  const contents = `[Service]\nExecStart=/bin/echo ${serial}\n[Install]\nWantedBy=multi-user.target\n`;
  return config(
    `rendered-${serial}`,
    { ...files, [`/etc/only-${serial}`]: 'x' },
    {
      systemd: {
        units: [
          { name: 'a.service', enabled: serial % 2 === 0, contents },
          { name: `b-${serial}.service`, mask: true },
        ],
      },
      passwd: {
        users: [{ name: 'core', sshAuthorizedKeys: [`ssh-ed25519 AAAA${serial} a`], passwordHash: `$6$${serial}` }],
      },
    },
  );
}
