import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { minutes } from '../../kube/duration.ts';
import { NODES } from '../../kube/resource.ts';
import { MACHINE_CONFIG_POOLS, MACHINE_CONFIGS, type MachineConfig } from '../../machine-config-api/machine-config.ts';
import { CONTROL_PLANE_TOPOLOGY, ROLE_LABEL } from '../../machine-config-api/names.ts';
import { customPool, fileConfig, TestCluster } from '../testing.ts';
import { mergeMachineConfigs, type RenderedSpec } from './merge.ts';
import { formerName } from './name.ts';

const POOL = 'infra';
const NODE = 'infra-0';
const LABEL = 'example.com/taken-over';
const DEFAULTS = { baseOSContainerImage: 'os@sha256:1', baseOSExtensionsContainerImage: 'ext@sha256:1' };
const tuning: MachineConfig = {
  metadata: { name: '50-tuning', labels: { [ROLE_LABEL]: POOL } },
  spec: {
    kernelArguments: ['audit=1', 'yes', 'a: b', '0x10'],
    config: {
      ignition: { version: '2.2.0' },
      passwd: {
        users: [
          {
            name: 'core',
            sshAuthorizedKeys: ['ssh-ed25519 AAAA somebody at a rather long host name of this world, and a comment'],
          },
        ],
      },
      systemd: {
        units: [
          {
            name: 'a.service',
            enabled: true,
            contents: '[Unit]\nDescription=ä\n\n[Install]\nWantedBy=multi-user.target\n',
          },
        ],
      },
    },
  },
};
const CONFIGS: readonly MachineConfig[] = [fileConfig('00-file', 'worker', '/etc/a', 'x y\n'), tuning];
/** What the code of 4.16 answers to these, and to these and one more. */
const NAME = 'rendered-infra-25e1212870edb267c1660201a909dd28';
const NEXT_NAME = 'rendered-infra-d4a50e4320496e82630b52e2c66e400a';
const MORE = fileConfig('60-more', POOL, '/etc/b', 'more');

describe('a pool that changes hands (RN-14)', () => {
  let cluster: TestCluster;
  const labelled = ({ metadata, ...config }: MachineConfig): MachineConfig => ({
    ...config,
    metadata: { ...metadata, labels: { ...metadata?.labels, [LABEL]: '' } },
  });
  const settle = () => cluster.pass(minutes(5));
  const annotations = async () => (await cluster.kube.get(NODES, { name: NODE })).metadata?.annotations;

  before(async () => {
    cluster = await TestCluster.create(clock => startEngine({ clock }));
  });
  after(() => cluster.stop());

  /** A pool whose config somebody else rendered under that name, and a node that runs it. */
  async function handOver(name: string, spec: RenderedSpec): Promise<void> {
    for (const config of CONFIGS) await cluster.kube.create(MACHINE_CONFIGS, labelled(config));
    const pool = await cluster.kube.create(MACHINE_CONFIG_POOLS, {
      metadata: { name: POOL },
      spec: {
        ...customPool(POOL).spec,
        machineConfigSelector: { matchLabels: { [LABEL]: '' } },
        configuration: { name },
      },
    });
    await cluster.kube.create(MACHINE_CONFIGS, {
      metadata: {
        name,
        annotations: { 'machineconfiguration.openshift.io/generated-by-controller-version': 'theirs' },
        ownerReferences: [
          {
            apiVersion: 'machineconfiguration.openshift.io/v1',
            kind: 'MachineConfigPool',
            name: POOL,
            uid: pool.metadata?.uid ?? '',
            controller: true,
          },
        ],
      },
      spec,
    });
    await cluster.addNode(NODE, { 'node-role.kubernetes.io/infra': '', 'node-role.kubernetes.io/worker': '' }, name);
    const topology = { metadata: { annotations: { [CONTROL_PLANE_TOPOLOGY]: 'HighlyAvailable' } } };
    await cluster.kube.patch(NODES, { name: NODE }, { type: 'merge', body: topology });
  }

  async function leave(): Promise<void> {
    await cluster.kube.delete(NODES, { name: NODE });
    await cluster.kube.delete(MACHINE_CONFIG_POOLS, { name: POOL });
    for (const name of [...(await cluster.rendered(POOL)), ...CONFIGS.map(({ metadata }) => metadata?.name ?? '')])
      await cluster.kube.delete(MACHINE_CONFIGS, { name });
  }

  test('from 4.16 and back: no new config, no annotation of a node; a new one has the name that 4.16 gives', async () => {
    const spec = mergeMachineConfigs(CONFIGS, DEFAULTS);
    assert.ok(spec);
    await handOver(NAME, spec);
    const before = await annotations();
    cluster.startOperator();
    cluster.startController();
    await settle();
    assert.deepEqual(await cluster.rendered(POOL), [NAME]);
    assert.equal((await cluster.pool(POOL)).spec?.configuration?.name, NAME);
    assert.equal((await cluster.pool(POOL)).status?.updatedMachineCount, 1);
    assert.deepEqual(await annotations(), before);
    await cluster.kube.create(MACHINE_CONFIGS, labelled(MORE));
    await settle();
    assert.equal((await cluster.pool(POOL)).spec?.configuration?.name, NEXT_NAME);
    await cluster.kube.delete(MACHINE_CONFIGS, { name: '60-more' });
    await settle();
    assert.equal((await cluster.pool(POOL)).spec?.configuration?.name, NAME);
    await leave();
  });

  test('from ourselves with a name of before: it is kept until the content changes', async () => {
    const spec = mergeMachineConfigs(CONFIGS, DEFAULTS);
    assert.ok(spec);
    const former = formerName(POOL, spec);
    await handOver(former, spec);
    await settle();
    assert.deepEqual(await cluster.rendered(POOL), [former]);
    await cluster.kube.create(MACHINE_CONFIGS, labelled(MORE));
    await settle();
    assert.equal((await cluster.pool(POOL)).spec?.configuration?.name, NEXT_NAME);
    await cluster.kube.delete(MACHINE_CONFIGS, { name: '60-more' });
    await settle();
    assert.equal((await cluster.pool(POOL)).spec?.configuration?.name, former);
    assert.equal((await annotations())?.['machineconfiguration.openshift.io/currentConfig'], former);
  });
});
