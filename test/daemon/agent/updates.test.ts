import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { seconds } from '../../../src/kube/duration.ts';
import { mergePolicies } from '../../../src/machine-config-api/disruption-policy.ts';
import type { IgnitionConfig } from '../../../src/machine-config-api/ignition/types.ts';
import { MACHINE_CONFIGURATIONS } from '../../../src/machine-config-api/machine-configuration.ts';
import { config, type RunningAgent, Scene } from './scene.ts';

/** One node that goes from config to config. */
class Journey {
  readonly scene: Scene;
  readonly agent: RunningAgent;
  #files: Record<string, string>;
  #rest: Partial<IgnitionConfig> = {};
  #serial = 0;

  private constructor(scene: Scene, agent: RunningAgent, files: Record<string, string>) {
    this.scene = scene;
    this.agent = agent;
    this.#files = files;
  }

  static async begin(files: Record<string, string>): Promise<Journey> {
    const scene = await Scene.create();
    return new Journey(scene, await scene.start('n', config('rendered-0', files)), files);
  }

  /** Changes files or more, and tells what was asked of the host, whether the node was drained, and which events there were. */
  async change(files: Record<string, string>, rest: Partial<IgnitionConfig> = {}) {
    this.#files = { ...this.#files, ...files };
    this.#rest = { ...this.#rest, ...rest };
    const name = `rendered-${++this.#serial}`;
    this.agent.host.asked.length = this.scene.drains.length = 0;
    const before = await this.scene.told('n');
    await this.scene.target('n', config(name, this.#files, this.#rest));
    await this.scene.isDone('n', name);
    const isDrained = this.scene.drains.includes(`drain-${name}`);
    assert.deepEqual(this.scene.drains, [...(isDrained ? [`drain-${name}`] : []), `uncordon-${name}`]);
    const told = [...(await this.scene.told('n'))];
    const events = told.filter(([reason, count]) => count > (before.get(reason) ?? 0)).map(([reason]) => reason);
    return { name, asked: [...this.agent.host.asked], isDrained, events };
  }
}

const REGISTRIES = '/etc/containers/registries.conf';
const BASE_REGISTRIES = 'unqualified-search-registries = ["a.example"]\n';
const SAFE_REGISTRIES = `unqualified-search-registries = ["a.example", "b.example"]
[[registry]]
location = "r.example"
mirror-by-digest-only = true
`;

describe('every optimised update of seed 003, and the action that follows it', () => {
  let journey: Journey;
  before(async () => {
    journey = await Journey.begin({ '/etc/base': 'base', [REGISTRIES]: BASE_REGISTRIES });
  });
  after(() => journey.scene.close());

  interface Case {
    readonly what: string;
    readonly files?: Record<string, string>;
    readonly rest?: Partial<IgnitionConfig>;
    readonly asked: readonly string[];
    readonly isDrained?: boolean;
    readonly event?: string;
  }
  const cases: readonly Case[] = [
    {
      what: 'SSH keys: nothing',
      rest: { passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA a'] }] } },
      asked: [],
      event: 'SkipReboot',
    },
    {
      what: 'the CA of the kubelet: nothing',
      files: { '/etc/kubernetes/kubelet-ca.crt': 'ca' },
      asked: [],
      event: 'SkipReboot',
    },
    {
      what: 'pull secret: nothing',
      files: { '/var/lib/kubelet/config.json': '{"auths":{}}' },
      asked: [],
      event: 'SkipReboot',
    },
    { what: 'nmstate: nothing', files: { '/etc/nmstate/openshift/a.yml': 'a' }, asked: [], event: 'SkipReboot' },
    {
      what: 'additions to registries.conf: reload, no drain',
      files: { [REGISTRIES]: SAFE_REGISTRIES },
      asked: ['reload crio.service'],
      event: 'SkipReboot',
    },
    {
      what: 'removals from registries.conf: drain and reload',
      files: { [REGISTRIES]: BASE_REGISTRIES },
      asked: ['reload crio.service'],
      isDrained: true,
    },
    {
      what: 'GPG keys: reload',
      files: { '/etc/machine-config-daemon/no-reboot/containers-gpg.pub': 'k' },
      asked: ['reload crio.service'],
    },
    {
      what: 'signature policy: reload',
      files: { '/etc/containers/policy.json': '{}' },
      asked: ['reload crio.service'],
    },
    {
      what: 'registries.d: reload',
      files: { '/etc/containers/registries.d/x.yaml': 'x' },
      asked: ['reload crio.service'],
    },
    {
      what: "the user's CA bundle: restart",
      files: { '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt': 'ca' },
      asked: ['update-ca-trust', 'restart crio.service'],
    },
  ];
  for (const { what, files = {}, rest, asked, isDrained = false, event } of cases) {
    test(what, async () => {
      const found = await journey.change(files, rest);
      assert.deepEqual([found.asked, found.isDrained], [asked, isDrained]);
      assert.ok(event === undefined || found.events.includes(event), found.events.join());
      for (const [path, text] of Object.entries(files)) {
        if (path.endsWith('kubelet-ca.crt')) continue;
        assert.equal((await journey.agent.host.files.read(path))?.toString(), text);
      }
    });
  }

  test('anything else: drain and reboot, and afterwards Done and uncordoned', async () => {
    const { asked, isDrained, events, name } = await journey.change({ '/etc/other': 'x' });
    assert.deepEqual([asked, isDrained], [[`reboot: Node will reboot into config ${name}`], true]);
    const wanted = ['Cordon', 'Drain', 'Reboot', 'Uncordon', 'NodeDone', 'ConfigDriftMonitorStarted'];
    assert.deepEqual(
      wanted.filter(reason => !events.includes(reason)),
      [],
    );
  });

  test('a unit: drain and reboot; the unit is there and enabled', async () => {
    const contents = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
    const { asked, isDrained } = await journey.change(
      {},
      { systemd: { units: [{ name: 'a.service', enabled: true, contents }] } },
    );
    assert.deepEqual([asked.length, isDrained], [1, true]);
    assert.equal(await journey.agent.host.services.isEnabled('a.service'), 'enabled');
  });

  test('a handful of events is in the operator namespace and about the node', async () => {
    const events = await journey.scene.events('n');
    assert.deepEqual([...new Set(events.map(({ namespace }) => namespace))], ['openshift-machine-config-operator']);
  });
});

describe('disruption policies of the cluster', () => {
  let journey: Journey;
  before(async () => {
    journey = await Journey.begin({ '/etc/base': 'base' });
    const { kube } = journey.scene;
    const nodeDisruptionPolicy = {
      files: [
        {
          path: '/etc/chrony.conf',
          actions: [{ type: 'Restart' as const, restart: { serviceName: 'chronyd.service' } }],
        },
        {
          path: '/etc/drained',
          actions: [
            { type: 'Drain' as const },
            { type: 'Reload' as const, reload: { serviceName: 'chronyd.service' } },
          ],
        },
      ],
      units: [{ name: 'a.service', actions: [{ type: 'DaemonReload' as const }] }],
    };
    const created = await kube.create(MACHINE_CONFIGURATIONS, {
      metadata: { name: 'cluster' },
      spec: { managementState: 'Managed', nodeDisruptionPolicy },
    });
    const clusterPolicies = mergePolicies(nodeDisruptionPolicy);
    await kube.updateStatus(MACHINE_CONFIGURATIONS, {
      ...created,
      status: { nodeDisruptionPolicyStatus: { clusterPolicies } },
    });
  });
  after(() => journey.scene.close());

  test('a restart instead of a reboot', async () => {
    const { asked, isDrained, events } = await journey.change({ '/etc/chrony.conf': 'pool' });
    assert.deepEqual([asked, isDrained], [['restart chronyd.service'], false]);
    assert.ok(events.includes('ServiceRestart'));
  });

  test('a drain, then a reload', async () => {
    const { asked, isDrained } = await journey.change({ '/etc/drained': 'x' });
    assert.deepEqual([asked, isDrained], [['reload chronyd.service'], true]);
  });

  test('a unit that only systemd has to read again', async () => {
    const contents = '[Service]\nExecStart=/bin/true\n';
    const { asked } = await journey.change({}, { systemd: { units: [{ name: 'a.service', contents }] } });
    assert.deepEqual(asked, ['daemon-reload']);
  });

  test('what no policy names is a reboot', async () => {
    assert.match((await journey.change({ '/etc/unknown': 'x' })).asked.join(), /^reboot: /);
  });
});

describe('changes that cannot be made in place', () => {
  let scene: Scene;
  let agent: RunningAgent;
  before(async () => {
    scene = await Scene.create();
    agent = await scene.start('n', config('rendered-0', { '/etc/base': 'base' }));
  });
  after(() => scene.close());

  const file = (path: string, extra: object = {}) => ({ storage: { files: [{ path, ...extra }] } });
  const refused: [string, object, RegExp][] = [
    ['users', { passwd: { users: [{ name: 'eve', sshAuthorizedKeys: ['k'] }] } }, /non-core user/],
    [
      'a shell for core',
      { passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k'], shell: '/bin/zsh' }] } },
      /shell/,
    ],
    ['groups', { passwd: { groups: [{ name: 'g' }] } }, /Groups/],
    ['directories', { storage: { directories: [{ path: '/d' }] } }, /directories/],
    ['filesystems', { storage: { filesystems: [{ device: '/dev/x', format: 'xfs' }] } }, /filesystems/],
    ['links', { storage: { links: [{ path: '/l', target: '/t' }] } }, /links/],
    ['disks', { storage: { disks: [{ device: '/dev/x' }] } }, /disks/],
    ['raid', { storage: { raid: [{ name: 'r', level: 'raid1', devices: ['/dev/a', '/dev/b'] }] } }, /raid/],
    ['kernel arguments of Ignition', { kernelArguments: { shouldExist: ['a'] } }, /kargs/],
    ['appending to a file', file('/etc/a', { append: [{ source: 'data:,x' }] }), /append/],
    ['the force file', file('/run/machine-config-daemon-force'), /machine-config-daemon-force/],
    ['a path that is not clean', file('/etc/../../outside'), /path|clean/i],
    ['a relative path', file('etc/a'), /path|absolute/i],
    ['a path twice', { storage: { files: [{ path: '/a' }, { path: '/a' }] } }, /duplicate|twice|unique|already/i],
    ['a remote source', file('/etc/a', { contents: { source: 'ftp://x' } }), /scheme|source/i],
    ['a unit name with a slash', { systemd: { units: [{ name: '../a.service', contents: '[Unit]' }] } }, /unit|name/i],
    ['an unknown version', { ignition: { version: '9.9.9' } }, /version/],
    ['FIPS', {}, /FIPS/],
  ];
  for (const [index, [what, document, reason]] of refused.entries()) {
    test(`${what}: refused, with the reason on the node and nothing written`, async () => {
      const wanted = config(`refused-${index}`, { '/etc/base': 'base' });
      const base = wanted.spec?.config as Record<string, object>;
      const given = document as Record<string, object>;
      const { files = [], ...storage } = (given['storage'] ?? {}) as { files?: object[] };
      const joined = {
        ...base,
        ...given,
        storage: { files: [...(base['storage'] as { files: object[] }).files, ...files], ...storage },
      };
      wanted.spec = {
        config: joined,
        ...(what === 'FIPS' && { fips: true }),
      };
      const before = JSON.stringify(await agent.host.files.list('/etc'));
      await scene.target('n', wanted);
      const why = await scene.fails('n', 'Unreconcilable');
      assert.ok(why.startsWith(`can't reconcile config rendered-0 with refused-${index}: `), why);
      assert.match(why, reason);
      assert.equal(JSON.stringify(await agent.host.files.list('/etc')), before);
      assert.deepEqual(agent.host.asked, []);
      assert.ok((await scene.events('n')).some(event => event.reason === 'FailedToReconcile' && event.message === why));
      // Back where it is, it is well again without a drain or a reboot.
      await scene.annotate('n', { 'machineconfiguration.openshift.io/desiredConfig': 'rendered-0' });
      await scene.isDone('n', 'rendered-0');
      await scene.cluster.pass(seconds(2));
    });
  }
});
