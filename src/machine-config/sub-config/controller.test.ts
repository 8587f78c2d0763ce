import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { minutes } from '../../kube/duration.ts';
import { isNotFound } from '../../kube/error.ts';
import { API_SERVERS } from '../../machine-config-api/cluster-config.ts';
import { decodeDataUrl } from '../../machine-config-api/ignition/data-url.ts';
import type { IgnitionConfig } from '../../machine-config-api/ignition/types.ts';
import {
  CONTAINER_RUNTIME_CONFIGS,
  KUBELET_CONFIGS,
  MACHINE_CONFIG_POOLS,
  MACHINE_CONFIGS,
} from '../../machine-config-api/machine-config.ts';
import { NAME_SUFFIX } from '../../machine-config-api/names.ts';
import { TestCluster } from '../testing.ts';

const POOL_SELECTOR = { matchLabels: { 'pools.operator.machineconfiguration.openshift.io/worker': '' } };

describe('KubeletConfig and ContainerRuntimeConfig on the API', () => {
  let cluster: TestCluster;
  const deleted: string[] = [];
  const settle = () => cluster.pass(minutes(1));
  const names = async () =>
    (await cluster.kube.list(MACHINE_CONFIGS)).items
      .map(({ metadata }) => metadata?.name ?? '')
      .filter(name => name.startsWith('99-'))
      .sort();
  async function file(config: string, path: string): Promise<string> {
    const { spec } = await cluster.kube.get(MACHINE_CONFIGS, { name: config });
    const found = (spec?.config as IgnitionConfig | undefined)?.storage?.files?.find(each => each.path === path);
    return decodeDataUrl(found?.contents?.source ?? '')?.toString('utf8') ?? '';
  }
  const kubeletConf = async (config: string) =>
    JSON.parse(await file(config, '/etc/kubernetes/kubelet.conf')) as Record<string, unknown>;
  const target = async () => (await cluster.pool('worker')).spec?.configuration?.name;
  const lastCondition = async (name: string) =>
    (await cluster.kube.get(KUBELET_CONFIGS, { name })).status?.conditions?.at(-1);

  before(async () => {
    cluster = await TestCluster.create(clock => startEngine({ clock }));
    cluster.startOperator();
    const record = (verb: string, [resource, key]: readonly unknown[]) => {
      if (verb === 'delete' && resource === MACHINE_CONFIGS) deleted.push((key as { name: string }).name);
    };
    cluster.startController(cluster.watched(record));
    await settle();
  });
  after(() => cluster.stop());

  test('a KubeletConfig becomes a config of its pool and is rendered', async () => {
    const before = await target();
    await cluster.kube.create(KUBELET_CONFIGS, {
      metadata: { name: 'first' },
      spec: {
        machineConfigPoolSelector: POOL_SELECTOR,
        kubeletConfig: { maxPods: 500, protectKernelDefaults: false, systemReserved: { memory: '2Gi' } },
        logLevel: 5,
      },
    });
    await settle();
    assert.deepEqual(await names(), ['99-worker-generated-kubelet']);
    const conf = await kubeletConf('99-worker-generated-kubelet');
    assert.equal(conf['maxPods'], 500);
    assert.equal(conf['protectKernelDefaults'], undefined);
    assert.deepEqual(conf['authentication'], {
      x509: { clientCAFile: '/etc/kubernetes/kubelet-ca.crt' },
      webhook: { cacheTTL: '0s' },
      anonymous: { enabled: false },
    });
    assert.match(
      await file('99-worker-generated-kubelet', '/etc/node-sizing-enabled.env'),
      /SYSTEM_RESERVED_MEMORY=2Gi/,
    );
    assert.match(
      await file('99-worker-generated-kubelet', '/etc/systemd/system/kubelet.service.d/20-logging.conf'),
      /KUBELET_LOG_LEVEL=5/,
    );
    assert.equal((await lastCondition('first'))?.type, 'Success');
    assert.notEqual(await target(), before);
  });

  test('further ones get a number, which they keep', async () => {
    await cluster.kube.create(KUBELET_CONFIGS, {
      metadata: { name: 'second' },
      spec: { machineConfigPoolSelector: POOL_SELECTOR, kubeletConfig: { maxPods: 300 } },
    });
    await settle();
    assert.deepEqual(await names(), ['99-worker-generated-kubelet', '99-worker-generated-kubelet-1']);
    await cluster.kube.delete(KUBELET_CONFIGS, { name: 'first' });
    await settle();
    assert.deepEqual(await names(), ['99-worker-generated-kubelet-1']);
    await assert.rejects(cluster.kube.get(KUBELET_CONFIGS, { name: 'first' }), isNotFound);
    assert.equal(
      (await cluster.kube.get(KUBELET_CONFIGS, { name: 'second' })).metadata?.annotations?.[NAME_SUFFIX],
      '1',
    );
  });

  test('one for several pools has a name of its own in each, keeps it, and gives back what it no longer needs', async t => {
    const pools = (selected: string) => ({ matchLabels: { [selected]: '' } });
    for (const [name, labels] of [
      ['a', ['all', 'only-a']],
      ['b', ['all', 'only-b']],
    ] as const) {
      await cluster.kube.create(MACHINE_CONFIG_POOLS, {
        metadata: { name, labels: Object.fromEntries(labels.map(label => [label, ''])) },
        spec: {},
      });
    }
    const make = (name: string, selected: string) =>
      cluster.kube.create(KUBELET_CONFIGS, {
        metadata: { name },
        spec: { machineConfigPoolSelector: pools(selected), kubeletConfig: { maxPods: 100 } },
      });
    const owners = async () =>
      Object.fromEntries(
        (await cluster.kube.list(MACHINE_CONFIGS)).items
          .filter(({ metadata }) => /^99-[ab]-/.test(metadata?.name ?? ''))
          .map(({ metadata }) => [metadata?.name, metadata?.ownerReferences?.map(({ name }) => name).join()]),
      );
    const remove = async (...names: string[]) => {
      for (const name of names) await cluster.kube.delete(KUBELET_CONFIGS, { name });
      await settle();
      assert.deepEqual(await owners(), {});
      deleted.length = 0;
    };
    /** Changes an object and makes sure that this arrives, and nothing was deleted for it. */
    const touch = async (name: string, ...configs: string[]) => {
      const body = { spec: { kubeletConfig: { maxPods: 101 } } };
      await cluster.kube.patch(KUBELET_CONFIGS, { name }, { type: 'merge', body });
      await settle();
      for (const config of configs) assert.equal((await kubeletConf(config))['maxPods'], 101, config);
      const { metadata, status } = await cluster.kube.get(KUBELET_CONFIGS, { name });
      assert.equal(status?.observedGeneration, metadata?.generation);
      assert.deepEqual(deleted, []);
    };
    deleted.length = 0;
    await t.test('the suffix of the first pool is taken in the second', async () => {
      await make('k1', 'only-b');
      await settle();
      await make('k2', 'all');
      await settle();
      const expected = {
        '99-a-generated-kubelet': 'k2',
        '99-b-generated-kubelet': 'k1',
        '99-b-generated-kubelet-1': 'k2',
      };
      assert.deepEqual(await owners(), expected);
      await touch('k2', '99-a-generated-kubelet', '99-b-generated-kubelet-1');
      assert.deepEqual(await owners(), expected);
    });
    await t.test('a name goes with its pool: whoever gets it next keeps it', async () => {
      const body = { spec: { machineConfigPoolSelector: { matchLabels: { all: null, 'only-a': '' } } } };
      await cluster.kube.patch(KUBELET_CONFIGS, { name: 'k2' }, { type: 'merge', body });
      await settle();
      await make('k3', 'only-b');
      await settle();
      const expected = { '99-b-generated-kubelet': 'k1', '99-b-generated-kubelet-1': 'k3' };
      assert.deepEqual(await owners(), { '99-a-generated-kubelet': 'k2', ...expected });
      deleted.length = 0;
      await cluster.kube.delete(KUBELET_CONFIGS, { name: 'k2' });
      await settle();
      assert.deepEqual(await owners(), expected);
      assert.deepEqual(deleted, ['99-a-generated-kubelet']);
      await remove('k1', 'k3');
    });
    await t.test('the suffix of the first pool is free in the second', async () => {
      await make('k1', 'only-a');
      await settle();
      await make('k2', 'all');
      await settle();
      const expected = {
        '99-a-generated-kubelet': 'k1',
        '99-a-generated-kubelet-1': 'k2',
        '99-b-generated-kubelet-1': 'k2',
      };
      assert.deepEqual(await owners(), expected);
      await touch('k2', '99-a-generated-kubelet-1', '99-b-generated-kubelet-1');
      assert.deepEqual(await owners(), expected);
      await remove('k1', 'k2');
    });
    await t.test('two at the same time', async () => {
      await Promise.all([make('k1', 'only-a'), make('k2', 'only-a')]);
      await settle();
      assert.deepEqual(new Set(Object.values(await owners())), new Set(['k1', 'k2']));
      await remove('k1', 'k2');
    });
    for (const name of ['a', 'b']) await cluster.kube.delete(MACHINE_CONFIG_POOLS, { name });
  });

  test("the API server's TLS profile counts where there is no other", async () => {
    await cluster.kube.create(API_SERVERS, {
      metadata: { name: 'cluster' },
      spec: {
        tlsSecurityProfile: {
          type: 'Custom',
          custom: { ciphers: ['ECDHE-RSA-AES128-GCM-SHA256', 'UNKNOWN'], minTLSVersion: 'VersionTLS11' },
        },
      },
    });
    await settle();
    const conf = await kubeletConf('99-worker-generated-kubelet-1');
    assert.equal(conf['tlsMinVersion'], 'VersionTLS11');
    assert.deepEqual(conf['tlsCipherSuites'], ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256']);
  });

  test('one that is forbidden is refused with its field, and holds back no rendering of others', async t => {
    const refused: [string, object, RegExp][] = [
      ['dns', { kubeletConfig: { clusterDNS: ['1.1.1.1'] } }, /KubeletConfiguration: clusterDNS is not allowed/],
      ['level', { logLevel: 11 }, /LogLevel is not valid \[1,10\]: 11/],
      ['type', { kubeletConfig: { maxPods: '500' } }, /cannot unmarshal string into .*maxPods of type int32$/],
      [
        'both',
        { autoSizingReserved: true, kubeletConfig: { systemReserved: { cpu: '1' } } },
        /systemdReserved cannot be set together/,
      ],
    ];
    for (const [name, spec, field] of refused) {
      await t.test(name, async () => {
        await cluster.kube.create(KUBELET_CONFIGS, {
          metadata: { name },
          spec: { machineConfigPoolSelector: POOL_SELECTOR, ...spec },
        });
        await settle();
        const condition = await lastCondition(name);
        assert.equal(condition?.type, 'Failure');
        assert.match(condition?.message ?? '', field);
        await cluster.kube.delete(KUBELET_CONFIGS, { name });
        await settle();
      });
    }
    await cluster.kube.create(KUBELET_CONFIGS, { metadata: { name: 'nobody' }, spec: { kubeletConfig: {} } });
    await settle();
    assert.match((await lastCondition('nobody'))?.message ?? '', /does not match any MachineConfigPools/);
    await cluster.kube.delete(KUBELET_CONFIGS, { name: 'nobody' });
  });

  test('a ContainerRuntimeConfig becomes drop-ins; a pool it no longer selects loses them', async () => {
    const settings = {
      pidsLimit: 2048,
      logSizeMax: '16Ki',
      overlaySize: '8Gi',
      logLevel: 'debug',
      defaultRuntime: 'crun',
    };
    await cluster.kube.create(CONTAINER_RUNTIME_CONFIGS, {
      metadata: { name: 'r' },
      spec: { machineConfigPoolSelector: POOL_SELECTOR, containerRuntimeConfig: settings },
    });
    await settle();
    const name = '99-worker-generated-containerruntime';
    assert.ok((await names()).includes(name));
    assert.match(await file(name, '/etc/crio/crio.conf.d/01-ctrcfg-logSizeMax'), /log_size_max = 16384/);
    assert.match(await file(name, '/etc/containers/storage.conf'), /size = "8589934592"/);
    const master = { matchLabels: { 'pools.operator.machineconfiguration.openshift.io/master': '' } };
    await cluster.kube.patch(
      CONTAINER_RUNTIME_CONFIGS,
      { name: 'r' },
      {
        type: 'merge',
        body: {
          spec: {
            machineConfigPoolSelector: {
              matchLabels: { 'pools.operator.machineconfiguration.openshift.io/worker': null, ...master.matchLabels },
            },
          },
        },
      },
    );
    await settle();
    assert.ok(!(await names()).includes(name));
    assert.ok((await names()).includes('99-master-generated-containerruntime'));
    await cluster.kube.delete(CONTAINER_RUNTIME_CONFIGS, { name: 'r' });
    await settle();
    assert.deepEqual(
      (await names()).filter(each => each.includes('runtime')),
      [],
    );
    assert.equal(
      (await cluster.kube.get(MACHINE_CONFIG_POOLS, { name: 'worker' })).status?.conditions?.find(
        ({ type }) => type === 'RenderDegraded',
      )?.status,
      'False',
    );
  });
});
