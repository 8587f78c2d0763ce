/** The shipped roles against the requests that the components really make, as a real kube-apiserver writes them down. */

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { KubeError } from '../../src/kube/error.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { listAll } from '../../src/kube/list.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, NODES, PODS, SECRETS } from '../../src/kube/resource.ts';
import { CONTROLLER_CONFIGS } from '../../src/machine-config-api/controller-config.ts';
import { MACHINE_CONFIG_POOLS, MACHINE_CONFIGS } from '../../src/machine-config-api/machine-config.ts';
import { CONTROLLER_CONFIG_NAME, MCO_NAMESPACE } from '../../src/machine-config-api/names.ts';
import { PathMap } from '../../src/staticpod/node/path-map.ts';
import { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
import { accountName, describeAccess, readAccesses } from './audit.ts';
import { findNeeds, type Installed, LEADING } from './installed.ts';
import { describeRight, needs, rightsOf } from './rights.ts';
import { DAEMON, MASTER, Scenario, SERVER, WORKER } from './scenario.ts';

const found = await findNeeds();
const KA = 'openshift-kube-apiserver';
const ETCD = 'openshift-etcd';
const CONFIG = 'openshift-config';
const INSTALLER = { namespace: KA, name: 'installer-sa' };
const CONSOLE = { namespace: 'rotunda', name: 'console' };
const RECOVERY = { namespace: KA, name: 'localhost-recovery-client' };
/** So that the lease of a killed leader is not waited for long. */
const QUICK_ELECTION =
  '--leader-elect-lease-duration 30s --leader-elect-renew-deadline 25s --leader-elect-retry-period 1s'.split(' ');
const WATCHED = ['secrets', 'configmaps', 'nodes'];

/**
 * Rights on Secrets, ConfigMaps and Nodes that an uneventful hour does not need, and what needs them. Whoever widens a role without
 * using it, or stops using a right, finds out here.
 */
const RESERVES: Readonly<Record<string, readonly (readonly [right: RegExp, why: string])[]>> = {
  'kube-apiserver-operator': [
    [
      /^update (configmaps|secrets) in /,
      'a rotation, a revision that could not be finished, a changed source of a copy',
    ],
    [
      /^delete secrets in openshift-(kube-apiserver|kube-apiserver-operator|config-managed)$/,
      'a Secret of the wrong type',
    ],
    [/^delete configmaps in openshift-kube-apiserver$/, 'a copy whose source is gone, a revision that is pruned'],
    [/^delete configmaps in openshift-(kube-apiserver-operator|config-managed)$/, 'a copy whose source is gone'],
    [/^list configmaps kube-root-ca.crt$/, 'a hand-over: whether every namespace has the CA'],
    [/^create configmaps in openshift-config$/, 'a rotation day that is given as a flag'],
    [/^get (configmaps|secrets) in openshift-(kube-apiserver-operator|config|config-managed)$/, 'before a write'],
  ],
  'etcd-operator': [
    [/^update (configmaps|secrets) in /, 'a rotation, a hand-over of signers'],
    [
      /^delete (configmaps|secrets) in /,
      'a node that is gone, a Secret of the wrong type, a copy whose source is gone',
    ],
    [/^get configmaps in openshift-kube-apiserver$/, 'a hand-over: who runs with which CA'],
    [/^get nodes$/, 'before a member is restarted'],
  ],
  'machine-config-operator': [
    [/^(update|patch) configmaps in /, 'a CA bundle that changes'],
    [/^create configmaps in openshift-config-managed$/, 'kube-apiserver-client-ca, where no operator has made it'],
    [/^update secrets in openshift-machine-api$/, 'another root CA'],
    [/^get secrets pull-secret in openshift-config$/, 'before it is made'],
  ],
  'machine-config-controller': [[/^get secrets pull-secret in openshift-config$/, 'list and watch come with it']],
  'machine-config-server': [],
  'machine-config-daemon': [
    [/^get configmaps kubeconfig-data /, 'list and watch come with it'],
    [/^get configmaps image-registry-override-drain /, 'an update that would drain'],
  ],
  'installer-sa': [],
  'localhost-recovery-client': [
    [/^(create|update|delete) (configmaps|secrets) in /, 'certificates that expired while nobody rotated them'],
    [/^get (configmaps|secrets) in /, 'before a write'],
  ],
};

describe('the roles that are installed', { skip: 'missing' in found && found.missing }, () => {
  let scenario: Scenario;
  let installed: Installed;
  let kube: Kube;

  before(async () => {
    if ('missing' in found) return;
    scenario = await Scenario.start(found, { election: QUICK_ELECTION });
    ({ installed, kube } = scenario);
  });

  after(() => scenario?.stop());

  test('the etcd operator founds a cluster: certificates, a revision, an installer', async () => {
    await scenario.etcdOperator();
    const { data = {} } = await kube.get(SECRETS, { namespace: ETCD, name: 'etcd-all-certs' });
    assert.ok(Object.hasOwn(data, `etcd-serving-${MASTER}.crt`), Object.keys(data).join());
  });

  test('the kube-apiserver operator makes its chains, rolls a revision out and is available', async () => {
    await scenario.kubeApiserverOperator();
    // A rotation by hand: the Secret is updated in place.
    const key = { namespace: KA, name: 'kubelet-client' };
    const before = (await kube.get(SECRETS, key)).data?.['tls.crt'];
    await kube.patch(SECRETS, key, { type: 'merge', body: { metadata: { annotations: { [NOT_AFTER]: null } } } });
    await eventually(
      'another certificate',
      async () => (await kube.get(SECRETS, key)).data?.['tls.crt'] !== before || undefined,
    );
  });

  test('machine configuration is collected, rendered and pointed at', () => scenario.machineConfig());

  test('a machine gets its first config from the server', async () => {
    const port = await scenario.machineConfigServer();
    const root = await kube.get(CONFIG_MAPS, { namespace: 'kube-system', name: 'root-ca' });
    const config = await eventually('an answer', () =>
      ask(`https://localhost:${port}/config/worker`, root.data?.['ca.crt']),
    );
    assert.match(config, /"ignition"/);
  });

  test('an agent writes certificates to its disk and says so on its own Node', async () => {
    await scenario.agent();
    assert.ok(readdirSync(join(installed.directory('node'), 'etc/kubernetes')).includes('kubelet-ca.crt'));
  });

  test('installer, cert-syncer and regeneration controller do with their namespaces', async () => {
    const [pod] = scenario.apiserverKubelet.installers;
    const disk = installed.directory('master');
    const map = new PathMap(
      ['/etc/kubernetes', '/var/lock'].map(inside => ({ inside, outside: installed.directory(`master${inside}`) })),
    );
    const env = {
      NODE_NAME: MASTER,
      POD_NAME: pod?.metadata?.name ?? '',
      POD_NAMESPACE: KA,
      ROTUNDA_SETTLE_PAUSE: '0s',
      ROTUNDA_TERMINATION_LOG: join(disk, 'termination-log'),
    };
    const installer = installed.startProcess(
      'installer',
      ['installer', ...(pod?.spec?.containers[0]?.args ?? []).map(arg => map.rewrite(arg))],
      { ...env, ROTUNDA_KUBECONFIG: await installed.accountKubeconfig(INSTALLER.namespace, INSTALLER.name) },
    );
    assert.equal(await installer.exited, 0, installer.log);
    assert.ok(readdirSync(map.outside('/etc/kubernetes/manifests')).includes('kube-apiserver-pod.yaml'));

    const kubeconfig = await installed.accountKubeconfig(RECOVERY.namespace, RECOVERY.name);
    const sides = [
      installed.startProcess(
        'cert-syncer',
        ['cert-syncer', '--kubeconfig', kubeconfig, '--namespace', KA, '--destination-dir', join(disk, 'certs')],
        env,
      ),
      installed.startProcess(
        'regeneration',
        ['cert-regeneration-controller', '--kubeconfig', kubeconfig, '--namespace', KA],
        env,
      ),
    ];
    const accesses = () => readAccesses(installed.auditLog, accountName(RECOVERY));
    await eventually('both to watch', async () => {
      const watches = accesses().filter(({ verb, resource }) => verb === 'watch' && resource === 'secrets');
      return new Set(watches.map(({ namespace }) => namespace)).size >= 4 || undefined;
    });
    await eventually('files', async () => readdirSync(join(disk, 'certs')).includes('secrets') || undefined);
    for (const side of sides) assert.equal(await side.kill('SIGTERM'), 0, side.log);
  });

  test('the console serves with next to no rights; people with the roles for looking see everything', async () => {
    const own = await installed.accountKubeconfig(CONSOLE.namespace, CONSOLE.name);
    const console = installed.startProcess('console', ['console', '--kubeconfig', own, '--port', '0']);
    await console.says('ready: ');
    assert.equal(await console.kill('SIGTERM'), 0, console.log);
    // What it would show to whoever takes the link from its log, it is refused.
    assert.deepEqual((await rightsOf(kube, CONSOLE)).map(describeRight), ['list nodes']);

    const alice = await installed.cluster.kubeconfigOf('alice');
    for (const role of ['rotunda:viewer', 'rotunda:certificate-viewer']) {
      await installed.kubectl([
        'create',
        'clusterrolebinding',
        `alice-${role}`,
        `--clusterrole=${role}`,
        '--user=alice',
      ]);
    }
    const looks = [
      ['get', 'certificates'],
      ['get', 'nodes'],
      ['get', 'revisions'],
      ['get', 'pools'],
      ['graph'],
      ['plan'],
    ];
    const running = looks.map(words => installed.startProcess(words.join('-'), [...words, '--kubeconfig', alice]));
    for (const each of running) assert.equal(await each.exited, 0, each.log);
    const refused = readAccesses(installed.auditLog, 'alice').filter(({ code }) => code === 403);
    assert.deepEqual(refused.map(describeAccess), []);
  });

  test('no component was refused anything, and none holds a right it has no use for', async () => {
    for (const each of scenario.processes.values()) assert.ok(each.isRunning, each.log.slice(-2000));
    const accounts = [
      ...[...LEADING, SERVER, DAEMON].map(({ namespace, command: name }) => ({ namespace, name })),
      INSTALLER,
      RECOVERY,
    ];
    for (const account of accounts) {
      const accesses = readAccesses(installed.auditLog, accountName(account));
      assert.ok(accesses.length > 0, `${account.name} asked for nothing`);
      const refused = accesses.filter(({ code }) => code === 403).map(describeAccess);
      assert.deepEqual([...new Set(refused)], [], `${account.name} was refused`);
      const rights = await rightsOf(kube, account);
      const unused = rights
        .filter(({ group, resource }) => group === '' && WATCHED.includes(resource))
        .filter(right => !accesses.some(access => needs(access, right)))
        .map(describeRight);
      const reserves = RESERVES[account.name] ?? [];
      const unexplained = unused.filter(right => !reserves.some(([pattern]) => pattern.test(right)));
      assert.deepEqual(unexplained, [], `${account.name} holds rights that it did not use and nobody explains`);
      const idle = reserves.filter(([pattern]) => !rights.some(right => pattern.test(describeRight(right))));
      assert.deepEqual(idle, [], `reasons of ${account.name} for rights that it does not hold`);
      const dangerous = rights.filter(
        ({ group, verb }) => group === 'rbac.authorization.k8s.io' && !['get', 'list', 'watch'].includes(verb),
      );
      assert.deepEqual(dangerous.map(describeRight), [], `${account.name} may write roles or bindings`);
    }
    const node = readAccesses(installed.auditLog, `system:node:${WORKER}`);
    assert.deepEqual(node.filter(({ code }) => code === 403).map(describeAccess), []);
  });

  test('kill -9 of every component and a start: they go on, and nothing is made anew', async () => {
    const versions = async () => {
      const objects = await Promise.all(
        [SECRETS, CONFIG_MAPS].map(resource => listAll<Secret | ConfigMap>(kube, resource, {})),
      );
      const ours = objects
        .flatMap(({ items }) => items)
        .filter(({ metadata }) => metadata?.namespace?.startsWith('openshift-'));
      return ours.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name} ${metadata?.resourceVersion}`).sort();
    };
    const before = await versions();
    await Promise.all([...scenario.processes.values()].map(each => each.kill('SIGKILL')));
    await Promise.all([
      scenario.etcdOperator(),
      scenario.kubeApiserverOperator(),
      scenario.machineConfig(),
      scenario.machineConfigServer(),
      scenario.agent(),
    ]);
    assert.deepEqual(await versions(), before);
  });

  test("the agent's account reads neither Nodes nor Secrets, and writes nothing but events", async () => {
    const agent = await identity(await installed.accountKubeconfig(DAEMON.namespace, DAEMON.command));
    try {
      await kube.get(MACHINE_CONFIGS, {
        name: (await kube.get(MACHINE_CONFIG_POOLS, { name: 'worker' })).spec?.configuration?.name ?? '',
      });
      await agent.get(CONTROLLER_CONFIGS, { name: CONTROLLER_CONFIG_NAME });
      for (const name of [WORKER, MASTER]) {
        await refused(agent.get(NODES, { name }));
        await refused(agent.patch(NODES, { name }, annotation('example.com/a', 'b')));
      }
      await refused(agent.list(NODES, {}));
      for (const namespace of [undefined, MCO_NAMESPACE, CONFIG, ETCD, KA, 'kube-system', 'openshift-machine-api']) {
        await refused(agent.list(SECRETS, { namespace }));
      }
      for (const [namespace, name] of [
        [CONFIG, 'pull-secret'],
        [MCO_NAMESPACE, 'node-bootstrapper-token'],
        [MCO_NAMESPACE, 'machine-config-server-ca'],
        [MCO_NAMESPACE, 'machine-config-server-tls'],
        [ETCD, 'etcd-signer'],
      ] as const) {
        await refused(agent.get(SECRETS, { namespace, name }));
      }
      await refused(agent.list(CONFIG_MAPS, { namespace: MCO_NAMESPACE }));
      await refused(agent.get(CONFIG_MAPS, { namespace: 'kube-system', name: 'root-ca' }));
      await refused(
        agent.patch(MACHINE_CONFIG_POOLS, { name: 'worker' }, { type: 'merge', body: { spec: { paused: true } } }),
      );
      await refused(agent.list(PODS, { namespace: MCO_NAMESPACE }));
    } finally {
      await agent.close();
    }
  });

  test("the node's credentials reach its own Node and no other", async () => {
    const node = await identity(await installed.cluster.kubeconfigOf(`system:node:${WORKER}`, ['system:nodes']));
    try {
      await node.get(NODES, { name: WORKER });
      await node.patch(NODES, { name: WORKER }, annotation('example.com/mine', 'yes'));
      await refused(node.get(NODES, { name: MASTER }));
      await refused(node.list(NODES, {}));
      await refused(node.patch(NODES, { name: MASTER }, annotation('example.com/mine', 'no')));
      const role = { type: 'merge', body: { metadata: { labels: { 'node-role.kubernetes.io/master': '' } } } } as const;
      await refused(node.patch(NODES, { name: WORKER }, role));
      for (const namespace of [undefined, MCO_NAMESPACE, CONFIG, ETCD, KA])
        await refused(node.list(SECRETS, { namespace }));
      await refused(node.get(SECRETS, { namespace: MCO_NAMESPACE, name: 'machine-config-server-ca' }));
      await refused(node.get(SECRETS, { namespace: CONFIG, name: 'pull-secret' }));
      await refused(node.list(PODS, { fieldSelector: `spec.nodeName=${MASTER}` }));
      await refused(node.get(CONTROLLER_CONFIGS, { name: CONTROLLER_CONFIG_NAME }));
    } finally {
      await node.close();
    }
  });
});

async function identity(kubeconfig: string): Promise<HttpKube> {
  return new HttpKube(await loadAccess({ path: kubeconfig }));
}

function annotation(name: string, value: string) {
  return { type: 'merge', body: { metadata: { annotations: { [name]: value } } } } as const;
}

async function refused(attempt: Promise<unknown>): Promise<void> {
  await assert.rejects(attempt, error => error instanceof KubeError && error.code === 403);
}

function ask(url: string, ca: string | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(url, { ca }, response => {
      let body = '';
      response.setEncoding('utf8').on('data', part => (body += part));
      response.once('end', () =>
        response.statusCode === 200 ? resolve(body) : reject(new Error(`${response.statusCode}: ${body}`)),
      );
    });
    request.once('error', reject);
  });
}
