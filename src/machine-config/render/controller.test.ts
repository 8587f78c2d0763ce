import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as fc from 'fast-check';
import { startEngine } from '../../api/api.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { CONFIG_MAPS, NODES } from '../../kube/resource.ts';
import { CONTROLLER_CONFIGS } from '../../machine-config-api/controller-config.ts';
import { MACHINE_CONFIG_POOLS, MACHINE_CONFIGS } from '../../machine-config-api/machine-config.ts';
import {
  CONFIG_MANAGED_NAMESPACE,
  CONFIG_NAMESPACE,
  CONTROLLER_CONFIG_NAME,
  ROLE_LABEL,
} from '../../machine-config-api/names.ts';
import { certificate, customPool, fileConfig, TestCluster } from '../testing.ts';

describe('rendering on the API', () => {
  let cluster: TestCluster;
  const generated = () => cluster.events.filter(({ reason }) => reason === 'RenderedConfigGenerated').length;
  const condition = async (pool: string, type: string) =>
    (await cluster.pool(pool)).status?.conditions?.find(found => found.type === type);
  const target = async (pool: string) => (await cluster.pool(pool)).spec?.configuration?.name ?? '';
  const settle = () => cluster.pass(minutes(2));

  before(async () => {
    cluster = await TestCluster.create(clock => startEngine({ clock }));
    cluster.startOperator();
    cluster.startController();
    await settle();
  });
  after(() => cluster.stop());

  test('a change of a templated source renders once, however many events there are and in whichever order', async () => {
    let round = 0;
    const event = fc.constantFrom(
      'client CA',
      'registry CA',
      'touch source',
      'touch config',
      'touch controller config',
      'wait 1 s',
      'wait 4 s',
      'wait 6 s',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 10 }), fc.nat(10), async (events, place) => {
        const [beforeCount, before] = [generated(), await target('worker')];
        const all = (events as string[]).toSpliced(place, 0, 'trust bundle');
        for (const [index, what] of all.entries()) {
          await happen(what, `${round}-${index}`);
        }
        round++;
        await settle();
        assert.equal(generated() - beforeCount, 2, 'one for each pool');
        assert.notEqual(await target('worker'), before);
      }),
      { numRuns: 12 },
    );
  });

  async function happen(what: string, unique: string): Promise<void> {
    const touch = { metadata: { annotations: { touched: unique } } };
    switch (what) {
      case 'trust bundle':
        return cluster.setConfigMap(CONFIG_NAMESPACE, 'user-ca-bundle', {
          'ca-bundle.crt': await certificate(`trust-${unique}`),
        });
      case 'client CA':
        return cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', {
          'ca-bundle.crt': await certificate(`client-${unique}`),
        });
      case 'registry CA':
        return cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'image-registry-ca', {
          'r.example.com..5000': await certificate(`registry-${unique}`),
        });
      case 'touch source':
        await cluster.kube.patch(
          CONFIG_MAPS,
          { namespace: 'kube-system', name: 'root-ca' },
          { type: 'merge', body: touch },
        );
        return;
      case 'touch config':
        await cluster.kube.patch(MACHINE_CONFIGS, { name: '00-worker' }, { type: 'merge', body: touch });
        return;
      case 'touch controller config':
        await cluster.kube.patch(CONTROLLER_CONFIGS, { name: CONTROLLER_CONFIG_NAME }, { type: 'merge', body: touch });
        return;
      default:
        return cluster.pass(seconds(Number(/\d+/.exec(what)?.[0])));
    }
  }

  test('an edit of a generated config by hand is undone', async () => {
    await cluster.kube.patch(
      MACHINE_CONFIGS,
      { name: '01-worker-kubelet' },
      { type: 'merge', body: { spec: { kernelArguments: ['edited'] } } },
    );
    await settle();
    const { spec } = await cluster.kube.get(MACHINE_CONFIGS, { name: '01-worker-kubelet' });
    assert.deepEqual(spec?.kernelArguments ?? [], []);
  });

  test('a bad config degrades its pool with its name and field, and no other pool', async t => {
    await cluster.kube.create(MACHINE_CONFIG_POOLS, customPool('gpu'));
    await settle();
    const before = await target('gpu');
    const cases: [name: string, config: object, field: RegExp][] = [
      [
        '99-gpu-traversal',
        { storage: { files: [{ path: '/etc/../../root/x', contents: { source: 'data:,x' } }] } },
        /storage\.files\[0\]\.path/,
      ],
      [
        '99-gpu-unit',
        { systemd: { units: [{ name: '../../x.service', contents: '[Unit]\n' }] } },
        /systemd\.units\[0\]\.name/,
      ],
      [
        '99-gpu-base64',
        { storage: { files: [{ path: '/etc/x', contents: { source: 'data:;base64,QUI' } }] } },
        /storage\.files\[0\]\.contents\.source/,
      ],
      [
        '99-gpu-large',
        { storage: { files: [{ path: '/etc/x', contents: { source: `data:,${'x'.repeat(1_500_000)}` } }] } },
        /contents\.source: has \d+ characters/,
      ],
      ['99-gpu-disk', { storage: { disks: [{ device: '/dev/sda' }] } }, /disks section contains changes/],
    ];
    for (const [name, document, field] of cases) {
      await t.test(name, async () => {
        const config = { ignition: { version: '3.4.0' }, ...document };
        await cluster.kube.create(MACHINE_CONFIGS, {
          metadata: { name, labels: { [ROLE_LABEL]: 'gpu' } },
          spec: { config },
        });
        await cluster.kube.create(MACHINE_CONFIGS, fileConfig(`99-master-${name}`, 'master', '/etc/m', name));
        const master = await target('master');
        await settle();
        const degraded = await condition('gpu', 'RenderDegraded');
        assert.equal(degraded?.status, 'True');
        assert.match(degraded?.message ?? '', field);
        assert.ok(degraded?.message?.includes(name), degraded?.message);
        assert.equal(await target('gpu'), before);
        assert.notEqual(await target('master'), master, 'the other pool goes on');
        await cluster.kube.delete(MACHINE_CONFIGS, { name });
        await cluster.kube.delete(MACHINE_CONFIGS, { name: `99-master-${name}` });
        await settle();
        assert.equal((await condition('gpu', 'RenderDegraded'))?.status, 'False');
      });
    }
  });

  test('a data URL of 5 MB never gets that far: the API refuses the object, and says why', async () => {
    const large = fileConfig('99-gpu-5mb', 'gpu', '/etc/x', 'x'.repeat(5_000_000));
    await assert.rejects(cluster.kube.create(MACHINE_CONFIGS, large), /too large: limit is \d+ bytes/);
    assert.equal((await condition('gpu', 'RenderDegraded'))?.status, 'False');
  });

  test('a paused pool is rendered all the same', async () => {
    await cluster.kube.patch(
      MACHINE_CONFIG_POOLS,
      { name: 'gpu' },
      { type: 'merge', body: { spec: { paused: true } } },
    );
    const before = await target('gpu');
    await cluster.kube.create(MACHINE_CONFIGS, fileConfig('99-gpu-file', 'gpu', '/etc/gpu', 'x'));
    await settle();
    assert.notEqual(await target('gpu'), before);
  });

  test('rendered configs that nothing needs are deleted, but for the youngest', async () => {
    await cluster.addNode('w0', { 'node-role.kubernetes.io/worker': '' }, await target('worker'));
    const kept = await target('worker');
    for (let index = 0; index < 8; index++) {
      await cluster.setConfigMap(CONFIG_NAMESPACE, 'user-ca-bundle', {
        'ca-bundle.crt': await certificate(`gc-${index}`),
      });
      await cluster.pass(seconds(30));
    }
    await settle();
    const left = await cluster.rendered('worker');
    assert.ok(left.includes(kept), 'a node runs it');
    const [pool, node] = [await cluster.pool('worker'), await cluster.kube.get(NODES, { name: 'w0' })];
    const needed = new Set([
      pool.spec?.configuration?.name,
      pool.status?.configuration?.name,
      ...Object.values(node.metadata?.annotations ?? {}),
    ]);
    assert.equal(left.filter(name => !needed.has(name)).length, 3);
    await cluster.kube.delete(NODES, { name: 'w0' });
  });

  test('an empty selector selects nothing and is told', async () => {
    await cluster.kube.create(MACHINE_CONFIG_POOLS, {
      metadata: { name: 'all' },
      spec: { machineConfigSelector: {}, nodeSelector: {} },
    });
    await settle();
    assert.equal(await target('all'), '');
    assert.ok(cluster.events.some(({ reason, type }) => reason === 'SelectingAll' && type === 'Warning'));
    await cluster.kube.delete(MACHINE_CONFIG_POOLS, { name: 'all' });
  });
});
