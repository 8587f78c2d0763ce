import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import { silentLog } from '../../controller/log.ts';
import { isReading, memoryHost, observed } from '../../host/memory.ts';
import { type Host, HostError } from '../../host/port.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { applyConfig, finishUpdate, recoverInterrupted, revertConfig } from './apply-config.ts';
import { snapshot } from './snapshot.test-support.ts';
import { UpdateError } from './steps.ts';
import { readStored } from './stored.ts';

/** An update of these configs has some hundred operations. */
const MORE_THAN_ENOUGH = 500;

const DATA = (text: string) => ({ source: `data:,${encodeURIComponent(text)}` });

const OLD: MachineConfig = {
  metadata: { name: 'rendered-old' },
  spec: {
    config: {
      ignition: { version: '3.4.0' },
      passwd: { users: [{ name: 'core', passwordHash: '$6$old', sshAuthorizedKeys: ['ssh-old'] }] },
      storage: {
        files: [
          { path: '/etc/same', contents: DATA('same') },
          { path: '/etc/changed', contents: DATA('old'), mode: 0o600 },
          { path: '/etc/shipped.conf', contents: DATA('ours') },
          { path: '/etc/gone', contents: DATA('gone') },
        ],
      },
      systemd: {
        units: [
          { name: 'a.service', enabled: true, contents: '[Install]\nWantedBy=multi-user.target\n' },
          { name: 'gone.service', enabled: true, contents: '[Install]\nWantedBy=multi-user.target\n' },
          { name: 'vendor.service', dropins: [{ name: '10-old.conf', contents: '[Service]\n' }] },
          { name: 'masked.service', mask: true },
        ],
      },
    },
  },
};

const NEW: MachineConfig = {
  metadata: { name: 'rendered-new' },
  spec: {
    config: {
      ignition: { version: '3.4.0' },
      passwd: { users: [{ name: 'core', passwordHash: '$6$new', sshAuthorizedKeys: ['ssh-new', 'ssh-other'] }] },
      storage: {
        files: [
          { path: '/etc/same', contents: DATA('same') },
          { path: '/etc/changed', contents: DATA('new') },
          { path: '/etc/foreign', contents: DATA('ours now') },
          { path: '/var/lib/deep/er/new', contents: DATA('new') },
          { path: '/etc/shipped-later.conf', contents: DATA('ours') },
        ],
      },
      systemd: {
        units: [
          { name: 'a.service', enabled: true, contents: '[Install]\nWantedBy=other.target\n' },
          { name: 'b.service', enabled: true, contents: '[Install]\nWantedBy=multi-user.target\n' },
          { name: 'vendor.service', mask: true },
          { name: 'masked.service', enabled: true },
        ],
      },
    },
  },
};

async function nodeIn(config: MachineConfig): Promise<Host> {
  const host = memoryHost();
  await host.accounts.addUser('core', []);
  for (const path of ['/etc/shipped.conf', '/etc/shipped-later.conf']) {
    await host.files.write(`/usr${path}`, Buffer.from('shipped'));
    await host.files.write(path, Buffer.from('shipped'));
  }
  for (const unit of ['vendor.service', 'masked.service']) {
    await host.files.write(`/usr/lib/systemd/system/${unit}`, Buffer.from('[Install]\nWantedBy=multi-user.target\n'));
  }
  await host.files.write('/etc/kubernetes/kubeconfig', Buffer.from('token'), { mode: 0o644 });
  await host.files.write('/etc/foreign', Buffer.from('by hand'), { mode: 0o640 });
  await host.bootId();
  // One that has been in the other config before.
  let last: MachineConfig | undefined;
  for (const next of config === OLD ? [OLD] : [OLD, config]) {
    await applyConfig(host, last, next);
    await finishUpdate(host);
    last = next;
  }
  return host;
}

/** What is on disk, without directories, which are made and never removed, and without the id of the boot. */
async function state(host: Host): Promise<Record<string, string>> {
  const { '/run/rotunda/boot-id': _, ...found } = await snapshot(host.files);
  return found;
}

describe('an update', () => {
  test('brings the node to the new config, and back to exactly what it was', async () => {
    const host = await nodeIn(OLD);
    await host.accounts.setPasswordHash('core', '$6$by-hand');
    const before = await state(host);
    const applied = await applyConfig(host, OLD, NEW, { pendingAction: { reboot: true } });
    assert.deepEqual(applied.pendingAction, { reboot: true });
    const text = async (path: string) => (await host.files.read(path))?.toString();
    assert.equal(await text('/etc/changed'), 'new');
    assert.equal((await host.files.stat('/etc/changed'))?.mode, 0o644);
    assert.equal(await text('/etc/shipped.conf'), 'shipped');
    assert.equal(await text('/etc/gone'), undefined);
    assert.equal(await text('/home/core/.ssh/authorized_keys'), 'ssh-new\nssh-other\n');
    assert.match((await text('/etc/shadow')) ?? '', /^core:\$6\$new:/m);
    assert.equal(await host.files.readLink('/etc/systemd/system/vendor.service'), '/dev/null');
    assert.equal(await host.services.isEnabled('b.service'), 'enabled');
    assert.equal(await host.services.isEnabled('masked.service'), 'enabled');
    assert.equal(await host.files.readLink('/etc/systemd/system/multi-user.target.wants/a.service'), undefined);
    assert.equal(await host.files.readLink('/etc/systemd/system/multi-user.target.wants/gone.service'), undefined);
    assert.equal((await host.files.stat('/etc/kubernetes/kubeconfig'))?.mode, 0o600);
    assert.equal((await readStored(host))?.config.metadata?.name, 'rendered-new');
    const { rolledBack, undoErrors } = await revertConfig(host);
    assert.deepEqual([rolledBack, undoErrors], [['store-current', 'password', 'ssh', 'files'], []]);
    assert.deepEqual(await state(host), before);
  });

  test('does not write what is as it should be', async () => {
    const host = await nodeIn(OLD);
    const written: string[] = [];
    const watching = observed(host, operation => {
      if (operation.name === 'files.write') written.push(String(operation.args[0]));
    });
    await applyConfig(watching, OLD, OLD);
    assert.deepEqual(
      written.filter(path => !path.startsWith('/etc/machine-config-daemon/') && !path.startsWith('/home/')),
      [],
    );
  });
});

for (const [way, from, to] of [
  ['to the new config', OLD, NEW],
  ['back to the old one', NEW, OLD],
] as const) {
  describe(`every operation of an update ${way}`, () => {
    test('may fail: the node is as it was', async () => {
      const host = await nodeIn(from);
      const before = await state(host);
      for (let n = 1; n < MORE_THAN_ENOUGH; n++) {
        const error = await attempt(host, n, 'once', from, to);
        if (error === undefined) break;
        assert.ok(error instanceof UpdateError || error instanceof HostError, inspect(error));
        await recoverInterrupted(host);
        assert.deepEqual(await state(host), before, `after operation ${n} failed`);
      }
    });

    test('may be the last before the agent is killed: the node is complete in the new or the old state', async () => {
      const after = await stateAfter(from, to);
      let outcomes: Record<string, number> = {};
      for (let n = 1; n < MORE_THAN_ENOUGH; n++) {
        const host = await nodeIn(from);
        const before = await state(host);
        const error = await attempt(host, n, 'from then on', from, to);
        const recovery = await recoverInterrupted(host);
        outcomes = { ...outcomes, [recovery.outcome]: (outcomes[recovery.outcome] ?? 0) + 1 };
        if (recovery.outcome === 'committed') {
          assert.deepEqual(recovery.pendingAction, 'then');
          await finishUpdate(host);
          assert.deepEqual(await state(host), after, `killed at operation ${n}`);
        } else assert.deepEqual(await state(host), before, `killed at operation ${n}`);
        if (error === undefined) break;
      }
      assert.ok((outcomes['committed'] ?? 0) > 20 && (outcomes['nothing'] ?? 0) > 3, JSON.stringify(outcomes));
    });

    test('may be the last of a recovery too', async () => {
      const after = await stateAfter(from, to);
      for (let first = 40; first < 80; first += 9) {
        for (let n = 1; n < MORE_THAN_ENOUGH; n += 5) {
          const host = await nodeIn(from);
          const before = await state(host);
          await attempt(host, first, 'from then on', from, to);
          const error = await dying(host, n, 'from then on', recoverInterrupted);
          const recovery = await recoverInterrupted(host);
          if (recovery.outcome === 'committed') await finishUpdate(host);
          assert.deepEqual(await state(host), recovery.outcome === 'committed' ? after : before, `${first}, then ${n}`);
          if (error === undefined) break;
        }
      }
    });

    test('may find the disk full: the node is as it was', async () => {
      const host = await nodeIn(from);
      const before = await state(host);
      for (let n = 1; n < MORE_THAN_ENOUGH; n++) {
        const full = fullFrom(host, n);
        const error = await applyConfig(full, from, to).catch((thrown: unknown) => thrown);
        if (!(error instanceof Error)) break;
        await recoverInterrupted(host);
        assert.deepEqual(await state(host), before, `full from write ${n} on`);
      }
    });
  });
}

test('a file may turn into a directory, and back when the update fails', async () => {
  const host = await nodeIn(OLD);
  const withFile = (path: string): MachineConfig => ({
    metadata: { name: path },
    spec: { config: { ignition: { version: '3.4.0' }, storage: { files: [{ path, contents: DATA(path) }] } } },
  });
  await applyConfig(host, OLD, withFile('/etc/turns'));
  await finishUpdate(host);
  const before = await state(host);
  await applyConfig(host, withFile('/etc/turns'), withFile('/etc/turns/into/directory'));
  assert.equal((await host.files.read('/etc/turns/into/directory'))?.toString(), '/etc/turns/into/directory');
  await revertConfig(host);
  assert.deepEqual(await state(host), before);
});

test('a node that was killed and finds its disk full goes back', async () => {
  const host = await nodeIn(OLD);
  const before = await state(host);
  await attempt(host, 35, 'from then on');
  assert.equal((await recoverInterrupted(fullFrom(host, 1))).outcome, 'reverted');
  assert.deepEqual(await state(host), before);
});

test('an action that was to follow is found after a restart, with whether the machine has rebooted', async () => {
  const host = await nodeIn(OLD);
  await applyConfig(host, OLD, NEW, { pendingAction: 'reboot' });
  assert.deepEqual(await recoverInterrupted(host), {
    outcome: 'committed',
    hasRebooted: false,
    from: OLD,
    to: NEW,
    pendingAction: 'reboot',
  });
  await host.reboot('test');
  const recovery = await recoverInterrupted(host);
  assert.ok(recovery.outcome === 'committed' && recovery.hasRebooted);
  await finishUpdate(host);
  assert.deepEqual(await recoverInterrupted(host), { outcome: 'nothing' });
});

test('a machine that rebooted in the middle of an update has its reboot still before it', async () => {
  const host = await nodeIn(OLD);
  await attempt(host, 45, 'from then on');
  await host.reboot('power failure');
  const recovery = await recoverInterrupted(host);
  assert.ok(recovery.outcome === 'committed' && !recovery.hasRebooted);
});

test('where the system is no image, what only an image can change is told and the rest applied (spec 60, 8.1 step 13)', async () => {
  const host = await nodeIn(OLD);
  const withImage = { ...NEW, spec: { ...NEW.spec, osImageURL: 'image:2', kernelArguments: ['nosmt'] } };
  const told: object[] = [];
  await applyConfig(host, OLD, withImage, { log: { ...silentLog, warn: fields => void told.push(fields) } });
  assert.deepEqual(told, [{ leftOut: ['the OS image', 'kernel arguments'] }]);
  assert.deepEqual((await readStored(host))?.config, withImage);
});

async function stateAfter(from: MachineConfig, to: MachineConfig) {
  const host = await nodeIn(from);
  await applyConfig(host, from, to);
  await finishUpdate(host);
  return state(host);
}

const attempt = (host: Host, n: number, how: 'once' | 'from then on', from = OLD, to = NEW) =>
  dying(host, n, how, dead => applyConfig(dead, from, to, { pendingAction: 'then' }));

/** Nothing new fits onto the disk from the n-th write on; moving and removing still works. */
function fullFrom(host: Host, n: number): Host {
  let writes = 0;
  return observed(host, ({ name }) => {
    if (['files.write', 'files.copy', 'files.makeDirectory'].includes(name) && ++writes >= n)
      throw new HostError('no-space', 'no space left on device');
  });
}

/** Lets the n-th changing operation fail, or everything from there on as if the process had died. */
async function dying(
  host: Host,
  n: number,
  how: 'once' | 'from then on',
  work: (host: Host) => Promise<unknown>,
): Promise<unknown> {
  let count = 0;
  let isDead = false;
  const failing = observed(host, operation => {
    if (!isReading(operation)) count++;
    if (isDead || (count === n && !isReading(operation))) {
      isDead = how === 'from then on';
      count++;
      throw new HostError('io', `operation ${n} (${operation.name}) failed on purpose`);
    }
  });
  try {
    await work(failing);
    return undefined;
  } catch (error) {
    return error;
  }
}
