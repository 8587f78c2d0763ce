/**
 * The life of a cluster that kubeadm made, on the rig of real parts: adopted without a change, all leaves renewed, two new CAs handed
 * over. Meanwhile somebody lists, updates and watches all the time, and nobody may be refused (spec 80).
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { HttpKube } from '../../src/kube/client.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, PODS } from '../../src/kube/resource.ts';
import { CLUSTER_RECORD, type ClusterStatus, statusOf } from '../../src/kubeadm/cluster-record.ts';
import { PKI_NAMESPACE } from '../../src/kubeadm/names.ts';
import { type LeafSight, NODE_REPORT, reportOf } from '../../src/kubeadm/report.ts';
import { readCertificates } from '../../src/pki/pem.ts';
import type { ExpirationRow } from '../cluster/kubeadm-program.ts';
import { ApiLoad } from '../cluster/real-load.ts';
import { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
import { type Rig, rigProblem, startRig } from './rig/rig.ts';
import type { RigNode } from './rig/rig-node.ts';
import { addRotundaImage } from './rig/rotunda-image.ts';

const MAIN = join(import.meta.dirname, '../../src/cli/main.ts');
/** What follows a hand-over has as long as the whole file. */
const COMMAND_LIMIT_MS = 25 * 60_000;
/** A leaf is made five minutes back: one that is this part of a year old has been there for a quarter of a minute. */
const AT_ONCE = '0.00001';
const USUAL = '0.666';
const LOAD_NAMESPACE = 'load';
const ROTUNDA_IMAGE = 'registry.local/rotunda:test';
const controlPlanes = Number(process.env.ROTUNDA_CONTROL_PLANES ?? 1);
const problem = await rigProblem();
/** With the file of the first node, as it is at every moment. */
let kube: HttpKube;
const tell = (line: string) => console.log(`rig: ${line}`);

describe('the life of a cluster that kubeadm made', { skip: problem ?? false }, () => {
  let rig: Rig;
  let load: ApiLoad;

  before(async () => {
    rig = await startRig({ controlPlanes, workers: 1, tell });
    await addRotundaImage(rig, ROTUNDA_IMAGE);
    kube = new HttpKube(await loadAccess({ path: adminOf(rig) }));
    await kube.create(NAMESPACES, { metadata: { name: LOAD_NAMESPACE } });
    load = new ApiLoad(LOAD_NAMESPACE, [{ name: 'admin', access: await loadAccess({ path: adminOf(rig) }) }]);
  });

  after(async () => {
    await load?.stop();
    await kube?.close();
    await rig?.close();
  });

  test('adopting changes no file, and a second time nothing at all', async () => {
    const files = await filesOf(rig);
    const output = await rotunda(rig, 'adopt', 'kubeadm', '--image', ROTUNDA_IMAGE, '--yes');
    assert.match(output, /adopted/i);
    assert.deepEqual(await filesOf(rig), files);
    await rotunda(rig, 'adopt', 'kubeadm', '--yes');
    assert.deepEqual(await filesOf(rig), files);
    assert.deepEqual((await statusIn()).differences, []);
    await isKnownToKubeadm(rig);
  });

  test('all leaves are renewed, one control-plane node after the other, and are what kubeadm expects', async () => {
    const before = await leavesOf();
    await rotunda(rig, 'adopt', 'kubeadm', '--refresh', AT_ONCE, '--yes');
    await eventually(
      'all leaves of control-plane nodes to be others',
      async () => {
        const now = await leavesOf();
        return [...before].every(
          ([name, { digest }]) => name.endsWith('kubelet.conf') || now.get(name)?.digest !== digest,
        );
      },
      () => storyOf(rig),
    );
    await rotunda(rig, 'adopt', 'kubeadm', '--refresh', USUAL, '--yes');
    await isQuiet(rig);
    await isKnownToKubeadm(rig);
    refusedNobody(load);
  });

  test('kubeadm renews by hand in between: it is taken as it is', async () => {
    for (const node of controlPlaneOf(rig)) {
      const { code, stderr } = await rig.kubeadm(node, ['certs', 'renew', 'all']);
      assert.equal(code, 0, stderr);
    }
    const renewed = await certificatesOnDisk(rig);
    await isQuiet(rig);
    assert.deepEqual(await certificatesOnDisk(rig), renewed);
    refusedNobody(load);
  });

  test('a hand-over of the CA that is taken back leaves every file as it was', async () => {
    const files = await filesOf(rig);
    await rotunda(rig, 'rotate', 'ca', '--yes', '--no-follow');
    await eventually(
      'both CAs on the first node',
      async () => {
        const [node] = controlPlaneOf(rig) as [RigNode];
        return readCertificates(await node.read('/etc/kubernetes/pki/ca.crt')).certificates.length === 2;
      },
      () => storyOf(rig),
    );
    await rotunda(rig, 'rotate', 'ca', '--take-back', '--yes');
    await isQuiet(rig);
    assert.deepEqual(await filesOf(rig), files);
    refusedNobody(load);
  });

  for (const ca of ['ca', 'front-proxy-ca'] as const) {
    test(`a new ${ca} is handed over, and kubeadm knows it`, async () => {
      const [first] = controlPlaneOf(rig) as [RigNode];
      const read = async () => readCertificates(await first.read(`/etc/kubernetes/pki/${ca}.crt`)).certificates;
      const [old] = await read();
      await rotunda(rig, 'rotate', ca, '--yes');
      const both = await read();
      assert.equal(both.length, 2);
      assert.notEqual(both[0]?.subject.commonName, old?.subject.commonName);
      assert.ok(both[1]?.der.equals(old?.der ?? Buffer.of()));
      await isKnownToKubeadm(rig);
      refusedNobody(load);
    });
  }
});

/** Runs a command as a person does on the first node; fails with what it said. */
async function rotunda(rig: Rig, ...args: string[]): Promise<string> {
  const child = spawn(process.execPath, [MAIN, ...args, '--kubeconfig', adminOf(rig)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: COMMAND_LIMIT_MS,
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', code => {
      tell(`rotunda ${args.join(' ')}: ${code}`);
      resolve(code);
    });
  });
  if (code === 0) return text;
  throw new Error(`rotunda ${args.join(' ')} ended with ${code}: ${text}\n${await storyOf(rig)}`);
}

/** The file on the first node, which is renewed and gets a new CA; copies of it do not. */
function adminOf({ nodes }: Rig): string {
  return join((nodes[0] as RigNode).root, 'etc/kubernetes/admin.conf');
}

function controlPlaneOf(rig: Rig): RigNode[] {
  return rig.nodes.filter(({ role }) => role === 'control-plane');
}

/** Content, mode and owner of everything that kubeadm or a kubelet has written. */
async function filesOf(rig: Rig): Promise<string> {
  const list = 'find /etc/kubernetes /var/lib/kubelet/pki -type f -printf "%p %m %u %g " -exec sha256sum {} ";" | sort';
  const of = async (node: RigNode) => `${node.name}\n${await node.output('sh', '-c', list)}`;
  return (await Promise.all(rig.nodes.map(of))).join('\n');
}

async function certificatesOnDisk(rig: Rig): Promise<string> {
  const list = 'cd /etc/kubernetes && sha256sum pki/*.crt pki/etcd/*.crt *.conf';
  const of = async (node: RigNode) => `${node.name}\n${await node.output('sh', '-c', list)}`;
  return (await Promise.all(controlPlaneOf(rig).map(of))).join('\n');
}

async function statusIn(): Promise<ClusterStatus> {
  const status = statusOf(await kube.get(CONFIG_MAPS, CLUSTER_RECORD));
  if (status === undefined) throw new Error('the operator says nothing');
  return status;
}

/** Nobody is asked for anything, nothing is behind, and it stays so. */
async function isQuiet(rig: Rig): Promise<void> {
  await eventually(
    'a cluster at rest',
    async () => {
      const { round, waitingFor, adopted } = await statusIn();
      const { items } = await kube.list(NODES, {});
      const behind = items.flatMap(node =>
        Object.values(reportOf(node)?.processes ?? {}).flatMap(({ behind }) => behind),
      );
      return adopted && round === undefined && waitingFor.length === 0 && behind.length === 0;
    },
    () => storyOf(rig),
  );
}

/** Every leaf of every node, by both names. */
async function leavesOf(): Promise<Map<string, LeafSight>> {
  const { items } = await kube.list(NODES, {});
  return new Map(
    items.flatMap(node =>
      Object.entries(reportOf(node)?.leaves ?? {}).map(
        ([name, leaf]) => [`${node.metadata?.name} ${name}`, leaf] as const,
      ),
    ),
  );
}

async function isKnownToKubeadm(rig: Rig): Promise<void> {
  for (const node of controlPlaneOf(rig)) {
    const { code, stdout, stderr } = await rig.kubeadm(node, ['certs', 'check-expiration', '-o', 'json']);
    assert.equal(code, 0, stderr);
    const { certificates = [], certificateAuthorities = [] } = JSON.parse(stdout) as Record<string, ExpirationRow[]>;
    const said = new Map([...certificates, ...certificateAuthorities].map(row => [row.name, row] as const));
    const report = reportOf(await kube.get(NODES, { name: node.name }));
    for (const [name, { notAfter }] of Object.entries(report?.leaves ?? {})) {
      if (name === 'kubelet.conf') continue;
      assert.equal(Date.parse(said.get(name)?.expirationDate ?? ''), Date.parse(notAfter), `${name} on ${node.name}`);
    }
    assert.ok([...said.values()].every(({ externallyManaged }) => !externallyManaged));
  }
}

function refusedNobody(load: ApiLoad): void {
  const { failures, refusals } = load.report();
  assert.deepEqual({ failures, refusals }, { failures: [], refusals: [] });
}

/** What everybody says of the state of affairs, for whoever looks for a reason. */
async function storyOf(rig: Rig): Promise<string> {
  const tolerant = async (what: string, find: () => Promise<string>) => `${what}: ${await find().catch(String)}`;
  const nodes = async () => {
    const { items } = await kube.list(NODES, {});
    return items.map(node => `${node.metadata?.name}: ${node.metadata?.annotations?.[NODE_REPORT]}`).join('\n');
  };
  const wanted = async () => {
    const { items } = await kube.list(CONFIG_MAPS, { namespace: PKI_NAMESPACE });
    return items.map(({ metadata, data }) => `${metadata?.name}: ${JSON.stringify(data).slice(0, 6000)}`).join('\n');
  };
  const pods = async () => {
    const { items } = await kube.list(PODS, {});
    return items
      .map(({ metadata, status }) => `${metadata?.name} ${JSON.stringify(status?.containerStatuses)}`)
      .join('\n');
  };
  const logs = rig.nodes.map(node =>
    tolerant(`log of ${node.name}`, () => node.output('sh', '-c', 'tail -n 30 /var/log/containers/kubeadm-*.log')),
  );
  return (
    await Promise.all([tolerant('nodes', nodes), tolerant('wanted', wanted), tolerant('pods', pods), ...logs])
  ).join('\n\n');
}
