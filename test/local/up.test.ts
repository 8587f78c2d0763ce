/** `rotunda up` with a real etcd where there is one: it survives being killed, says how it is, and comes down. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';
import type { VerifiedEdge } from '../../src/cli/verify/run.ts';
import { CLUSTER_OPERATORS } from '../../src/controller/cluster-operator-status.ts';
import { readEndpoints } from '../../src/etcd/client/endpoints.ts';
import { GatewayClient } from '../../src/etcd/client/gateway.ts';
import { materialFromCluster } from '../../src/etcd/client/material.ts';
import { OPERATOR_LEASE as ETCD_LEASE, ETCD_NAMESPACE } from '../../src/etcd/names.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { LEASES, NODES, PODS, SECRETS } from '../../src/kube/resource.ts';
import { OPERATOR_LEASE } from '../../src/kube-apiserver/namespaces.ts';
import { KUBE_API_SERVERS } from '../../src/kube-apiserver/resources.ts';
import { CONTROLLER_LEASE, OPERATOR_LEASE as MCO_LEASE } from '../../src/machine-config-api/names.ts';
import { decodeReceipts, NODE_RECEIPTS, type NodeReceipt } from '../../src/trust/receipts.ts';
import { findEtcd, NO_ETCD } from '../etcd/binary.ts';
import { LoadClient } from '../etcd/load.ts';
import { end, firstLine } from '../tools/child.ts';
import { eventually, inTime, PATIENCE_MS } from '../tools/eventually.ts';

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname;
const binary = findEtcd();
const ETCD_CA = 'configmaps/etcd-all-bundles/server-ca-bundle.crt';
/** What an agent says of a control-plane node: who reads which file how, and what for. */
const NODE_FILES = [
  ['kube-apiserver, aggregator-client/tls.crt, on-use', 'shows'],
  ['check-endpoints, check-endpoints-client-cert-key/tls.crt, on-use', 'shows'],
  ['node administrator, control-plane-node-admin-client-cert-key/tls.crt, on-use', 'shows'],
  ['kube-apiserver, kubelet-client/tls.crt, on-use', 'shows'],
  ['node administrator, node-kubeconfigs/lb-ext.kubeconfig, on-use', 'verifies and shows'],
  ['node administrator, node-kubeconfigs/lb-int.kubeconfig, on-use', 'verifies and shows'],
  ['node administrator, node-kubeconfigs/localhost-recovery.kubeconfig, on-use', 'verifies and shows'],
  ['node administrator, node-kubeconfigs/localhost.kubeconfig, on-use', 'verifies and shows'],
  ['kubelet, kubelet/kubeconfig, started', 'verifies'],
];
const LEASES_OF_UP = [OPERATOR_LEASE, ETCD_LEASE, MCO_LEASE, CONTROLLER_LEASE];

function run(args: readonly string[], env = process.env) {
  return spawnSync(process.execPath, [main, ...args], { encoding: 'utf8', env, timeout: PATIENCE_MS });
}

class Up {
  readonly dir: string;
  #child: ChildProcess | undefined;
  progress = '';

  constructor(t: TestContext) {
    this.dir = mkdtempSync(join(tmpdir(), 'rotunda-up-'));
    t.after(async () => {
      this.run('down');
      rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
    });
  }

  /** Resolves with the ready line. */
  async start(args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<string> {
    const words = [main, 'up', '--dir', this.dir, ...args];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'], env });
    this.#child = child;
    this.progress = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.progress += text;
    });
    return firstLine(child, () => this.progress);
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    await end(this.#child as ChildProcess, signal);
  }

  run(command: 'down' | 'status', ...args: readonly string[]): { status: number | null; stdout: string } {
    return run([command, '--dir', this.dir, ...args]);
  }

  verify(...args: readonly string[]) {
    const flags = ['--kubeconfig', join(this.dir, 'kubeconfig'), '--timeout', '10m', '-o', 'json'];
    const { status, stdout } = run(['verify', ...flags, ...args]);
    return { status, edges: (JSON.parse(stdout) as { edges: VerifiedEdge[] }).edges };
  }

  /** A copy of what the nodes have of certificates, for tests that spoil it: agents would mend the original. */
  copyOfNodes(t: TestContext): string {
    const copy = mkdtempSync(join(tmpdir(), 'rotunda-nodes-'));
    t.after(() => rmSync(copy, { recursive: true }));
    const wanted =
      /^(?:[^/]+(?:\/(?:etc(?:\/kubernetes(?:\/.*)?)?|var(?:\/lib(?:\/kubelet(?:\/(?:kubeconfig|pki(?:\/.*)?))?)?)?))?)?$/;
    const nodes = join(this.dir, 'nodes');
    cpSync(nodes, copy, { recursive: true, filter: source => wanted.test(relative(nodes, source)) });
    return copy;
  }

  /** An operator in a process of its own, and what it says. */
  operator(t: TestContext, name: string) {
    const flags = ['--kubeconfig', join(this.dir, 'kubeconfig')];
    const child = spawn(process.execPath, [main, name, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    const lines = createInterface({ input: child.stdout });
    const look = async (wanted: RegExp): Promise<Record<string, unknown>> => {
      for await (const line of lines) if (wanted.test(line)) return JSON.parse(line) as Record<string, unknown>;
      throw new Error(`${name} ended without saying ${wanted}`);
    };
    const says = (wanted: RegExp) => inTime(`${wanted} of ${name}`, look(wanted));
    return { says, end: () => end(child, 'SIGKILL') };
  }

  async kube(t: TestContext): Promise<HttpKube> {
    const kube = new HttpKube(await loadAccess({ path: join(this.dir, 'kubeconfig') }));
    t.after(() => kube.close());
    return kube;
  }
}

describe('rotunda up', () => {
  test('a real etcd of three members: killed at once and started again it has lost nothing', async t => {
    if (binary === undefined) return t.skip(NO_ETCD);
    const up = new Up(t);
    assert.match(
      await up.start(['--workers', '0']),
      /^ready: \S+, kubeconfig \S+, console http:\/\/127\.0\.0\.1:\S+, stand-ins: kube-apiserver\n$/,
    );
    assert.match(up.progress, /\.\.\. etcd {2}revision 1 on 0 of 3 nodes, installing 1 on master-0\n/);
    assert.match(up.progress, /ok {2}etcd {2}revision \d+ on 3 of 3 nodes\n/);
    const kube = await up.kube(t);
    const endpoints = await readEndpoints(kube);
    assert.equal(endpoints.length, 3);
    const members = new GatewayClient(endpoints, await materialFromCluster(kube)());
    assert.deepEqual(
      new Set((await members.members()).map(({ name, isLearner }) => `${name} ${isLearner}`)),
      new Set(['master-0', 'master-1', 'master-2'].map(name => `${name} false`)),
    );
    await members.close();
    // What kube-apiserver shows to etcd and checks etcd with comes from the etcd operator.
    const client = await kube.get(SECRETS, { namespace: ETCD_NAMESPACE, name: 'etcd-client' });
    const { status = {} } = await kube.get(KUBE_API_SERVERS, { name: 'cluster' });
    const copy = { namespace: 'openshift-kube-apiserver', name: `etcd-client-${status.latestAvailableRevision}` };
    assert.equal((await kube.get(SECRETS, copy)).data?.['tls.crt'], client.data?.['tls.crt']);

    const { status: etcdStatus } = await kube.get(CLUSTER_OPERATORS, { name: 'etcd' });
    assert.equal(etcdStatus?.conditions?.find(({ type }) => type === 'Available')?.status, 'True');

    const etcd = new LoadClient(endpoints, materialFromCluster(kube));
    t.after(() => etcd.close());
    await etcd.put('kept', 'over a kill');
    assert.equal(up.run('status').status, 0);
    await up.kill('SIGKILL');
    assert.equal(up.run('status').status, 1);
    assert.match(up.run('status').stdout, /^not running/);
    await up.start(['--workers', '0']);
    assert.equal(await etcd.get('kept'), 'over a kill');

    await up.kill('SIGTERM');
    await up.start(['--workers', '0']);
    assert.equal(await etcd.get('kept'), 'over a kill', 'etcd itself was stopped and started');
    assert.match(up.run('status').stdout, /^ready: .*\n(?:.*\n)*ok {2}etcd {12}revision \d+ on 3 of 3 nodes\n/);
    assert.equal(up.run('down').stdout, 'stopped\n');
    assert.equal(up.run('down').stdout, 'nothing was running\n');
  });

  test('without etcd a stand-in takes part, and everybody is told', async t => {
    const up = new Up(t);
    const env = { ...process.env, PATH: dirname(process.execPath) };
    const line = await up.start(['--control-plane', '1', '--workers', '0', '--rotation-day', '10s'], env);
    assert.match(
      line,
      /^ready: \S+, kubeconfig \S+, console http:\/\/127\.0\.0\.1:\S+, stand-ins: etcd, kube-apiserver\n$/,
    );
    const { ready, standIns, parts } = JSON.parse(up.run('status', '-o', 'json').stdout) as Record<string, unknown>;
    assert.deepEqual([ready, standIns], [true, ['etcd', 'kube-apiserver']]);
    assert.match(
      JSON.stringify(parts),
      /"name":"etcd","ready":true,"text":"revision \d+ on 1 of 1 nodes \(stand-in\)"/,
    );
    assert.match(readFileSync(join(up.dir, 'rotunda.log'), 'utf8'), /there is no etcd on this machine/);
    const kube = await up.kube(t);
    const pod = await kube.get(PODS, { namespace: ETCD_NAMESPACE, name: 'etcd-master-0' });
    assert.equal(pod.metadata?.annotations?.['rotunda.dev/stand-in'], 'true');
    const leases = async () =>
      Object.fromEntries(
        await Promise.all(
          LEASES_OF_UP.map(async key => [key.name, (await kube.get(LEASES, key)).spec?.holderIdentity] as const),
        ),
      );
    const [holder] = Object.values(await leases());
    assert.ok(holder);
    assert.deepEqual(await leases(), Object.fromEntries(LEASES_OF_UP.map(({ name }) => [name, holder])));
    const second = up.operator(t, 'kube-apiserver-operator');
    assert.equal((await second.says(/somebody else leads|"leading"/)).holder, holder, 'two operators at work');
    // What the node says is loaded and shown (spec 90, section 3): who verifies has the bundle of the four signers of servers.
    let said: readonly NodeReceipt[] = [];
    const receipts = await eventually(
      'all receipts of the node',
      async () => {
        const { metadata } = await kube.get(NODES, { name: 'master-0' });
        said = decodeReceipts(metadata?.annotations?.[NODE_RECEIPTS]) ?? [];
        const verifying = said.filter(({ file }) => file.endsWith('kubeconfig'));
        const isComplete = said.length === NODE_FILES.length && verifying.every(({ cas }) => cas.length >= 4);
        return isComplete ? said : undefined;
      },
      () => JSON.stringify(said),
    );
    assert.deepEqual(
      receipts.map(({ process: name, file, kind, cas, shows }) => [
        `${name}, ${file.split('/').slice(-2).join('/')}, ${kind}`,
        [cas.length > 0 ? 'verifies' : '', shows === undefined ? '' : 'shows'].filter(Boolean).join(' and '),
      ]),
      NODE_FILES,
    );
    // It would take the lease that is given back below, and keep it.
    await second.end();
    verifyDisks(up, up.copyOfNodes(t));
    await verifySilence(up, kube);
    // A day of ten seconds is one for etcd's chains too: five years are 1825 of them.
    const { metadata } = await kube.get(SECRETS, { namespace: ETCD_NAMESPACE, name: 'etcd-signer' });
    const at = (which: string) =>
      Date.parse(metadata?.annotations?.[`auth.openshift.io/certificate-not-${which}`] ?? '');
    assert.ok(Math.abs(at('after') - at('before') - 18_250_000) < 5000, String(at('after') - at('before')));

    const transitions = async () => (await kube.get(LEASES, OPERATOR_LEASE)).spec?.leaseTransitions;
    const before = await transitions();
    const other = run(['up', '--dir', up.dir], env);
    assert.equal(other.status, 1);
    assert.match(other.stderr, /\nerror: another process runs the cluster in \S+\n$/);
    await up.kill('SIGKILL');
    await up.start(['--control-plane', '1', '--workers', '0', '--rotation-day', '10s'], env);
    // Ready is who leads; nobody has waited for the lease of the dead one to end, because it was the same holder.
    assert.deepEqual(
      Object.values(await leases()),
      LEASES_OF_UP.map(() => holder),
    );
    assert.equal(await transitions(), before);
    await up.kill('SIGTERM');
    await up.start(['--control-plane', '1', '--workers', '0', '--rotation-day', '10s'], env);
    assert.equal(await transitions(), (before ?? 0) + 1, 'told to stop it gave its lease back');
  });

  /** What is on the disks counts, and not what is published. */
  function verifyDisks(up: Up, nodes: string): void {
    const { status, edges } = up.verify();
    const results = Object.fromEntries(edges.map(({ edge, result }) => [edge, result]));
    assert.equal(status, 0, JSON.stringify(edges));
    assert.equal(
      edges.find(({ unreachable }) => unreachable > 0),
      undefined,
    );
    assert.deepEqual(
      [results['kubelets to kube-apiserver'], results['kube-apiserver to etcd'], results['etcd-metrics to etcd']],
      ['Accepted', 'Accepted', 'Accepted'],
    );
    // Nobody here knows where the files of these would be.
    assert.equal(results['kube-scheduler to kube-apiserver'], 'AcceptedAsPublished');
    const kubeconfig = join(nodes, 'master-0/var/lib/kubelet/kubeconfig');
    const text = readFileSync(kubeconfig, 'utf8');
    const kubelets = () => up.verify('kubelets to', '--nodes', nodes);
    assert.deepEqual([kubelets().status, kubelets().edges[0]?.result], [0, 'Accepted']);
    const foreign = readFileSync(join(nodes, 'master-0/etc/kubernetes/static-pod-resources/etcd-certs', ETCD_CA));
    writeFileSync(kubeconfig, text.replace(/(certificate-authority-data: )\S+/, `$1${foreign.toString('base64')}`));
    const refused = kubelets();
    assert.deepEqual([refused.status, refused.edges[0]?.result], [1, 'Refused']);
    assert.match(refused.edges[0]?.refusals[0]?.reason ?? '', /CERT|ISSUER/);
    writeFileSync(kubeconfig, '{ token: : secret');
    assert.equal(kubelets().edges[0]?.refusals[0]?.reason, 'expected YAML in kubeconfig');
    // A kubelet that has not been given its certificate yet goes by the kubeconfig that it asks with.
    rmSync(kubeconfig);
    assert.equal(kubelets().status, 0);
    rmSync(join(nodes, 'master-0/var/lib/kubelet/pki/kubelet-client-current.pem'));
    assert.equal(kubelets().edges[0]?.result, 'Refused');
    rmSync(join(nodes, 'master-0'), { recursive: true });
    assert.deepEqual(
      kubelets().edges.map(({ result, assumed }) => [result, assumed]),
      [
        [
          'AcceptedAsPublished',
          'the files of kubelet on master-0 cannot be seen from here: what is published for it was used',
        ],
      ],
    );
  }

  /** A node that nobody runs. */
  async function verifySilence(up: Up, kube: HttpKube): Promise<void> {
    const metadata = { name: 'away' };
    const node = await kube.create(NODES, { metadata });
    const addresses = [{ type: 'InternalIP', address: '127.255.0.1' }];
    await kube.updateStatus(NODES, { ...node, status: { ...node.status, addresses } });
    const { status, edges } = up.verify('to kubelets');
    assert.equal(status, 1);
    assert.deepEqual(
      edges[0]?.silences.map(({ to, reason }) => [to, reason]),
      [['127.255.0.1:10250', 'ECONNREFUSED']],
    );
    assert.equal(up.verify('to kubelets', '--ignore-unreachable').status, 0);
    await kube.delete(NODES, metadata);
  }

  test('there is no cluster: one clear line', () => {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-up-'));
    try {
      for (const command of ['down', 'status']) {
        const { status, stderr } = run([command, '--dir', dir]);
        assert.deepEqual([status, stderr], [1, `error: there is no cluster in ${dir}\n`]);
      }
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
