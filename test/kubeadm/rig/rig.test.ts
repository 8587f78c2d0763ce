/** The rig itself: what it starts is a cluster that kubeadm is content with, and nothing of it stays (spec 80). */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { NODES, PODS } from '../../../src/kube/resource.ts';
import { KUBERNETES_VERSION } from '../../../src/local/real/built-programs.ts';
import type { ExpirationRow } from '../../cluster/kubeadm-program.ts';
import { eventuallyDespiteErrors as eventually } from '../../tools/eventually.ts';
import { type Rig, rigProblem, startRig } from './rig.ts';
import type { RigNode } from './rig-node.ts';
import { addRotundaImage } from './rotunda-image.ts';

const ROTUNDA = 'localhost/rotunda:test';
/** A program for Node that asks for the version as any client in a pod does, and leaves it as the last word of its container. */
const ASK = `
  const fs = require('node:fs');
  const account = name => fs.readFileSync('/var/run/secrets/kubernetes.io/serviceaccount/' + name, 'utf8');
  const options = { ca: account('ca.crt'), headers: { authorization: 'Bearer ' + account('token') } };
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  require('node:https').get('https://' + host + ':' + port + '/version', options, answer => {
    let text = '';
    answer.on('data', part => (text += part));
    answer.on('end', () => fs.writeFileSync('/dev/termination-log', JSON.parse(text).gitVersion));
  });
`;
const problem = await rigProblem();
const tell = (line: string) => console.log(`rig: ${line}`);

describe('a cluster that kubeadm makes', { skip: problem ?? false }, () => {
  test('one node: it is ready, kubeadm knows its certificates, its kubelet obeys, and nothing stays', async () => {
    const before = traces();
    const rig = await startRig({ tell });
    try {
      const [node] = rig.nodes as [RigNode];
      await certificatesAreGood(rig, node);

      const first = node.kubelet.pid;
      await node.kubelet.restart();
      assert.equal(await node.kubelet.isRunning(), true);
      assert.notEqual(node.kubelet.pid, first);
      await node.kubelet.stop();
      assert.equal(await node.kubelet.isRunning(), false);
      assert.equal(node.kubelet.pid, undefined);
      await node.kubelet.start();

      assert.ok((await node.kill('kube-apiserver')) > 0);
      await eventually('the API after its death', () => rig.kube.list(NODES, {}));
      await node.cutPower();
      await eventually(
        'the API after a power cut',
        () => rig.kube.list(NODES, {}),
        () => node.log(),
      );
    } finally {
      await rig.close();
    }
    assert.deepEqual(traces(), before);
  });

  test('three control-plane nodes and a worker that joined: all are ready, a pod meets the API, which outlives one of them', async () => {
    const before = traces();
    const rig = await startRig({ controlPlanes: 3, workers: 1, tell });
    try {
      assert.deepEqual(
        rig.nodes.map(({ name }) => name),
        ['cp-0', 'cp-1', 'cp-2', 'worker-0'],
      );
      const controlPlane = rig.nodes.filter(({ role }) => role === 'control-plane');
      for (const node of controlPlane) await certificatesAreGood(rig, node);
      await eventually('twelve static pods to be ready', async () => (await readyStaticPods(rig)).length === 12);

      await addRotundaImage(rig, ROTUNDA);
      assert.equal(await askedInPod(rig), KUBERNETES_VERSION);

      await (rig.nodes[0] as RigNode).switchOff();
      for (let asked = 0; asked < 20; asked++) {
        await eventually('the API without one of three', () => rig.kube.list(NODES, {}));
      }
    } finally {
      await rig.close();
    }
    assert.deepEqual(traces(), before);
  });
});

/** What a pod on a worker, with the token and the CA that every pod gets, is told by the service `kubernetes`. */
async function askedInPod(rig: Rig): Promise<string | undefined> {
  const key = { namespace: 'default', name: 'asks' };
  await rig.kube.create(PODS, {
    metadata: key,
    spec: {
      restartPolicy: 'Never',
      containers: [{ name: 'asks', image: ROTUNDA, imagePullPolicy: 'Never', command: ['/bin/node', '-e', ASK] }],
    },
  });
  const ended = await eventually(
    'the pod to end',
    async () => {
      const { status } = await rig.kube.get(PODS, key);
      return status?.containerStatuses?.[0]?.state?.terminated;
    },
    async () => JSON.stringify((await rig.kube.get(PODS, key)).status),
  );
  return ended.message;
}

async function certificatesAreGood(rig: Rig, node: RigNode): Promise<void> {
  const { code, stdout, stderr } = await rig.kubeadm(node, ['certs', 'check-expiration', '-o', 'json']);
  assert.equal(code, 0, stderr);
  const { certificates, certificateAuthorities } = JSON.parse(stdout) as Record<string, ExpirationRow[]>;
  const rows = [...(certificates ?? []), ...(certificateAuthorities ?? [])].filter(({ missing }) => !missing);
  // Only the first node has super-admin.conf.
  assert.equal(rows.length, node === rig.nodes[0] ? 14 : 13);
  assert.ok(rows.every(({ externallyManaged, expirationDate }) => !externallyManaged && expirationDate !== null));
}

async function readyStaticPods(rig: Rig): Promise<string[]> {
  const { items } = await rig.kube.list(PODS, { namespace: 'kube-system', labelSelector: 'tier=control-plane' });
  const isReady = (pod: (typeof items)[number]) =>
    pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
  return items.filter(isReady).map(({ metadata }) => metadata?.name ?? '');
}

/** All that a rig of this process may leave on this machine. */
function traces(): Record<string, readonly string[]> {
  const mine = new RegExp(`rotunda-nspawn-${process.pid}-|rk${process.pid}-|vb-k${process.pid.toString(36)}-`);
  return {
    processes: readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(pid => read(`/proc/${pid}/cmdline`))
      .filter(text => mine.test(text)),
    mounts: read('/proc/self/mounts')
      .split('\n')
      .filter(line => mine.test(line)),
    links: execFileSync('ip', ['-o', 'link'], { encoding: 'utf8' })
      .split('\n')
      .filter(line => mine.test(line)),
    directories: globSync(join(tmpdir(), `rotunda-*`)).filter(path => mine.test(path)),
    cgroups: globSync(`/sys/fs/cgroup/**/rotunda-nspawn-${process.pid}-*`),
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
