import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { minutes } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import {
  FEATURE_GATES,
  IMAGE_DIGEST_MIRROR_SETS,
  IMAGES,
  NODE_CONFIGS,
} from '../../machine-config-api/cluster-config.ts';
import { decodeDataUrl } from '../../machine-config-api/ignition/data-url.ts';
import type { IgnitionConfig } from '../../machine-config-api/ignition/types.ts';
import {
  KUBELET_CONFIGS,
  MACHINE_CONFIG_POOLS,
  MACHINE_CONFIGS,
  type MachineConfig,
} from '../../machine-config-api/machine-config.ts';
import { GENERATED_BY_CONTROLLER_VERSION, ROLE_LABEL } from '../../machine-config-api/names.ts';
import { customPool, makeOpenShift, RELEASE, TestCluster } from '../testing.ts';

describe('settings of the whole cluster on the API', () => {
  let cluster: TestCluster;
  const settle = () => cluster.pass(minutes(1));
  const names = async () =>
    (await cluster.kube.list(MACHINE_CONFIGS)).items
      .map(({ metadata }) => metadata?.name ?? '')
      .filter(name => /^9\d-/.test(name))
      .sort();
  const config = (name: string) => getIfPresent(cluster.kube, MACHINE_CONFIGS, { name });
  const target = async (pool: string) => (await cluster.pool(pool)).spec?.configuration?.name ?? '';
  function kubeletConf(found: MachineConfig | undefined): Record<string, unknown> {
    const files = (found?.spec?.config as IgnitionConfig | undefined)?.storage?.files;
    const file = files?.find(({ path }) => path === '/etc/kubernetes/kubelet.conf');
    return JSON.parse(decodeDataUrl(file?.contents?.source ?? '')?.toString() ?? '{}') as Record<string, unknown>;
  }

  before(async () => {
    cluster = await TestCluster.create(clock => startEngine({ clock }));
    cluster.startOperator();
    cluster.startController();
    await cluster.kube.create(MACHINE_CONFIG_POOLS, customPool('infra'));
    await settle();
  });
  after(() => cluster.stop());

  test('a cluster that says nothing has none', async () => assert.deepEqual(await names(), []));

  test('mirrors reach built-in pools, and custom pools through worker', async () => {
    const before = await Promise.all(['master', 'worker', 'infra'].map(target));
    await cluster.kube.create(IMAGE_DIGEST_MIRROR_SETS, {
      metadata: { name: 'm' },
      spec: { imageDigestMirrors: [{ source: 'quay.io', mirrors: ['mirror.example.com'] }] },
    });
    await settle();
    assert.deepEqual(await names(), ['99-master-generated-registries', '99-worker-generated-registries']);
    const changed = await Promise.all(['master', 'worker', 'infra'].map(target));
    for (const [index, name] of changed.entries()) assert.notEqual(name, before[index]);
    await cluster.kube.delete(IMAGE_DIGEST_MIRROR_SETS, { name: 'm' });
    await settle();
    assert.deepEqual(await names(), []);
    assert.deepEqual(await Promise.all(['master', 'worker', 'infra'].map(target)), before);
  });

  test('what is refused is told by object and field, and the last good one stays', async () => {
    const setSources = (registrySources: object | null) =>
      cluster.kube.patch(IMAGES, { name: 'cluster' }, { type: 'merge', body: { spec: { registrySources } } });
    await setSources({ blockedRegistries: ['bad.example.com'] });
    await settle();
    const good = (await config('99-worker-generated-registries'))?.metadata?.resourceVersion;
    assert.notEqual(good, undefined);
    await setSources({ allowedRegistries: ['good.example.com'] });
    await settle();
    assert.ok(
      cluster.events.some(
        ({ reason, message }) => reason === 'SettingsRefused' && /spec\.registrySources/.test(message),
      ),
    );
    assert.equal((await config('99-worker-generated-registries'))?.metadata?.resourceVersion, good);
    const { Degraded } = await cluster.clusterOperator();
    assert.equal(Degraded?.status, 'True');
    assert.match(Degraded?.message ?? '', /image\.config\.openshift\.io cluster: spec\.registrySources/);
    await setSources(null);
    await settle();
    assert.equal((await cluster.clusterOperator())['Degraded']?.status, 'False');
    assert.deepEqual(await names(), []);
  });

  test("what the cluster's own release comes from is not blocked, and that is told", async () => {
    await makeOpenShift(cluster.kube, {
      status: { desired: { image: `quay.io/openshift-release-dev/ocp-release@sha256:${'ab'.repeat(32)}` } },
    });
    const registrySources = { blockedRegistries: ['quay.io', 'bad.example.com'] };
    await cluster.kube.patch(IMAGES, { name: 'cluster' }, { type: 'merge', body: { spec: { registrySources } } });
    await settle();
    const { spec } = (await config('99-worker-generated-registries')) ?? {};
    const files = (spec?.config as IgnitionConfig | undefined)?.storage?.files ?? [];
    const texts = files.map(({ contents }) => decodeDataUrl(contents?.source ?? '')?.toString() ?? '').join();
    assert.match(texts, /bad\.example\.com/);
    assert.doesNotMatch(texts, /quay\.io/);
    assert.ok(
      cluster.events.some(
        ({ reason, message }) => reason === 'SettingsIncomplete' && message.startsWith('quay.io: not blocked'),
      ),
    );
    const body = { spec: { registrySources: null } };
    await cluster.kube.patch(IMAGES, { name: 'cluster' }, { type: 'merge', body });
    await settle();
    assert.deepEqual(await names(), []);
  });

  test('how the cluster wants its nodes: workers report more slowly, all boot with the cgroups asked for', async () => {
    await cluster.kube.create(NODE_CONFIGS, {
      metadata: { name: 'cluster' },
      spec: { workerLatencyProfile: 'MediumUpdateAverageReaction', cgroupMode: 'v1' },
    });
    await settle();
    assert.deepEqual(await names(), ['97-master-generated-kubelet', '97-worker-generated-kubelet']);
    const [master, worker] = [await config('97-master-generated-kubelet'), await config('97-worker-generated-kubelet')];
    assert.equal(kubeletConf(worker)['nodeStatusUpdateFrequency'], '20s');
    assert.deepEqual(kubeletConf(master), {});
    for (const found of [master, worker]) {
      assert.deepEqual(found?.spec?.kernelArguments, [
        'systemd.unified_cgroup_hierarchy=0',
        'systemd.legacy_systemd_cgroup_controller=1',
      ]);
    }
  });

  test('feature gates of this release reach every kubelet, those with a KubeletConfig too', async () => {
    const gate = await cluster.kube.create(FEATURE_GATES, { metadata: { name: 'cluster' }, spec: {} });
    const status = {
      featureGates: [
        { version: 'other', enabled: [{ name: 'Wrong' }] },
        { version: RELEASE, enabled: [{ name: 'B' }], disabled: [{ name: 'A' }] },
      ],
    };
    await cluster.kube.updateStatus(FEATURE_GATES, { ...gate, status });
    await cluster.kube.create(KUBELET_CONFIGS, {
      metadata: { name: 'k' },
      spec: {
        machineConfigPoolSelector: { matchLabels: { 'pools.operator.machineconfiguration.openshift.io/worker': '' } },
        kubeletConfig: { maxPods: 300 },
      },
    });
    await settle();
    const gates = { A: false, B: true };
    assert.deepEqual(kubeletConf(await config('98-master-generated-kubelet'))['featureGates'], gates);
    // Whichever of them comes last has all of it.
    for (const name of ['98-worker-generated-kubelet', '99-worker-generated-kubelet']) {
      const found = kubeletConf(await config(name));
      assert.deepEqual([found['featureGates'], found['nodeStatusUpdateFrequency']], [gates, '20s'], name);
    }
  });

  test('one of a custom pool that another program made goes: it would keep the pool from being rendered', async () => {
    await cluster.kube.create(MACHINE_CONFIGS, {
      metadata: {
        name: '98-infra-generated-kubelet',
        labels: { [ROLE_LABEL]: 'infra' },
        annotations: { [GENERATED_BY_CONTROLLER_VERSION]: 'another' },
      },
      spec: {},
    });
    await settle();
    assert.equal(await config('98-infra-generated-kubelet'), undefined);
    const { status } = await cluster.pool('infra');
    assert.equal(status?.conditions?.find(({ type }) => type === 'RenderDegraded')?.status, 'False');
  });

  test('at rest nothing is written', async () => {
    const versions = async () =>
      (await cluster.kube.list(MACHINE_CONFIGS)).items.map(({ metadata }) => metadata?.resourceVersion);
    const before = await versions();
    await cluster.pass(minutes(25));
    assert.deepEqual(await versions(), before);
  });
});
