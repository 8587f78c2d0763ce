/** A real kube-apiserver with what kubeadm made for it, looked at with a kubeconfig alone (spec 80, 10). */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { refusalsOf } from '../../src/cli/verify/asked-for.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, PODS } from '../../src/kube/resource.ts';
import { readCertificates } from '../../src/pki/pem.ts';
import { runMain } from '../cli/cockpit.ts';
import { end } from '../tools/child.ts';
import { eventuallyDespiteErrors } from '../tools/eventually.ts';
import { freePorts } from '../tools/free-ports.ts';
import { type Binaries, findBinaries } from './binaries.ts';
import { type KubeadmRoot, kubeadmPhases, kubeadmRoot } from './kubeadm-program.ts';

const binaries = findBinaries(['etcd', 'kube-apiserver', 'kubeadm']);
const skip = 'missing' in binaries ? binaries.missing : false;
const HOST = '127.0.0.1';
const ECDSA = { encryptionAlgorithm: 'ECDSA-P256' };

interface Item {
  readonly metadata: { readonly name: string };
  readonly state: string;
  readonly certificate?: { readonly notAfter: string };
  readonly seen?: { readonly places: readonly string[]; readonly renewal: string; readonly authority?: string };
}

describe('a kube-apiserver with the certificates of kubeadm', { skip }, () => {
  const { etcd, 'kube-apiserver': apiServer, kubeadm } = binaries as Binaries;
  const children: ChildProcess[] = [];
  let made: KubeadmRoot;
  let kubeconfig: string;
  let server: string;
  let silentPort: number;
  let kube: HttpKube;
  let start: (program: string, args: readonly string[]) => ChildProcess;
  let apiServerFlags: readonly string[];
  const log = (program: string) => readFileSync(join(made.root, `${program}.log`), 'utf8').slice(-3000);

  before(async () => {
    const [client, peer, port, unused] = (await freePorts(4)) as [number, number, number, number];
    silentPort = unused;
    server = `https://${HOST}:${port}`;
    const cluster = { ...ECDSA, controlPlaneEndpoint: `${HOST}:${port}` };
    // kubeadm takes no loopback address for a node's; this one is nobody's (RFC 5737).
    const node = { name: 'node-a', address: '192.0.2.10', port };
    made = kubeadmRoot(kubeadm, cluster, node);
    const pki = join(made.folder, 'pki');
    kubeconfig = join(made.folder, 'super-admin.conf');
    start = (program, args) => {
      const file = openSync(join(made.root, `${program.split('/').at(-1)}.log`), 'a', 0o600);
      const child = spawn(program, args, { stdio: ['ignore', file, file], cwd: made.root });
      closeSync(file);
      children.push(child);
      return child;
    };
    const url = (at: number) => `https://${HOST}:${at}`;
    start(etcd, [
      `--data-dir=${join(made.root, 'etcd')}`,
      `--listen-client-urls=${url(client)}`,
      `--advertise-client-urls=${url(client)}`,
      `--listen-peer-urls=${url(peer)}`,
      `--initial-advertise-peer-urls=${url(peer)}`,
      `--initial-cluster=default=${url(peer)}`,
      `--cert-file=${pki}/etcd/server.crt`,
      `--key-file=${pki}/etcd/server.key`,
      `--trusted-ca-file=${pki}/etcd/ca.crt`,
      '--client-cert-auth=true',
      `--peer-cert-file=${pki}/etcd/peer.crt`,
      `--peer-key-file=${pki}/etcd/peer.key`,
      `--peer-trusted-ca-file=${pki}/etcd/ca.crt`,
      '--unsafe-no-fsync',
    ]);
    apiServerFlags = [
      `--advertise-address=${HOST}`,
      `--bind-address=${HOST}`,
      `--secure-port=${port}`,
      `--client-ca-file=${pki}/ca.crt`,
      `--tls-cert-file=${pki}/apiserver.crt`,
      `--tls-private-key-file=${pki}/apiserver.key`,
      `--etcd-servers=${url(client)}`,
      `--etcd-cafile=${pki}/etcd/ca.crt`,
      `--etcd-certfile=${pki}/apiserver-etcd-client.crt`,
      `--etcd-keyfile=${pki}/apiserver-etcd-client.key`,
      `--requestheader-client-ca-file=${pki}/front-proxy-ca.crt`,
      '--requestheader-allowed-names=front-proxy-client',
      `--proxy-client-cert-file=${pki}/front-proxy-client.crt`,
      `--proxy-client-key-file=${pki}/front-proxy-client.key`,
      `--service-account-key-file=${pki}/sa.pub`,
      `--service-account-signing-key-file=${pki}/sa.key`,
      '--service-account-issuer=https://kubernetes.default.svc',
      '--service-cluster-ip-range=10.96.0.0/12',
      '--authorization-mode=Node,RBAC',
      '--endpoint-reconciler-type=none',
      // Nobody makes accounts here.
      '--disable-admission-plugins=ServiceAccount',
    ];
    start(apiServer, apiServerFlags);
    kube = new HttpKube(await loadAccess({ path: kubeconfig }));
    await eventuallyDespiteErrors(
      'kube-apiserver answers',
      () => kube.get(NAMESPACES, { name: 'kube-public' }),
      () => log('kube-apiserver'),
    );
    // What kube-controller-manager would write.
    const metadata = { namespace: 'kube-system', name: 'kube-root-ca.crt' };
    await kube.create(CONFIG_MAPS, { metadata, data: { 'ca.crt': readFileSync(join(pki, 'ca.crt'), 'utf8') } });
    // kubeadm's own phases write kubeadm-config and cluster-info.
    kubeadmPhases(kubeadm, made, node, [
      ['upload-config', 'kubeadm', '--kubeconfig', kubeconfig],
      ['bootstrap-token', '--kubeconfig', kubeconfig, '--skip-token-print'],
    ]);
  });
  after(async () => {
    await kube?.close();
    for (const child of children.toReversed()) await end(child);
    if (made !== undefined) rmSync(made.root, { recursive: true, force: true });
  });

  const rotunda = (...args: string[]) => runMain(args, { KUBECONFIG: kubeconfig });
  const listed = async (...args: string[]) => {
    const { status, stdout, stderr } = await rotunda('get', 'certs', '-o', 'json', ...args);
    assert.equal(status, 0, stderr);
    return JSON.parse(stdout) as { layout: string; unseen: string[]; items: Item[] };
  };

  test('shows the server, the kubeconfig and every CA that is published; says what it cannot see', async () => {
    const { layout, items, unseen } = await listed();
    const named = (name: string) => items.find(({ metadata }) => metadata.name === name);
    assert.equal(layout, 'kubeadm');
    const places = named('ca')?.seen?.places.join('; ') ?? '';
    for (const place of ['kubeconfig', 'cluster-info', 'kube-root-ca.crt', 'extension-apiserver-authentication']) {
      assert.ok(places.includes(place), `${place} in ${places}`);
    }
    assert.ok(named('front-proxy-ca'), 'front-proxy-ca');
    assert.equal(named('kubeconfig (kubernetes-super-admin)')?.seen?.authority, 'ca');
    const serving = named(`apiserver@${server.slice('https://'.length)}`);
    assert.deepEqual([serving?.seen?.authority, serving?.seen?.renewal], ['ca', 'by-hand']);
    assert.match(unseen.join('\n'), /rotunda get certs --from \/etc\/kubernetes/);
    assert.match(unseen.join('\n'), /rotunda get certs --from \/var\/lib\/kubelet\/pki/);
  });

  test('the same ends as in the files', async () => {
    const { items } = await listed();
    const { stdout } = await rotunda('get', 'certs', '--from', made.folder, '-o', 'json');
    const files = (JSON.parse(stdout) as { items: Item[] }).items;
    const end = (list: readonly Item[], name: string) =>
      list.find(({ metadata }) => metadata.name.startsWith(name))?.certificate?.notAfter;
    for (const [seen, file] of [
      ['apiserver@', 'apiserver'],
      ['ca', 'ca'],
      ['front-proxy-ca', 'front-proxy-ca'],
      ['kubeconfig (', 'super-admin.conf'],
    ] as const) {
      assert.equal(end(items, seen), end(files, file), file);
    }
  });

  test('plan warns of what ends; verify tests what it can and names the rest', async () => {
    const plan = await rotunda('plan', '--days', '400');
    assert.match(plan.stdout, /^WARNING: \d+ ends in this time/, plan.stderr);
    assert.match(plan.stdout, /apiserver@127\.0\.0\.1/);
    const { status, stdout, stderr } = await rotunda('verify');
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout, /^administrators to kube-apiserver +Accepted /m);
    assert.match(stdout, /^pods to kube-apiserver +AcceptedAsPublished /m);
    assert.match(stdout, /^joining nodes to kube-apiserver +Accepted /m);
    assert.match(stdout, /^kubelets to kube-apiserver +AcceptedAsPublished /m);
    assert.match(stdout, /^kube-apiserver to etcd +Skipped .*in no object/m);
  });

  test('nodes and static pods are asked too; what does not answer is said', async () => {
    const labels = { 'node-role.kubernetes.io/control-plane': '' };
    await kube.create(NODES, { metadata: { name: 'node-a', labels } });
    const node = await kube.get(NODES, { name: 'node-a' });
    const addresses = [{ type: 'InternalIP', address: HOST }];
    const daemonEndpoints = { kubeletEndpoint: { Port: silentPort } };
    await kube.updateStatus(NODES, { ...node, status: { ...node.status, addresses, daemonEndpoints } });
    await kube.create(PODS, {
      metadata: {
        namespace: 'kube-system',
        name: 'kube-apiserver-node-a',
        labels: { component: 'kube-apiserver', tier: 'control-plane' },
      },
      spec: {
        nodeName: 'node-a',
        containers: [{ name: 'kube-apiserver', image: 'none', command: ['kube-apiserver', ...apiServerFlags] }],
      },
    });
    const { items, unseen } = await listed();
    assert.ok(items.some(({ metadata }) => metadata.name === 'apiserver@node-a'));
    assert.match(unseen.join('\n'), /what kubelet shows at .*: no answer from here/);
    assert.match(unseen.join('\n'), /on node-a, rotunda get certs/);
  });

  test('--layout says it; somebody with few rights sees what everybody may see', async () => {
    const { items } = await listed('--layout', 'openshift');
    assert.equal(items.length, 0);
    const stranger = join(made.folder, 'admin.conf');
    const { status, stdout, stderr } = await runMain(['get', 'certs', '-o', 'json'], { KUBECONFIG: stranger });
    assert.equal(status, 0, stderr);
    const names = (JSON.parse(stdout) as { items: Item[] }).items.map(({ metadata }) => metadata.name);
    assert.ok(names.includes('ca') && names.includes('kubeconfig (kubernetes-admin)'), names.join());
    assert.equal((await rotunda('get', 'certs', '--layout', 'nonsense')).status, 1);
  });

  test('a server that takes no certificates of the CA is named, without showing it any', async () => {
    const { hostname: host, port } = new URL(server);
    const route = { from: 'anywhere', host, port: Number(port) };
    const ca = (file: string) => readCertificates(readFileSync(join(made.folder, 'pki', file), 'utf8')).certificates;
    assert.deepEqual(await refusalsOf(ca('ca.crt'), [route]), []);
    const [refusal] = await refusalsOf(ca('etcd/ca.crt'), [route]);
    assert.match(refusal?.reason ?? '', /takes certificates of .*"kubernetes".*none of "etcd-ca"/);
  });

  test('a kube-root-ca.crt with another CA is seen as a second one', async () => {
    const other = readFileSync(join(made.folder, 'pki/front-proxy-ca.crt'), 'utf8');
    await kube.create(NAMESPACES, { metadata: { name: 'odd' } });
    const metadata = { namespace: 'odd', name: 'kube-root-ca.crt' };
    await kube.create(CONFIG_MAPS, { metadata, data: { 'ca.crt': other } });
    const { items } = await listed();
    const second = items.find(({ metadata: { name } }) => name === 'ca (2)');
    assert.match(second?.seen?.places.join() ?? '', /kube-root-ca.crt in 1 namespace/);
  });

  test('when its certificate has ended, that is what one is told', async t => {
    const endpoint = { controlPlaneEndpoint: new URL(server).host };
    const expired = kubeadmRoot(kubeadm, { ...ECDSA, ...endpoint, certificateValidityPeriod: '1s' });
    t.after(() => rmSync(expired.root, { recursive: true, force: true }));
    const own = join(expired.folder, 'admin.conf');
    const ended = await eventuallyDespiteErrors('the end of it', async () => {
      const result = await runMain(['get', 'certs'], { KUBECONFIG: own });
      return result.stdout.includes('Expired') ? result : undefined;
    });
    assert.equal(ended.status, 1);
    assert.match(ended.stdout, /^1 certificate needs somebody:\n- kubeconfig \(kubernetes-admin\) ended/);
  });
});
