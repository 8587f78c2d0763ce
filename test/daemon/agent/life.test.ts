import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { ClusterRole, ClusterRoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import type { EmbeddedKube } from '../../../src/api/api.ts';
import { readStored } from '../../../src/daemon/apply/stored.ts';
import { INITIAL_ANNOTATIONS, INITIAL_ANNOTATIONS_BACKUP } from '../../../src/daemon/decide/start-up.ts';
import { hours, minutes, seconds } from '../../../src/kube/duration.ts';
import { ConnectionError } from '../../../src/kube/error.ts';
import { NODES, POD_DISRUPTION_BUDGETS, PODS, resource } from '../../../src/kube/resource.ts';
import { certificate } from '../../../src/machine-config/testing.ts';
import { CONTROLLER_CONFIGS } from '../../../src/machine-config-api/controller-config.ts';
import { CURRENT_CONFIG, DAEMON_STATE, DESIRED_CONFIG, SSH_ACCESS } from '../../../src/machine-config-api/names.ts';
import { config, machine, nodeUser, Scene, WORKER } from './scene.ts';

const FORCE_FILE = '/run/machine-config-daemon-force';
const A = () => config('rendered-a', { '/etc/base': 'a', '/etc/empty': '' });
const B = () => config('rendered-b', { '/etc/base': 'b', '/etc/empty': '' });

describe('the life of an agent', () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.create();
  });
  afterEach(() => scene.close());

  const metric = async (agent: { registry: { metrics(): Promise<string> } }, name: string) =>
    (await agent.registry.metrics())
      .split('\n')
      .filter(line => line.startsWith(name))
      .join('\n');
  const text = async (host: { files: { read(path: string): Promise<Buffer | undefined> } }, path: string) =>
    (await host.files.read(path))?.toString();

  describe('drift', () => {
    const mutations: [string, (host: Awaited<ReturnType<typeof machine>>) => Promise<void>, RegExp][] = [
      ['content', host => host.files.write('/etc/base', Buffer.from('x')), /content mismatch for file "\/etc\/base"/],
      ['mode', host => host.files.chmod('/etc/base', 0o600), /mode mismatch for file: "\/etc\/base"/],
      ['removal', host => host.files.remove('/etc/base'), /could not stat file "\/etc\/base"/],
      ['rename', host => host.files.rename('/etc/base', '/etc/elsewhere'), /could not stat/],
    ];
    for (const [what, mutate, reason] of mutations) {
      test(`${what}: Degraded with the reason, event and metric; mended by hand it is Done without a reboot`, async () => {
        const agent = await scene.start('n', A());
        await mutate(agent.host);
        const why = await scene.fails('n', 'Degraded');
        assert.match(why, /^unexpected on-disk state validating against rendered-a: /);
        assert.match(why, reason);
        assert.ok((await scene.told('n')).has('ConfigDriftDetected'));
        assert.doesNotMatch(await metric(agent, 'mcd_config_drift'), / 0$/);
        assert.match(await metric(agent, 'mcd_state'), /Degraded/);
        await agent.host.files.write('/etc/base', Buffer.from('a'), { mode: 0o644 });
        await scene.isDone('n', 'rendered-a');
        assert.match(await metric(agent, 'mcd_config_drift'), / 0$/);
        assert.deepEqual(agent.host.asked, []);
      });
    }

    test('a touch is none, nor is a file beside', async () => {
      const agent = await scene.start('n', A());
      await agent.host.files.write('/etc/base', Buffer.from('a'));
      await agent.host.files.write('/etc/beside', Buffer.from('x'));
      await scene.cluster.pass(minutes(1));
      assert.equal((await scene.annotations('n'))[DAEMON_STATE], 'Done');
    });

    test('a unit that is disabled, and a key that nobody gave', async () => {
      const contents = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
      const units = [{ name: 'a.service', enabled: true, contents }];
      const users = [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA a'] }];
      const { host } = await scene.start(
        'n',
        config('rendered-a', { '/etc/base': 'a' }, { systemd: { units }, passwd: { users } }),
      );
      await host.services.disable(['a.service']);
      assert.match(await scene.fails('n', 'Degraded'), /unit "a.service": expected: enabled; received: disabled/);
      await host.services.enable(['a.service']);
      await scene.isDone('n', 'rendered-a');
      await host.files.write(
        '/home/core/.ssh/authorized_keys',
        Buffer.from('ssh-ed25519 AAAA a\nssh-ed25519 EVIL e\n'),
      );
      assert.match(await scene.fails('n', 'Degraded'), /1 are not from the config/);
    });

    test('an update does not begin on a disk that is not known, and goes on when it is mended', async () => {
      const agent = await scene.start('n', A());
      await agent.host.files.write('/etc/base', Buffer.from('x'));
      await scene.fails('n', 'Degraded');
      await scene.target('n', B());
      await scene.until('the update was refused', async () =>
        (await scene.told('n')).has('PreflightConfigDriftCheckFailed'),
      );
      assert.equal(await text(agent.host, '/etc/base'), 'x');
      await agent.host.files.write('/etc/base', Buffer.from('a'));
      await scene.isDone('n', 'rendered-b');
    });

    test('with the force file everything is written again, and the node rebooted', async () => {
      const agent = await scene.start('n', A());
      await agent.host.files.write('/etc/base', Buffer.from('x'));
      await scene.fails('n', 'Degraded');
      await agent.host.files.write(FORCE_FILE, Buffer.alloc(0));
      await scene.isDone('n', 'rendered-a');
      assert.equal(await text(agent.host, '/etc/base'), 'a');
      assert.deepEqual(agent.host.asked, ['reboot: Node will reboot into config rendered-a']);
      assert.equal(await agent.host.files.stat(FORCE_FILE), undefined);
      assert.ok(scene.drains.includes('drain-rendered-a'));
    });
  });

  test('a login session annotates the node, one from before the start too, and counts', async () => {
    const agent = await scene.start('n', A());
    assert.equal((await scene.annotations('n'))[SSH_ACCESS], undefined);
    await agent.host.files.write('/run/systemd/sessions/3', Buffer.from('USER=core\nREMOTE=1\n'));
    await scene.until('the node says so', async () => (await scene.annotations('n'))[SSH_ACCESS] === 'accessed');
    assert.match(await metric(agent, 'ssh_accesses_total'), / 1$/);
    assert.equal((await scene.annotations('n'))[DAEMON_STATE], 'Done');
  });

  test('an action that fails takes the update back; when it works the update is made', async () => {
    let isBroken = true;
    const host = await machine({
      onService: verb => {
        if (isBroken && verb === 'reload') throw new Error('crio is not well');
      },
    });
    const agent = await scene.start('n', A(), host);
    await scene.target(
      'n',
      config('rendered-b', { '/etc/base': 'a', '/etc/empty': '', '/etc/containers/policy.json': '{}' }),
    );
    assert.match(await scene.fails('n', 'Degraded'), /systemctl reload crio failed: crio is not well/);
    assert.equal(await agent.host.files.stat('/etc/containers/policy.json'), undefined);
    assert.equal((await readStored(agent.host))?.config.metadata?.name, 'rendered-a');
    assert.ok((await scene.told('n')).has('FailedServiceReload'));
    isBroken = false;
    await scene.isDone('n', 'rendered-b');
    assert.equal(await text(agent.host, '/etc/containers/policy.json'), '{}');
  });

  test('a machine that refuses to reboot keeps what it had', async () => {
    let isBroken = true;
    const host = await machine({
      onReboot: async () => {
        if (isBroken) throw new Error('no');
        await host.files.write('/run/rotunda/boot-id', Buffer.from('another\n'));
      },
    });
    const agent = await scene.start('n', A(), host);
    await scene.target('n', B());
    await scene.fails('n', 'Degraded');
    assert.equal(await text(host, '/etc/base'), 'a');
    assert.match(await metric(agent, 'mcd_reboots_failed_total'), / [1-9]/);
    isBroken = false;
    await scene.isDone('n', 'rendered-b');
  });

  test('a restart between commit and reboot reboots after all (D-41)', async () => {
    const host = await machine({ onReboot: () => {} });
    const agent = await scene.start('n', A(), host);
    await scene.target('n', B());
    await scene.until('a reboot is queued', () => host.asked.length > 0);
    await scene.cluster.pass(minutes(5));
    assert.equal((await scene.annotations('n'))['machineconfiguration.openshift.io/post-config-action'], 'Rebooting');
    assert.equal((await scene.annotations('n'))[DAEMON_STATE], 'Working');
    assert.equal(host.asked.length, 1);
    await agent.stop();
    scene.run('n', host);
    await scene.until('it is asked for again', () => host.asked.length === 2);
    await host.files.write('/run/rotunda/boot-id', Buffer.from('after the reboot\n'));
    await scene.cluster.pass(minutes(31));
    await scene.isDone('n', 'rendered-b');
    assert.equal((await scene.annotations('n'))['machineconfiguration.openshift.io/post-config-action'], '');
  });

  test('a reboot that ends the agent before it has heard of it takes nothing back', async () => {
    let ending: Promise<void> | undefined;
    const host = await machine({
      onReboot: () => {
        ending = agent.stop();
        throw new Error('systemd-run was ended by a signal');
      },
    });
    const agent = await scene.start('n', A(), host);
    await scene.target('n', B());
    await scene.until('a reboot is asked for', () => ending !== undefined);
    await ending;
    assert.equal(await text(host, '/etc/base'), 'b');
    await host.files.write('/run/rotunda/boot-id', Buffer.from('after the reboot\n'));
    scene.run('n', host);
    await scene.isDone('n', 'rendered-b');
    assert.equal(host.asked.length, 1, 'one reboot');
  });

  test('certificates are written whatever state the node is in, and their problems do not make it flap', async () => {
    const { host } = await scene.start('n', A());
    await scene.target('n', config('rendered-x', {}, { storage: { disks: [{ device: '/dev/x' }] } }));
    await scene.fails('n', 'Unreconcilable');
    const bundle = await certificate('kubelet-ca');
    const base = {
      kubeAPIServerServingCAData: Buffer.from(bundle).toString('base64'),
      internalRegistryPullSecret: Buffer.from('{"auths":{}}').toString('base64'),
    };
    const name = 'machine-config-controller';
    await scene.kube.create(CONTROLLER_CONFIGS, {
      metadata: { name },
      spec: { ...base, clusterDNSIP: '10.0.0.10', releaseImage: 'r' },
    });
    const setSpec = (spec: object) => scene.kube.patch(CONTROLLER_CONFIGS, { name }, { type: 'merge', body: { spec } });
    await scene.until(
      'the bundle is on the disk',
      async () => (await text(host, '/etc/kubernetes/kubelet-ca.crt')) === bundle,
    );
    await scene.annotate('n', { [DESIRED_CONFIG]: 'rendered-a' });
    await scene.isDone('n', 'rendered-a');
    // A node without a role has no pull secret to merge: Degraded, but updates go on.
    await scene.kube.patch(
      NODES,
      { name: 'n' },
      { type: 'merge', body: { metadata: { labels: { 'node-role.kubernetes.io/worker': null } } } },
    );
    await setSpec({ internalRegistryPullSecret: Buffer.from('nonsense').toString('base64') });
    await scene.fails('n', 'Degraded');
    await scene.target('n', B());
    await scene.until(
      'the update is made',
      async () => (await scene.annotations('n'))[CURRENT_CONFIG] === 'rendered-b',
    );
    assert.equal((await scene.annotations('n'))[DAEMON_STATE], 'Degraded');
    await scene.kube.patch(NODES, { name: 'n' }, { type: 'merge', body: { metadata: { labels: WORKER } } });
    await setSpec(base);
    await scene.isDone('n', 'rendered-b');
  });

  test('an API that is away degrades nothing; the update goes on when it is back', async () => {
    const host = await machine();
    await scene.create(A());
    await scene.install(host, A());
    await scene.cluster.addNode('n', WORKER, 'rendered-a');
    let isAway = false;
    const states = new Set<string>();
    const api = scene.api(() => {
      if (isAway) throw new ConnectionError('ECONNREFUSED', 'nobody answers');
    });
    scene.run('n', host, api);
    await scene.isDone('n', 'rendered-a');
    await scene.target('n', B());
    for (let round = 0; round < 20; round++) {
      isAway = round % 2 === 0;
      await scene.cluster.pass(seconds(7));
      states.add((await scene.annotations('n'))[DAEMON_STATE] ?? '');
    }
    isAway = false;
    await scene.isDone('n', 'rendered-b');
    assert.ok(!states.has('Degraded'), [...states].join());
  });

  test('a drain that takes too long is told; when the pod is gone the update goes on', async () => {
    const agent = await scene.start('n', A());
    await scene.kube.create(PODS, {
      metadata: { namespace: 'default', name: 'guarded', labels: { app: 'guarded' } },
      spec: { nodeName: 'n', terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] },
    });
    const pod = await scene.kube.get(PODS, { namespace: 'default', name: 'guarded' });
    await scene.kube.updateStatus(PODS, {
      ...pod,
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    });
    await scene.kube.create(POD_DISRUPTION_BUDGETS, {
      metadata: { namespace: 'default', name: 'guard' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } },
    });
    await scene.target('n', B());
    await scene.cluster.pass(hours(1) + minutes(2));
    assert.match(await scene.fails('n', 'Degraded'), /^failed to drain node: n after 1 hour/);
    assert.ok((await scene.told('n')).has('FailedToDrain'));
    assert.equal(await text(agent.host, '/etc/base'), 'a');
    await scene.kube.delete(POD_DISRUPTION_BUDGETS, { namespace: 'default', name: 'guard' });
    await scene.isDone('n', 'rendered-b');
  });

  test('SIGTERM in the middle of a drain ends the agent at once, and the next one goes on', async () => {
    const agent = await scene.start('n', A());
    await scene.target('n', B());
    await scene.until('a drain is asked for', () => scene.drains.includes('drain-rendered-b'));
    const before = scene.cluster.clock.now().getTime();
    await agent.stop();
    assert.ok(scene.cluster.clock.now().getTime() - before < seconds(30));
    assert.equal(await text(agent.host, '/etc/base'), 'a');
    scene.run('n', agent.host);
    await scene.isDone('n', 'rendered-b');
  });

  test('another target during the drain is taken instead of the first one', async () => {
    const agent = await scene.start('n', A());
    await scene.target('n', B());
    await scene.until('a drain is asked for', () => scene.drains.includes('drain-rendered-b'));
    await scene.target('n', config('rendered-c', { '/etc/base': 'c' }));
    await scene.isDone('n', 'rendered-c');
    assert.deepEqual(agent.host.asked, ['reboot: Node will reboot into config rendered-c']);
  });

  test('a config that is missing is said and counted, and taken when it comes', async () => {
    const agent = await scene.start('n', A());
    await scene.annotate('n', { [DESIRED_CONFIG]: 'rendered-b' });
    assert.equal(await scene.fails('n', 'Degraded'), 'missing MachineConfig rendered-b');
    assert.match(await metric(agent, 'mcd_missing_mc'), /mc="rendered-b"} 1/);
    await scene.create(B());
    await scene.isDone('n', 'rendered-b');
    assert.equal(await metric(agent, 'mcd_missing_mc'), '');
  });

  describe('the start', () => {
    test('a new machine takes its annotations from the file the config server gave it', async () => {
      const host = await machine();
      await scene.install(host, A());
      await host.files.remove('/etc/machine-config-daemon/currentconfig');
      const initial = { [CURRENT_CONFIG]: 'rendered-a', [DESIRED_CONFIG]: 'rendered-a', [DAEMON_STATE]: 'Done' };
      await host.files.write(INITIAL_ANNOTATIONS, Buffer.from(JSON.stringify(initial)));
      await scene.create(A());
      await scene.cluster.addNode('n', WORKER);
      scene.run('n', host);
      await scene.isDone('n', 'rendered-a');
      assert.equal((await readStored(host))?.config.metadata?.name, 'rendered-a');
      assert.equal(await host.files.stat(INITIAL_ANNOTATIONS), undefined);
      assert.notEqual(await host.files.stat(INITIAL_ANNOTATIONS_BACKUP), undefined);
    });

    test('the disk beats annotations, as after a restored backup of etcd', async () => {
      const host = await machine();
      for (const each of [A(), B()]) await scene.create(each);
      await scene.install(host, B());
      await scene.cluster.addNode('n', WORKER, 'rendered-a');
      scene.run('n', host);
      await scene.isDone('n', 'rendered-a');
      assert.deepEqual(host.asked, ['reboot: Node will reboot into config rendered-a']);
      assert.equal(await text(host, '/etc/base'), 'a');
    });

    test('a disk that is not what it should be is Degraded until somebody mends it', async () => {
      const host = await machine();
      await scene.create(A());
      await scene.install(host, A());
      await host.files.write('/etc/base', Buffer.from('x'));
      await scene.cluster.addNode('n', WORKER, 'rendered-a');
      scene.run('n', host);
      assert.match(await scene.fails('n', 'Degraded'), /content mismatch/);
      assert.ok((await scene.told('n')).has('OnDiskStateValidationFailed'));
      await host.files.write('/etc/base', Buffer.from('a'));
      await scene.isDone('n', 'rendered-a');
    });

    test('a Node that is made anew is managed again', async () => {
      await scene.start('n', A());
      await scene.kube.delete(NODES, { name: 'n' });
      await scene.cluster.pass(seconds(5));
      await scene.cluster.addNode('n', WORKER);
      await scene.annotate('n', { [DESIRED_CONFIG]: 'rendered-a' });
      await scene.isDone('n', 'rendered-a');
    });
  });

  test("reads with the agent's account, writes with the node's: neither can touch another node", async () => {
    const admin = scene.kube as EmbeddedKube;
    const roles = resource<ClusterRole>('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles', false);
    const bindings = resource<ClusterRoleBinding>(
      'rbac.authorization.k8s.io/v1',
      'ClusterRoleBinding',
      'clusterrolebindings',
      false,
    );
    const read = ['get', 'list', 'watch'];
    await admin.create(roles, {
      metadata: { name: 'machine-config-daemon' },
      rules: [
        { apiGroups: [''], resources: ['configmaps'], verbs: read },
        { apiGroups: ['machineconfiguration.openshift.io', 'operator.openshift.io'], resources: ['*'], verbs: read },
        { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
      ],
    });
    await admin.create(bindings, {
      metadata: { name: 'machine-config-daemon' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'machine-config-daemon' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'daemon' }],
    });
    const host = await machine();
    for (const each of [A(), B()]) await scene.create(each);
    await scene.install(host, A());
    await scene.cluster.addNode('n', WORKER, 'rendered-a');
    await scene.cluster.addNode('other', WORKER, 'rendered-a');
    const account = admin.as({ name: 'daemon', uid: '', groups: ['system:authenticated'], extra: {} });
    const node = admin.as(nodeUser('n'));
    scene.run('n', host, account, node);
    await scene.isDone('n', 'rendered-a');
    await scene.annotate('n', { [DESIRED_CONFIG]: 'rendered-b' });
    await scene.isDone('n', 'rendered-b');
    const body = { metadata: { annotations: { [DAEMON_STATE]: 'Degraded' } } };
    for (const [kube, name] of [
      [account, 'n'],
      [account, 'other'],
      [node, 'other'],
    ] as const) {
      await assert.rejects(kube.patch(NODES, { name }, { type: 'merge', body }), /forbidden|not allowed/i);
    }
  });
});
