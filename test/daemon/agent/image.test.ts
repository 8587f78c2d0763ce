import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { HostOs } from '../../../src/host/port.ts';
import { seconds } from '../../../src/kube/duration.ts';
import { NODES } from '../../../src/kube/resource.ts';
import { CURRENT_IMAGE, DESIRED_IMAGE, OSTREE_FINALIZE_FAILURE } from '../../../src/machine-config-api/names.ts';
import { config, machine, type RunningAgent, Scene } from './scene.ts';

const FILE = { '/etc/base': 'base' };

/** A machine whose system is an image: what is staged is booted with the next reboot. */
async function imageMachine() {
  const asked: string[] = [];
  const state = { booted: 'image:0', staged: undefined as string | undefined, finalizeFailure: '' };
  const os: HostOs = {
    tool: 'rpm-ostree',
    booted: async () => ({ image: state.booted, commit: 'c', version: 'v', layeredPackages: [] }),
    async rebase(image) {
      state.staged = image;
    },
    kernelArguments: async () => [],
    async changeKernelArguments() {},
    async changePackages() {},
    async discardStaged() {
      state.staged = undefined;
    },
    removeRollback: async () => void asked.push('remove rollback'),
    finalizeFailure: async () => state.finalizeFailure,
    flushEachObject: async () => void asked.push('flush each object'),
  };
  const host = await machine({ os });
  await host.files.write('/etc/os-release', Buffer.from('ID=rhcos\nVARIANT_ID=coreos\nRHEL_VERSION=9.2\n'));
  const reboot = async (rationale: string) => {
    state.booted = state.staged ?? state.booted;
    state.staged = undefined;
    await host.reboot(rationale);
  };
  return { host: { ...host, reboot }, asked, state };
}

describe('a machine whose system is an image', () => {
  let scene: Scene;
  let agent: RunningAgent;
  let node: Awaited<ReturnType<typeof imageMachine>>;
  before(async () => {
    scene = await Scene.create();
    node = await imageMachine();
    agent = await scene.start('n', config('rendered-0', FILE), node.host);
    await scene.until('it has been looked at', async () => (await scene.told('n')).has('ConfigDriftMonitorStarted'));
  });
  after(() => scene.close());

  test('the deployment before is removed at the start (5.3.6)', () => {
    assert.deepEqual(node.asked, ['remove rollback']);
  });

  test('a layered image is drained for and rebooted into, and so is every change after it (8.10)', async () => {
    await scene.annotate('n', { [DESIRED_IMAGE]: 'layered:1' });
    await scene.until('it is in the image', async () => (await scene.annotations('n'))[CURRENT_IMAGE] === 'layered:1');
    assert.equal(node.state.booted, 'layered:1');
    agent.host.asked.length = scene.drains.length = 0;
    // A change that needs nothing of the kind without a layered image.
    await scene.target('n', config('rendered-1', { ...FILE, '/var/lib/kubelet/config.json': '{}' }));
    await scene.isDone('n', 'rendered-1');
    assert.deepEqual(scene.drains, ['drain-rendered-1', 'uncordon-rendered-1']);
    assert.deepEqual(agent.host.asked, ['reboot: Node will reboot into image layered:1 / MachineConfig rendered-1']);
  });

  test('a deployment that was not finalized is told on the node, once, and taken back when all is well (5.3.5)', async () => {
    const count = async (reason: string) => (await scene.told('n')).get(reason) ?? 0;
    const restarted = async () => {
      await agent.stop();
      // Events are named after the time.
      await scene.cluster.pass(seconds(2));
      node.asked.length = 0;
      agent = scene.run('n', agent.host);
      // What comes next at the start.
      await scene.until('it has been told', () => node.asked.includes('remove rollback'));
    };
    const said = async () => (await scene.annotations('n'))[OSTREE_FINALIZE_FAILURE];
    node.state.finalizeFailure = 'error: no space left';
    await restarted();
    await scene.until('there is an event', async () => (await count('FailedFinalization')) === 1);
    await restarted();
    assert.equal(await said(), 'error: no space left');
    assert.equal(await count('FailedFinalization'), 1);

    await agent.stop();
    await agent.host.files.write('/etc/base', Buffer.from('other'));
    agent = scene.run('n', agent.host);
    assert.match(await scene.fails('n', 'Degraded'), /content mismatch.*; possible root cause: error: no space left$/);
    await agent.host.files.write('/etc/base', Buffer.from('base'));
    node.state.finalizeFailure = '';
    await restarted();
    assert.equal(await said(), '');
  });

  test('beside etcd each object is flushed (5.2.4)', async () => {
    assert.ok(!node.asked.includes('flush each object'));
    const labels = { 'node-role.kubernetes.io/master': '' };
    await agent.stop();
    await scene.kube.patch(NODES, { name: 'n' }, { type: 'merge', body: { metadata: { labels } } });
    agent = scene.run('n', agent.host);
    await scene.until('it is asked for', () => node.asked.includes('flush each object'));
  });
});
