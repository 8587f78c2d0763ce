/**
 * `rotunda up --layout kubeadm`: nodes have the files of kubeadm, adoption changes none of them, leaves are renewed, a CA is replaced through
 * all phases while everybody shakes hands with everybody, and a kill in the middle of that loses nothing.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { VerifiedEdge } from '../../src/cli/verify/run.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { CONFIG_MAPS, NODES, PODS } from '../../src/kube/resource.ts';
import { CLUSTER_RECORD, statusOf } from '../../src/kubeadm/cluster-record.ts';
import { reportOf } from '../../src/kubeadm/report.ts';
import { certificatesIn } from '../../src/pki/pem.ts';
import { findBinaries } from '../cluster/binaries.ts';
import { checkExpiration } from '../cluster/kubeadm-program.ts';
import { end, firstLine } from '../tools/child.ts';
import { eventually, eventuallyDespiteErrors, PATIENCE_MS } from '../tools/eventually.ts';

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname;
const CONTROL_PLANE = ['master-0', 'master-1'];
const NODE_NAMES = [...CONTROL_PLANE, 'worker-0'];
/** A day lasts a second: a leaf ends after six minutes, five of which are the past that kubeadm gives it. */
const SIZE = ['--layout', 'kubeadm', '--rotation-day', '1s', '--control-plane', '2', '--workers', '1'];
/** So that a leaf is due twenty seconds after its making, and not within two. */
const EARLY = '0.48';

const PKI_FILES = [
  'apiserver-etcd-client',
  'apiserver-kubelet-client',
  'apiserver',
  'ca',
  'etcd/ca',
  'etcd/healthcheck-client',
  'etcd/peer',
  'etcd/server',
  'front-proxy-ca',
  'front-proxy-client',
].flatMap(base => [`pki/${base}.crt`, `pki/${base}.key`]);
const OTHER_FILES = [
  'admin.conf',
  'controller-manager.conf',
  'kubelet.conf',
  'manifests/etcd.yaml',
  'manifests/kube-apiserver.yaml',
  'manifests/kube-controller-manager.yaml',
  'manifests/kube-scheduler.yaml',
  'pki/sa.key',
  'pki/sa.pub',
  'scheduler.conf',
];

class Playground {
  readonly dir = mkdtempSync(join(tmpdir(), 'rotunda-kubeadm-up-'));
  #child: ChildProcess | undefined;
  #progress = '';

  constructor(t: TestContext) {
    t.after(() => {
      this.run('down', '--dir', this.dir);
      rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
    });
  }

  async start(...args: readonly string[]): Promise<string> {
    const words = [main, 'up', '--dir', this.dir, ...SIZE, ...args];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#progress += text;
    });
    return firstLine(child, () => this.#progress);
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    await end(this.#child as ChildProcess, signal);
  }

  run(...args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
    const env = { ...process.env, KUBECONFIG: join(this.dir, 'kubeconfig') };
    return spawnSync(process.execPath, [main, ...args], { encoding: 'utf8', env, timeout: PATIENCE_MS });
  }

  succeed(...args: readonly string[]): string {
    const { status, stdout, stderr } = this.run(...args);
    assert.equal(status, 0, `rotunda ${args.join(' ')}: ${stdout}${stderr}`);
    return stdout;
  }

  /** Everybody accepts everybody: with what is on the disks, over real connections. */
  nobodyIsRefused(): void {
    const { status, stdout, stderr } = this.run('verify', '-o', 'json');
    const { edges } = JSON.parse(stdout) as { edges: VerifiedEdge[] };
    const bad = edges.filter(({ refused, unreachable }) => refused > 0 || unreachable > 0);
    assert.deepEqual(bad, [], stderr);
    assert.equal(status, 0);
    const travelled = edges.filter(({ accepted }) => accepted > 0).length;
    assert.equal(travelled, edges.length - 1, 'all but aggregated API servers, of which there are none');
  }

  root(node: string): string {
    return join(this.dir, 'nodes', node);
  }

  text(node: string, file: string): string {
    return readFileSync(join(this.root(node), 'etc/kubernetes', file), 'utf8');
  }

  casOf(node: string): string[] {
    return certificatesIn(this.text(node, 'pki/ca.crt')).map(({ subject }) => subject.commonName);
  }

  /** Content and mode of every file that kubeadm or a kubelet keeps, of all nodes. */
  files(): Map<string, string> {
    const found = new Map<string, string>();
    for (const node of NODE_NAMES) {
      for (const folder of ['etc/kubernetes', 'var/lib/kubelet/pki']) {
        const base = join(this.root(node), folder);
        for (const entry of readdirSync(base, { recursive: true, withFileTypes: true })) {
          const path = join(entry.parentPath, entry.name);
          if (!entry.isFile()) continue;
          const digest = createHash('sha256').update(readFileSync(path)).digest('hex');
          found.set(path.slice(this.dir.length), `${statSync(path).mode.toString(8)} ${digest}`);
        }
      }
    }
    return found;
  }

  async kube(t: TestContext): Promise<HttpKube> {
    const kube = new HttpKube(await loadAccess({ path: join(this.dir, 'kubeconfig') }));
    t.after(() => kube.close());
    return kube;
  }
}

describe('rotunda up --layout kubeadm', () => {
  test('files as kubeadm leaves them, adopted, renewed, its CA replaced, killed on the way, and given back', async t => {
    const up = new Playground(t);
    assert.match(await up.start('--no-adopt'), /^ready: https:\/\/127\.0\.0\.1:\d+, .* stand-ins: .*kube-apiserver/);
    const kube = await up.kube(t);

    await t.test('every file that kubeadm has', () => {
      for (const node of CONTROL_PLANE) {
        const folder = join(up.root(node), 'etc/kubernetes');
        const found = readdirSync(folder, { recursive: true, withFileTypes: true })
          .filter(entry => entry.isFile())
          .map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1));
        const more = node === 'master-0' ? ['super-admin.conf'] : [];
        assert.deepEqual(found.toSorted(), [...PKI_FILES, ...OTHER_FILES, ...more].toSorted());
        const keys = found.filter(file => /\.(?:key|conf|yaml)$/.test(file));
        for (const file of keys) assert.equal(statSync(join(folder, file)).mode & 0o077, 0, `${file} is private`);
      }
      const ofWorker = readdirSync(join(up.root('worker-0'), 'etc/kubernetes'), { recursive: true });
      assert.deepEqual(ofWorker.map(String).toSorted(), ['kubelet.conf', 'manifests', 'pki', 'pki/ca.crt']);
      assert.match(readdirSync(join(up.root('worker-0'), 'var/lib/kubelet/pki')).join(), /kubelet-client-current\.pem/);
      assert.equal(new Set(CONTROL_PLANE.map(node => up.text(node, 'pki/ca.key'))).size, 1);
      const names = certificatesIn(up.text('master-1', 'pki/apiserver.crt'))[0]?.dnsNames ?? [];
      assert.ok(names.includes('kubernetes.default.svc.cluster.local') && names.includes('master-1'));
    });

    await t.test('every object that kubeadm has, and whose admin.conf leads there', async () => {
      const { items } = await kube.list(NODES, { labelSelector: 'node-role.kubernetes.io/control-plane' });
      assert.deepEqual(items.map(({ metadata }) => metadata?.name ?? '').toSorted(), CONTROL_PLANE);
      const data = async (namespace: string, name: string) => (await kube.get(CONFIG_MAPS, { namespace, name })).data;
      assert.match((await data('kube-system', 'kubeadm-config'))?.ClusterConfiguration ?? '', /validityPeriod: 6m5s/i);
      assert.match((await data('kube-public', 'cluster-info'))?.kubeconfig ?? '', /certificate-authority-data/);
      const authentication = await data('kube-system', 'extension-apiserver-authentication');
      assert.equal(authentication?.['client-ca-file'], up.text('master-0', 'pki/ca.crt'));
      const rootCa = await eventually('kube-root-ca.crt', async () =>
        data('kube-system', 'kube-root-ca.crt').catch(() => undefined),
      );
      assert.equal(rootCa['ca.crt'], up.text('master-0', 'pki/ca.crt'));
      const pods = (await kube.list(PODS, { namespace: 'kube-system' })).items;
      assert.equal(pods.length, CONTROL_PLANE.length * 4);
      up.nobodyIsRefused();
    });

    await t.test('kubeadm knows what is there', { skip: missing() }, async () => {
      const root = mkdtempSync(join(tmpdir(), 'rotunda-kubeadm-node-'));
      t.after(() => rmSync(root, { recursive: true, force: true }));
      cpSync(join(up.root('master-0'), 'etc'), join(root, 'etc'), { recursive: true });
      const made = { root, folder: join(root, 'etc/kubernetes'), configuration: {} };
      const { rows } = checkExpiration((findBinaries(['kubeadm']) as { kubeadm: string }).kubeadm, made);
      assert.deepEqual(
        rows.filter(({ missing: isMissing, externallyManaged }) => isMissing || externallyManaged),
        [],
      );
    });

    await t.test('its status names the layout and what only stands in', () => {
      const said = up.succeed('status', '--dir', up.dir);
      assert.match(said, /layout kubeadm/);
      assert.match(said, /stand-ins: .*kube-apiserver, kube-controller-manager, kube-scheduler/);
      assert.match(said, /kubelets .* stand-ins/);
    });

    await t.test('adoption changes no byte', () => {
      const before = up.files();
      up.succeed('adopt', 'kubeadm', '--image', 'rotunda', '--yes');
      assert.deepEqual(up.files(), before);
      assert.match(up.succeed('get', 'certs'), /apiserver@master-1 .*rotunda/);
    });

    await t.test('leaves are renewed when they are due', async () => {
      const before = CONTROL_PLANE.map(node => up.text(node, 'pki/apiserver.crt'));
      up.succeed('adopt', 'kubeadm', '--refresh', EARLY, '--yes');
      await eventually('other leaves everywhere', () =>
        CONTROL_PLANE.every((node, index) => up.text(node, 'pki/apiserver.crt') !== before[index]),
      );
      up.succeed('adopt', 'kubeadm', '--refresh', '0.666', '--yes');
      await quiet(kube);
      up.nobodyIsRefused();
      assert.equal(readFileSync(join(up.dir, 'kubeconfig'), 'utf8'), up.text('master-0', 'admin.conf'));
    });

    await t.test('another CA: distributed, killed at once, signed, and the one before gone', async () => {
      const asked = spawn(process.execPath, [
        main,
        'rotate',
        'ca',
        '--yes',
        '--kubeconfig',
        join(up.dir, 'kubeconfig'),
      ]);
      await eventually('two CAs on a node', () => NODE_NAMES.some(node => up.casOf(node).length === 2));
      await end(asked, 'SIGTERM');
      await up.kill('SIGKILL');
      await up.start();
      up.nobodyIsRefused();
      up.succeed('rotate', 'ca', '--yes');
      up.nobodyIsRefused();
      for (const node of CONTROL_PLANE) assert.match(up.casOf(node).join(), /^kubernetes@\d+,kubernetes$/);
      up.succeed('rotate', 'ca', '--retire', '--yes');
      for (const node of NODE_NAMES) assert.match(up.casOf(node).join(), /^kubernetes@\d+$/);
      up.nobodyIsRefused();
      for (const node of (await (await up.kube(t)).list(NODES)).items) {
        const { processes = {} } = reportOf(node) ?? {};
        const behind = Object.entries(processes).filter(([, process]) => process.behind.length > 0);
        assert.deepEqual(behind, [], `nothing on ${node.metadata?.name} holds what is gone`);
      }
    });

    await t.test('given back: nothing of ours is left, and another start leaves it so', async () => {
      up.succeed('release', 'kubeadm', '--yes');
      for (const node of CONTROL_PLANE) {
        assert.ok(!readdirSync(join(up.root(node), 'etc/kubernetes/pki')).includes('rotunda'));
      }
      await up.kill('SIGTERM');
      const other = up.run('up', '--dir', up.dir);
      assert.notEqual(other.status, 0);
      assert.match(other.stderr, /found one of layout kubeadm/);
    });
  });
});

function missing(): string | false {
  const found = findBinaries(['kubeadm']);
  return 'missing' in found ? found.missing : false;
}

/** Nobody is asked for anything. */
async function quiet(kube: HttpKube): Promise<void> {
  await eventuallyDespiteErrors('a cluster at rest', async () => {
    const status = statusOf(await kube.get(CONFIG_MAPS, CLUSTER_RECORD));
    return status?.adopted === true && status.round === undefined && status.waitingFor.length === 0;
  });
}
