/** The real command on machines with a booted systemd: what it asks of services, reboots and logins really happens (spec 60). */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Kubeconfig } from '../../../src/daemon/certificates/kubeconfig.ts';
import { BOOTSTRAP_KUBECONFIG, KUBELET_CA, LIVE_KUBECONFIG } from '../../../src/daemon/certificates/paths.ts';
import { certificate } from '../../../src/machine-config/testing.ts';
import type { IgnitionConfig } from '../../../src/machine-config-api/ignition/types.ts';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import {
  DAEMON_REASON,
  DAEMON_STATE,
  DESIRED_DRAIN,
  ROLE_LABEL,
  SERVER_CA_DIGEST,
  SSH_ACCESS,
} from '../../../src/machine-config-api/names.ts';
import { freePort } from '../../tools/free-ports.ts';
import { nodeRoot, SystemdCluster } from './cluster.ts';
import type { SystemdNode } from './node.ts';

/** What `chpasswd -e` takes; nobody knows a password for it. */
const PASSWORD_HASH = `$6$salt$${'x'.repeat(86)}`;
const { root, missing } = await nodeRoot();

describe('nodes with systemd', { skip: missing ?? false }, () => {
  let cluster: SystemdCluster;
  let nodes: SystemdNode[] = [];
  let booted = 0;

  before(async () => {
    cluster = await SystemdCluster.start(root);
    await cluster.setMaxUnavailable(2);
    nodes = [
      await cluster.addNode('worker-0', { slowToHear: true }),
      await cluster.addNode('worker-1', { contained: true }),
    ];
    booted = performance.now();
    // Where this fails there is no need to wait for anything else.
    await areDone(await cluster.config(await cluster.wanted()));
    booted = performance.now() - booted;
  });
  after(() => cluster?.close());

  /** The same for every node, all at once. */
  const onEach = async <T>(work: (node: SystemdNode) => Promise<T>) => Promise.all(nodes.map(work));
  const bootIds = () => onEach(node => node.bootId());
  const active = (unit: string) => onEach(node => node.property(unit, 'ActiveState'));
  const read = (path: string) => nodes.map(node => node.read(path));
  /** What a service writes comes when the shell in it has its turn, which may be after systemd has said that it runs. */
  const written = (path: string, lengths: readonly number[]) =>
    onEach(node => node.until(`it is in ${path}`, () => node.read(path).length >= (lengths[nodes.indexOf(node)] ?? 0)));

  /** Rolls a MachineConfig out; every disk is what it says then. Gives the boots there were before. */
  const roll = async (name: string, config: Omit<IgnitionConfig, 'ignition'>): Promise<string[]> => {
    const before = await bootIds();
    await areDone(await cluster.change(machineConfig(name, config)));
    return before;
  };
  const areDone = async (rendered: MachineConfig) => {
    await onEach(node => node.isDone(rendered));
    assert.deepEqual(await onEach(node => node.drift(rendered)), [undefined, undefined]);
  };

  test('a new machine is what the machine-config server said, with everything running', async t => {
    t.diagnostic(`two machines booted and Done after ${Math.round(booted)} ms`);
    for (const unit of ['kubelet', 'crio', 'telemetry', 'machine-config-daemon'])
      assert.deepEqual(await active(`${unit}.service`), ['active', 'active'], unit);
    assert.deepEqual(await onEach(node => node.machine.output('systemctl', '--failed', '--no-legend')), ['', '']);
  });

  describe('units that a reboot brings into force', () => {
    const TICKER = `[Service]\nExecStart=${shell('echo one >>/var/log/ticker; exec sleep infinity')}\n[Install]\nWantedBy=multi-user.target\n`;

    test('one that is new is started, one is masked, one has a drop-in; the machine really reboots', async t => {
      const began = performance.now();
      const before = await roll('99-units', {
        systemd: {
          units: [
            { name: 'ticker.service', enabled: true, contents: TICKER },
            { name: 'telemetry.service', mask: true },
            {
              name: 'crio.service',
              dropins: [{ name: '10-test.conf', contents: '[Service]\nEnvironment=TEST=yes\n' }],
            },
          ],
        },
      });
      t.diagnostic(`drained, rebooted and Done after ${Math.round(performance.now() - began)} ms`);
      const now = await bootIds();
      assert.ok(now.every((id, index) => id !== before[index]));
      assert.deepEqual(
        nodes.map(({ machine }) => machine.boots),
        [2, 2],
      );
      assert.deepEqual(await active('ticker.service'), ['active', 'active']);
      assert.deepEqual(await active('telemetry.service'), ['inactive', 'inactive']);
      assert.deepEqual(await onEach(node => node.property('telemetry.service', 'LoadState')), ['masked', 'masked']);
      assert.deepEqual(await onEach(node => node.property('crio.service', 'Environment')), ['TEST=yes', 'TEST=yes']);
      for (const node of nodes) {
        const refused = await node.machine.run(['systemctl', 'start', 'telemetry.service']);
        assert.match(refused.stderr, /masked/);
        assert.match((await node.annotations())[DESIRED_DRAIN] ?? '', /^uncordon-/);
      }
    });

    test('one that is disabled stays off, one is unmasked, one leaves the config', async () => {
      await roll('99-units', {
        systemd: {
          units: [
            { name: 'ticker.service', enabled: false, contents: TICKER },
            { name: 'telemetry.service', mask: false },
          ],
        },
      });
      assert.deepEqual(
        nodes.map(({ machine }) => machine.boots),
        [3, 3],
      );
      assert.deepEqual(await active('ticker.service'), ['inactive', 'inactive']);
      assert.deepEqual(await active('telemetry.service'), ['active', 'active']);
      assert.deepEqual(await onEach(node => node.property('crio.service', 'Environment')), ['', '']);
    });
  });

  describe('what needs no reboot', () => {
    const ANCHOR = '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt';

    before(() =>
      cluster.setDisruptionPolicies({
        units: [{ name: 'served.service', actions: [{ type: 'DaemonReload' }, restart('served.service')] }],
        files: [
          { path: '/etc/served.conf', actions: [{ type: 'Reload', reload: { serviceName: 'served.service' } }] },
          { path: ANCHOR, actions: [restart('crio.service')] },
          { path: '/etc/issue', actions: [{ type: 'None' }] },
        ],
      }),
    );

    test('the container runtime is reloaded, then restarted', async () => {
      const log = '/var/log/crio-life';
      const lives = read(log);
      const areSince = async (text: string) => {
        await written(
          log,
          lives.map(({ length }) => length + text.length),
        );
        assert.deepEqual(
          read(log),
          lives.map(before => before + text),
        );
      };
      const policy = '{"default":[{"type":"reject"}]}';
      const before = await roll('99-policy', { storage: { files: [file('/etc/containers/policy.json', policy)] } });
      await areSince('reloaded\n');
      await roll('99-trust', { storage: { files: [file(ANCHOR, await certificate('users'))] } });
      await areSince('reloaded\nstopped\nstarted\n');
      assert.deepEqual(await bootIds(), before);
    });

    test('by policy a unit is read again and restarted, and reloaded for a file', async () => {
      const unit = (text: string) =>
        `[Service]\nExecStart=${shell(`echo ${text} >>/var/log/served; exec sleep infinity`)}\nExecReload=${shell('cat /etc/served.conf >>/var/log/served')}\n` +
        '[Install]\nWantedBy=multi-user.target\n';
      const isServed = async (text: string) => {
        await written('/var/log/served', Array(2).fill(text.length));
        assert.deepEqual(read('/var/log/served'), [text, text]);
      };
      const config = (text: string, setting: string) => ({
        systemd: { units: [{ name: 'served.service', enabled: true, contents: unit(text) }] },
        storage: { files: [file('/etc/served.conf', `${setting}\n`)] },
      });
      await roll('99-served', { systemd: config('one', 'a').systemd });
      await isServed('one\n');
      const before = await roll('99-served', config('one', 'b'));
      await isServed('one\nb\n');
      await roll('99-served', config('two', 'b'));
      await isServed('one\nb\ntwo\n');
      assert.deepEqual(await bootIds(), before);
    });

    test('a file of a package is replaced, and put back when the config has it no more', async () => {
      const shipped = read('/etc/issue');
      await roll('99-issue', { storage: { files: [file('/etc/issue', 'ours\n')] } });
      assert.deepEqual(read('/etc/issue'), ['ours\n', 'ours\n']);
      const before = await bootIds();
      await areDone(await cluster.remove('99-issue'));
      assert.deepEqual(read('/etc/issue'), shipped);
      assert.deepEqual(await bootIds(), before);
    });

    test('what only an image can bring is left out on a machine that is none, and the rest applied', async () => {
      const config = machineConfig('99-kargs', { storage: { files: [file('/etc/beside', 'applied\n')] } });
      await areDone(await cluster.change({ ...config, spec: { ...config.spec, kernelArguments: ['quiet'] } }));
      assert.deepEqual(read('/etc/beside'), ['applied\n', 'applied\n']);
      await areDone(await cluster.remove('99-kargs'));
    });

    test('a key of the config lets its owner in, nobody else, and a login is told for ever', async () => {
      const [key, stranger] = [await sshKey(nodes, 'key'), await sshKey(nodes, 'stranger')];
      const core = { name: 'core', sshAuthorizedKeys: [key], passwordHash: PASSWORD_HASH };
      const before = await roll('99-keys', { passwd: { users: [core] } });
      for (const { machine } of nodes)
        assert.equal((await machine.output('getent', 'shadow', 'core')).split(':')[1], PASSWORD_HASH);
      assert.notEqual(stranger, key);
      const accessed = () => onEach(async node => (await node.annotations())[SSH_ACCESS]);
      for (const [index, node] of nodes.entries()) {
        const port = await freePort();
        await startSshd(node, port);
        await node.machine.output(...batchJob);
        assert.notEqual((await ssh(node, port, 'stranger')).code, 0);
        assert.equal((await node.annotations())[SSH_ACCESS], undefined);
        // One agent sees it as it is, the other one has to find it in the journal.
        const isSeen = index === 0;
        if (!isSeen) await node.stopAgent();
        assert.equal((await ssh(node, port, 'key')).stdout, 'core\n');
        if (!isSeen) await node.startAgent();
        await node.until('the node says so', async () => (await node.annotations())[SSH_ACCESS] === 'accessed');
        assert.match(await node.log(), /Detected a new login session/);
      }
      assert.deepEqual(await accessed(), ['accessed', 'accessed']);
      assert.deepEqual(await bootIds(), before);
    });

    test('a unit that somebody disables is drift, until it is enabled again', async () => {
      const [node] = nodes as [SystemdNode];
      await node.machine.output('systemctl', 'disable', 'served.service');
      await node.until('it is noticed', async () => (await node.annotations())[DAEMON_STATE] === 'Degraded');
      assert.match((await node.annotations())[DAEMON_REASON] ?? '', /served\.service/);
      await node.machine.output('systemctl', 'enable', 'served.service');
      await node.until('it is mended', async () => (await node.annotations())[DAEMON_STATE] === 'Done');
    });
  });

  describe('the server CA of the kubelet', () => {
    /** What kubelets noted: started or stopped, in which boot, with which kubeconfig. */
    const lives = () =>
      read('/var/log/kubelet-life').map(text =>
        text
          .trim()
          .split('\n')
          .map(line => line.split(' ')),
      );
    const hold = async (...cas: string[]) => {
      const wanted = cas.map(pem => pem.trim()).join('\n');
      await onEach(node =>
        node.until('both kubeconfigs have the CAs', () =>
          [BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG].every(path => {
            const authorities = new Kubeconfig(Buffer.from(node.read(path)), path).authorities.toString();
            return authorities.trim() === wanted;
          }),
        ),
      );
    };
    const said = () => onEach(async node => (await node.annotations())[SERVER_CA_DIGEST] ?? '');

    test('a new one: stopped with the old kubeconfig, started with the new one, in the same boot', async () => {
      const [before, boots, digests] = [lives(), await bootIds(), await said()];
      const added = await certificate('kube-apiserver-service-network-signer');
      await cluster.setServerCas(cluster.serverCa + added);
      await hold(cluster.serverCa, added);
      for (const [index, node] of nodes.entries()) {
        const old = before[index]?.at(-1)?.[2];
        await node.until(
          'the kubelet runs again',
          () => (lives()[index]?.length ?? 0) >= (before[index]?.length ?? 0) + 2,
        );
        const life = lives()[index]?.slice(before[index]?.length) ?? [];
        assert.deepEqual(
          life.map(([what]) => what),
          ['stopped', 'started'],
        );
        assert.deepEqual(
          life.map(([, boot]) => boot),
          [boots[index], boots[index]],
        );
        assert.equal(life[0]?.[2], old);
        assert.notEqual(life[1]?.[2], old);
        await node.until(
          'the node says so',
          async () => (await node.annotations())[SERVER_CA_DIGEST] !== digests[index],
        );
        assert.equal(await node.property('kubelet.service', 'ActiveState'), 'active');
        assert.equal((await node.annotations())[DAEMON_STATE], 'Done');
      }
    });

    test('one of an endpoint it does not talk to, and one that leaves: written without a restart', async () => {
      const [before, digests] = [lives(), await said()];
      const deferred = await certificate('kube-apiserver-lb-signer');
      await cluster.setServerCas(cluster.serverCa + deferred);
      await hold(cluster.serverCa, deferred);
      await onEach(node =>
        node.until(
          'the node says so',
          async () => !digests.includes((await node.annotations())[SERVER_CA_DIGEST] ?? ''),
        ),
      );
      assert.deepEqual(lives(), before);
    });
  });

  test('a new CA of clients is in the file of the kubelet, and nothing is restarted, drained or rebooted for it', async () => {
    const [lives, boots] = [read('/var/log/kubelet-life'), await bootIds()];
    const added = await certificate('next-client-ca');
    await cluster.setClientCas((await certificate('client-ca')) + added);
    await onEach(node => node.until('the file holds it', () => node.read(KUBELET_CA).includes(added.trim())));
    for (const text of read(KUBELET_CA)) assert.ok(text.includes((await certificate('client-ca')).trim()));
    assert.deepEqual([read('/var/log/kubelet-life'), await bootIds()], [lives, boots]);
  });

  test('the plug is pulled in the middle of an update: Done after it, complete', async () => {
    const files = Array.from({ length: 50 }, (_, index) => file(`/etc/many/${index}`, `${index}\n`.repeat(100)));
    const rendered = await cluster.change(machineConfig('99-many', { storage: { files } }));
    await onEach(async node => {
      const { boots } = node.machine;
      // Whoever is quick may have written everything by now, and be between two boots.
      const isWriting = () => {
        try {
          return node.read('/etc/machine-config-daemon/rotunda-update-applying.json') !== '';
        } catch {
          return false;
        }
      };
      await node.until('it writes', () => node.machine.boots !== boots || isWriting());
      if (node.machine.boots === boots) await node.machine.cutPower();
    });
    await areDone(rendered);
    for (const node of nodes) assert.equal((await node.annotations())[DAEMON_REASON], '');
  });
});

function machineConfig(name: string, config: Omit<IgnitionConfig, 'ignition'>): MachineConfig {
  const metadata = { name, labels: { [ROLE_LABEL]: 'worker' } };
  return { metadata, spec: { config: { ignition: { version: '3.4.0' }, ...config } } };
}

function file(path: string, text: string) {
  return { path, mode: 0o644, overwrite: true, contents: { source: `data:,${encodeURIComponent(text)}` } };
}

/** Somebody's job, of which logind knows as of a login. */
const batchJob = [
  'sh',
  '-euc',
  `printf 'account required pam_permit.so\\nsession required pam_systemd.so class=background\\n' >/etc/pam.d/batch
  systemd-run --quiet --wait -p PAMName=batch -p User=core -- sh -c 'loginctl show-session "$XDG_SESSION_ID" | grep -x Class=background'`,
];

function restart(serviceName: string) {
  return { type: 'Restart' as const, restart: { serviceName } };
}

function shell(script: string): string {
  return `/bin/sh -c '${script}'`;
}

/** A key pair that is the same on every node; gives the public half. */
async function sshKey([first, ...others]: readonly SystemdNode[], name: string): Promise<string> {
  if (first === undefined) return '';
  const path = `/root/${name}`;
  await first.machine.output('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', path);
  for (const { machine } of others)
    await machine.output('sh', '-euc', 'umask 077; echo "$1" >"$2"', 'sh', first.read(path), path);
  return first.read(`${path}.pub`).trim();
}

/** The machines share our network, so each needs a port of its own. */
async function startSshd({ machine }: SystemdNode, port: number): Promise<void> {
  await machine.output('mkdir', '-p', '/run/sshd');
  const options = ['-o', `ListenAddress=127.0.0.1:${port}`, '-o', 'PasswordAuthentication=no'];
  await machine.output('systemd-run', '--quiet', '--unit=sshd-test', '--', '/usr/sbin/sshd', '-D', ...options);
}

async function ssh({ machine }: SystemdNode, port: number, key: string): Promise<{ code: number; stdout: string }> {
  const options = [
    'BatchMode=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'ConnectionAttempts=20',
  ];
  const flags = options.flatMap(option => ['-o', option]);
  return machine.run(['ssh', '-q', '-i', `/root/${key}`, ...flags, '-p', String(port), 'core@127.0.0.1', 'whoami']);
}
