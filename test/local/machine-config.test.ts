import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { CONFIG_MAPS, NODES } from '../../src/kube/resource.ts';
import { startLocalCluster } from '../../src/local/cluster.ts';
import { kubeApiserverPart } from '../../src/local/kube-apiserver-part.ts';
import { kubeletPart } from '../../src/local/kubelet-part.ts';
import { machineConfigPart } from '../../src/local/machine-config-part.ts';
import { certificate } from '../../src/machine-config/testing.ts';
import { IMAGE_DIGEST_MIRROR_SETS, SCHEDULERS } from '../../src/machine-config-api/cluster-config.ts';
import { KUBELET_CONFIGS, MACHINE_CONFIG_POOLS, MACHINE_CONFIGS } from '../../src/machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DAEMON_STATE } from '../../src/machine-config-api/names.ts';
import { eventually } from '../tools/eventually.ts';

const run = promisify(execFile);
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const WORKER = 'worker-0';

test('settings of the cluster reach local nodes: crio is reloaded, maxPods counts, agents can be read', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-machine-config-'));
  const cluster = await startLocalCluster({
    dir,
    controlPlane: 1,
    workers: 1,
    keyAlgorithm: 'P-256',
    programs: { useRealBinaries: false },
    parts: [kubeApiserverPart, machineConfigPart, kubeletPart],
  });
  t.after(async () => {
    await cluster.close();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  });
  const { kube } = cluster;
  await cluster.ready();
  const services = () => readFileSync(join(dir, 'nodes', WORKER, 'var/log/rotunda/services.log'), 'utf8');
  const worker = () => kube.get(NODES, { name: WORKER });
  const current = async () => (await worker()).metadata?.annotations?.[CURRENT_CONFIG] ?? '';
  /** The worker has gone over to another config, and its pool is content. */
  const updatedFrom = (before: string) =>
    eventually('the worker has the next config', async () => {
      const { metadata } = await worker();
      const state = metadata?.annotations?.[DAEMON_STATE];
      assert.notEqual(state, 'Degraded', metadata?.annotations?.['machineconfiguration.openshift.io/reason']);
      const { spec, status } = await kube.get(MACHINE_CONFIG_POOLS, { name: 'worker' });
      const wanted = spec?.configuration?.name ?? '';
      return wanted !== before && (await current()) === wanted && state === 'Done' && status?.updatedMachineCount === 1;
    });

  await t.test('a mirror of images reloads crio', async () => {
    const before = await current();
    await kube.create(IMAGE_DIGEST_MIRROR_SETS, {
      metadata: { name: 'mirrors' },
      spec: { imageDigestMirrors: [{ source: 'quay.io/a', mirrors: ['mirror.example.com/a'] }] },
    });
    await updatedFrom(before);
    assert.match(services(), /reload crio\.service/);
  });

  await t.test('a CA of the user restarts crio', async () => {
    const before = await current();
    await kube.create(CONFIG_MAPS, {
      metadata: { namespace: 'openshift-config', name: 'user-ca-bundle' },
      data: { 'ca-bundle.crt': await certificate('user-ca') },
    });
    await updatedFrom(before);
    assert.match(services(), /restart crio\.service/);
  });

  await t.test("a node is of the 9 series for 4.16's agents, which read its version from behind their own", () => {
    const text = readFileSync(join(dir, 'nodes', WORKER, 'etc/os-release'), 'utf8');
    const fields = new Map(text.split('\n').map(line => line.replaceAll('"', '').split('=') as [string, string]));
    assert.equal(fields.get('VERSION')?.replace(`${fields.get('OPENSHIFT_VERSION')?.replace('.', '')}.`, ''), '9');
  });

  await t.test("keys of administrators are where 4.16's agents put them", async () => {
    const before = await current();
    await kube.create(MACHINE_CONFIGS, {
      metadata: { name: '99-worker-ssh', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      spec: {
        config: {
          ignition: { version: '3.2.0' },
          passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA admin'] }] },
        },
      },
    });
    await updatedFrom(before);
    const keys = join(dir, 'nodes', WORKER, 'home/core/.ssh/authorized_keys.d/ignition');
    assert.equal(readFileSync(keys, 'utf8'), 'ssh-ed25519 AAAA admin\n');
  });

  await t.test('ordinary pods run on workers, and on the control plane when the scheduler says so', async () => {
    const master = async () => {
      const { metadata, spec } = await kube.get(NODES, { name: 'master-0' });
      const isTainted = spec?.taints?.some(({ key }) => key === 'node-role.kubernetes.io/master') ?? false;
      return { isTainted, isWorker: metadata?.labels?.['node-role.kubernetes.io/worker'] === '' };
    };
    const scheduler = { name: 'cluster' };
    assert.equal((await kube.get(SCHEDULERS, scheduler)).spec?.mastersSchedulable, false);
    await eventually('the master is tainted', async () => (await master()).isTainted);
    await kube.patch(SCHEDULERS, scheduler, { type: 'merge', body: { spec: { mastersSchedulable: true } } });
    await eventually('the master takes pods', async () => {
      const { isTainted, isWorker } = await master();
      return isWorker && !isTainted;
    });
  });

  await t.test('allocatable pods follow maxPods', async () => {
    const pods = async () => (await worker()).status?.allocatable?.['pods'];
    assert.equal(await pods(), '250');
    await kube.patch(
      MACHINE_CONFIG_POOLS,
      { name: 'worker' },
      { type: 'merge', body: { metadata: { labels: { pods: 'few' } } } },
    );
    await kube.create(KUBELET_CONFIGS, {
      metadata: { name: 'few-pods' },
      spec: { machineConfigPoolSelector: { matchLabels: { pods: 'few' } }, kubeletConfig: { maxPods: 77 } },
    });
    await eventually('maxPods counts', async () => (await pods()) === '77');
  });

  await t.test('kubectl logs', { skip: hasKubectl ? false : 'kubectl is not installed' }, async () => {
    const args = ['--kubeconfig', join(dir, 'kubeconfig'), '-n', 'openshift-machine-config-operator'];
    const [pod = ''] = (
      await run('kubectl', [
        ...args,
        'get',
        'pods',
        '-l',
        'k8s-app=machine-config-daemon',
        `--field-selector=spec.nodeName=${WORKER}`,
        '-o',
        'name',
      ])
    ).stdout.split('\n');
    const { stdout } = await run('kubectl', [...args, 'logs', pod, '-c', 'machine-config-daemon']);
    assert.match(stdout, /Performing post config change action: reload/);
  });
});
