/** The commands of machine configuration against the embedded API, from an empty cluster to the first config of a new machine. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Api, startApi } from '../../src/api/api.ts';
import type { PoolExplanation } from '../../src/cli/explain/machine-config.ts';
import { CLUSTER_OPERATORS } from '../../src/controller/cluster-operator-status.ts';
import { getIfPresent } from '../../src/kube/get.ts';
import { CONFIG_MAPS, LEASES, NODES, type Resource, SECRETS } from '../../src/kube/resource.ts';
import { fileConfig, installDefinitions } from '../../src/machine-config/testing.ts';
import { CONTROLLER_CONFIGS } from '../../src/machine-config-api/controller-config.ts';
import { MACHINE_CONFIG_POOLS, MACHINE_CONFIGS } from '../../src/machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DAEMON_STATE, DESIRED_CONFIG, MCO_NAMESPACE } from '../../src/machine-config-api/names.ts';
import { end } from '../tools/child.ts';
import { eventually, PATIENCE_MS } from '../tools/eventually.ts';

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname;

describe('the commands of machine configuration', () => {
  let api: Api;
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-machine-config-'));
  const kubeconfig = ['--kubeconfig', join(dir, 'kubeconfig')];
  const children: ChildProcess[] = [];
  let output = '';

  before(async () => {
    api = await startApi({ dir });
  });

  test('without the definitions of our kinds the operator says what is missing, and gives the lease back', async () => {
    const { status, stderr } = await run('machine-config-operator', ...kubeconfig);
    assert.equal(status, 1);
    assert.match(stderr, /error: .*are the definitions in manifests\/crds\/ installed\?/);
    assert.equal(await holder('machine-config'), undefined);
    await installDefinitions({ kube: api.kube, idle: () => api.engine.idle(), close: () => api.close() });
  });

  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await api.close();
    rmSync(dir, { recursive: true, force: true });
  });

  function start(...args: string[]): ChildProcess {
    const child = spawn(process.execPath, [main, ...args, ...kubeconfig], { stdio: ['ignore', 'pipe', 'inherit'] });
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    children.push(child);
    return child;
  }

  /** Not synchronously: the API is in this process. */
  async function run(...args: string[]): Promise<{ status: number; stdout: string; stderr: string }> {
    const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'], timeout: PATIENCE_MS });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const [status] = (await once(child, 'close')) as [number];
    return { status, stdout, stderr };
  }

  const explain = (...args: string[]) => run('explain', ...args, ...kubeconfig);
  const holder = async (name: string) => {
    const lease = await getIfPresent(api.kube, LEASES, { namespace: MCO_NAMESPACE, name });
    return lease?.spec?.holderIdentity || undefined;
  };
  const target = async (name: string) =>
    (await getIfPresent(api.kube, MACHINE_CONFIG_POOLS, { name }))?.spec?.configuration?.name;
  let rendered = '';

  test('one of two operators leads, makes what is missing, and with the controller the pools are rendered', async () => {
    start('machine-config-operator');
    start('machine-config-operator');
    start('machine-config-controller');
    rendered = await eventually('a rendered config', () => target('worker'));
    assert.match(rendered, /^rendered-worker-[0-9a-f]{32}$/);
    assert.ok(await holder('machine-config'));
    assert.ok(await holder('machine-config-controller'));
    await eventually('no complaint', async () => {
      const { status } = await api.kube.get(CLUSTER_OPERATORS, { name: 'machine-config' });
      return status?.conditions?.find(({ type }) => type === 'Degraded')?.status === 'False';
    });
  });

  test('explain tells which nodes a config would reboot, and which it would only write to', async () => {
    const annotations = { [CURRENT_CONFIG]: rendered, [DESIRED_CONFIG]: rendered, [DAEMON_STATE]: 'Done' };
    for (const name of ['worker-0', 'worker-1']) {
      const labels = { 'node-role.kubernetes.io/worker': '' };
      await api.kube.create(NODES, { metadata: { name, labels, annotations } });
    }
    const file = (name: string, path: string, role = 'worker') => {
      const at = join(dir, `${name}.json`);
      const kind = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfig' };
      writeFileSync(at, JSON.stringify({ ...kind, ...fileConfig(name, role, path, 'text\n') }));
      return at;
    };
    const motd = file('99-motd', '/etc/motd');
    const table = await explain('machineconfig/99-motd', '--pool', 'worker', '-f', motd);
    assert.equal(table.status, 0, table.stderr);
    assert.match(table.stdout, new RegExp(`^pool worker would go from ${rendered} to rendered-worker-`));
    assert.match(table.stdout, /2 of 2 nodes would change, at most 1 at once/);
    assert.match(table.stdout, /worker-0 +rebooted +yes +\/etc\/motd/);

    const trust = '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt';
    const restart = await explain('machineconfig/99-trust', '-f', file('99-trust', trust));
    assert.match(restart.stdout, /worker-1 +restart crio +no +\/etc\/pki/);

    const login = join(dir, '99-login.json');
    const users = [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA'], passwordHash: '$6$geheim' }];
    const config = { ignition: { version: '3.4.0' }, passwd: { users } };
    const { metadata } = fileConfig('99-login', 'worker', '/', '');
    writeFileSync(login, JSON.stringify({ kind: 'MachineConfig', metadata, spec: { config } }));
    const keys = await explain('machineconfig/99-login', '-f', login);
    assert.match(keys.stdout, /worker-1 +files written +no +SSH keys of core, password of core\n/, keys.stderr);

    const secret = file('99-secret', '/var/lib/kubelet/config.json');
    const json = await explain('mc/99-secret', '-f', secret, '-o', 'json');
    const { pools } = JSON.parse(json.stdout) as { pools: PoolExplanation[] };
    assert.deepEqual(
      pools.map(({ pool, nodes }) => [pool, nodes?.map(({ node, action, drained }) => [node, action, drained])]),
      [
        [
          'worker',
          [
            ['worker-0', 'write', false],
            ['worker-1', 'write', false],
          ],
        ],
      ],
    );
    assert.equal(await getIfPresent(api.kube, MACHINE_CONFIGS, { name: '99-secret' }), undefined, 'nothing is written');

    const gathered = mkdtempSync(join(dir, 'must-gather-'));
    for (const kinds of [MACHINE_CONFIGS, MACHINE_CONFIG_POOLS, NODES, CONTROLLER_CONFIGS] as Resource[]) {
      const { items } = await api.kube.list(kinds);
      const list = { apiVersion: 'v1', kind: `${kinds.kind}List`, items };
      writeFileSync(join(gathered, `${kinds.plural}.json`), JSON.stringify(list));
    }
    const offline = await run('explain', 'machineconfig/99-motd', '--from', gathered, '-f', motd);
    assert.deepEqual([offline.status, offline.stdout], [0, table.stdout], offline.stderr);
  });

  test('a config that no pool could take is refused with its field, exit code 1', async () => {
    const at = join(dir, 'bad.json');
    writeFileSync(at, JSON.stringify({ kind: 'MachineConfig', ...fileConfig('99-bad', 'worker', '/etc/../x', 'x') }));
    const { status, stdout } = await explain('machineconfig/99-bad', '-f', at);
    assert.equal(status, 1);
    assert.match(stdout, /pool worker would refuse 99-bad: .*storage\.files\[0\]\.path/);
  });

  const wrong: [string, string[], RegExp][] = [
    ['a config that is not there', ['machineconfig/nope'], /error: machineconfig nope not found; give -f/],
    [
      'a pool that is not there',
      ['machineconfig/00-worker', '--pool', 'x'],
      /there is no machineconfigpool x; there are: master, worker/,
    ],
    [
      'a pool of others',
      ['machineconfig/00-worker', '--pool', 'master'],
      /pool master does not select machineconfig 00-worker/,
    ],
    ['two at once', ['machineconfig/a', 'machineconfig/b'], /is explained alone/],
    ['a pool without a config', ['--pool', 'worker'], /--pool goes with machineconfig\/NAME only/],
    ['a format nobody knows', ['machineconfig/00-worker', '-o', 'xml'], /--output must be/],
  ];
  for (const [what, args, message] of wrong) {
    test(`explain, ${what}: one clear line and exit code 1`, async () => {
      const { status, stderr } = await explain(...args);
      assert.equal(status, 1, stderr);
      assert.match(stderr, message);
    });
  }

  test('a config that is rolled out already changes nothing', async () => {
    const { stdout } = await explain('machineconfig/00-worker');
    assert.match(stdout, /pool worker is heading for .* which has 00-worker in it\n0 of 2 nodes would change/);
  });

  test('a new machine gets its first config, over a certificate it was told to trust', async () => {
    const tls = await api.kube.get(SECRETS, { namespace: MCO_NAMESPACE, name: 'machine-config-server-tls' });
    for (const key of ['tls.crt', 'tls.key'] as const) {
      writeFileSync(join(dir, key), Buffer.from(tls.data?.[key] ?? '', 'base64'), { mode: 0o600 });
    }
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    await api.kube.create(SECRETS, {
      metadata: { namespace: MCO_NAMESPACE, name: 'node-bootstrapper-token' },
      data: { token: base64('secret-token'), 'ca.crt': base64('ca') },
    });
    await eventually('the pool is updated', async () => {
      const { status } = await api.kube.get(MACHINE_CONFIG_POOLS, { name: 'worker' });
      return status?.configuration?.name === rendered;
    });
    const where = ['--api-server-url', 'https://api.example.com:6443', '--host', '127.0.0.1', '--port', '0'];
    const pair = ['--cert', join(dir, 'tls.crt'), '--key', join(dir, 'tls.key')];
    start('machine-config-server', ...where, ...pair);
    const port = await eventually('the port', async () => {
      const line = output.split('\n').find(text => text.includes('serving first configs'));
      return line === undefined ? undefined : (JSON.parse(line) as { port: number }).port;
    });
    const ca = (await api.kube.get(CONFIG_MAPS, { namespace: 'kube-system', name: 'root-ca' })).data?.['ca.crt'] ?? '';
    const config = JSON.parse(await get(`https://127.0.0.1:${port}/config/worker`, ca)) as {
      storage: { files: { path: string }[] };
    };
    const paths = config.storage.files.map(({ path }) => path);
    assert.ok(paths.includes('/etc/kubernetes/kubeconfig') && paths.includes('/etc/kubernetes/kubelet-ca.crt'));
    assert.doesNotMatch(output, /secret-token/);
  });

  test('told to stop, all end cleanly, and the leases are free', async () => {
    for (const child of children) {
      assert.equal((await end(child)).code, 0, child.spawnargs.join(' '));
    }
    assert.equal(await holder('machine-config'), undefined);
    assert.equal(await holder('machine-config-controller'), undefined);
    assert.doesNotMatch(output, /PRIVATE KEY|"tls\.key"/);
  });

  const bad: [string, string[], RegExp][] = [
    ['a kubeconfig that is not there', ['machine-config-operator', '--kubeconfig', '/no/such'], /error: .*\/no\/such/],
    [
      'a URL that is none',
      ['machine-config-operator', '--api-server-url', 'api'],
      /--api-server-url must be an https URL/,
    ],
    ['a log level that is none', ['machine-config-controller', '--log-level', 'loud'], /--log-level must be one of/],
    ['a URL without TLS', ['machine-config-server', '--api-server-url', 'http://a:6443'], /must be an https URL/],
    [
      'a certificate that is not there',
      ['machine-config-server', '--api-server-url', 'https://a:6443', '--cert', '/no/such'],
      /--cert: \/no\/such does not exist/,
    ],
  ];
  for (const [what, args, message] of bad) {
    test(`${args[0]}, ${what}: one clear line and exit code 1`, () => {
      const { status, stderr } = spawnSync(process.execPath, [main, ...args], {
        encoding: 'utf8',
        timeout: PATIENCE_MS,
      });
      assert.equal(status, 1, stderr);
      assert.match(stderr, message);
    });
  }
});

function get(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(
      url,
      { ca, timeout: PATIENCE_MS, headers: { accept: 'application/vnd.coreos.ignition+json;version=3.4.0' } },
      answer => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => (text += part));
        answer.on('end', () =>
          answer.statusCode === 200 ? resolve(text) : reject(new Error(`status ${answer.statusCode}`)),
        );
      },
    );
    asked
      .on('timeout', () => asked.destroy(new Error('no answer in time')))
      .on('error', reject)
      .end();
  });
}
