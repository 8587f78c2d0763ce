import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KubeError } from '../../kube/error.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { NAMESPACES, NODES } from '../../kube/resource.ts';
import { INFRASTRUCTURES } from '../../staticpod/topology.ts';
import { ETCD_NAMESPACE } from '../names.ts';
import { CLUSTER, ETCDS } from '../resources.ts';
import { RULE_FOR_REVISIONS, RULE_FOR_ROTATION } from './decide.ts';
import { QuorumReader } from './reader.ts';
import { FakeMembers } from './testing.ts';

const MASTERS = ['master-0', 'master-1', 'master-2'];

async function cluster({ nodes = MASTERS, revision = 5, latest = 5 } = {}) {
  const kube = new MemoryKube();
  const members = new FakeMembers();
  await kube.create(NAMESPACES, { metadata: { name: ETCD_NAMESPACE } });
  const nodeStatuses = nodes.map(nodeName => ({ nodeName, currentRevision: revision }));
  await kube.create(ETCDS, { metadata: CLUSTER, status: { latestAvailableRevision: latest, nodeStatuses } });
  for (const [index, name] of nodes.entries()) {
    const address = `10.0.0.${index + 1}`;
    const labels = { 'node-role.kubernetes.io/master': '' };
    await kube.create(NODES, { metadata: { name, labels }, status: { addresses: [{ type: 'InternalIP', address }] } });
    // A member need not have the name of its node.
    members.add(`etcd-${index}`, address);
  }
  return { kube, members, reader: new QuorumReader({ kube, members }) };
}

describe('what the decisions about quorum rest on', () => {
  const topologies: [nodes: string[], strategy: string | RegExp, isSeveral: boolean | undefined][] = [
    [[], /ControlPlaneTopology was not set/, undefined],
    [['a'], 'UnsafeScalingStrategy', false],
    [['a', 'b'], 'HAScalingStrategy', true],
    [MASTERS, 'HAScalingStrategy', true],
  ];
  for (const [nodes, strategy, isSeveral] of topologies) {
    test(`a cluster of ${nodes.length} that does not describe itself is what its nodes are`, async () => {
      const { reader } = await cluster({ nodes });
      if (strategy instanceof RegExp) await assert.rejects(reader.strategy(), strategy);
      else assert.equal(await reader.strategy(), strategy);
      assert.equal(await reader.isSeveral(), isSeveral);
    });
  }

  test('a cluster that describes itself is believed, whatever its nodes are', async () => {
    const { kube, reader } = await cluster();
    const status = { controlPlaneTopology: 'SingleReplica' };
    await kube.create(INFRASTRUCTURES, { metadata: CLUSTER, status });
    assert.deepEqual([await reader.strategy(), await reader.isSeveral()], ['UnsafeScalingStrategy', false]);
  });

  test('nobody is asked where a rollout opens the gate anyway', async () => {
    const { reader, members } = await cluster({ latest: 6 });
    assert.equal((await reader.check(RULE_FOR_REVISIONS)).safe, true);
    assert.equal(members.asked, 0);
    assert.equal((await reader.check(RULE_FOR_ROTATION)).safe, true);
    assert.equal(members.asked, 1);
  });

  test('members that do not answer, and a cluster that cannot be read, are not safe', async () => {
    const { reader, members, kube } = await cluster();
    members.set('etcd-1', false);
    assert.equal((await reader.check(RULE_FOR_ROTATION)).safe, false);
    members.set('etcd-1', true);
    members.failure = 'refused';
    assert.equal((await reader.check(RULE_FOR_ROTATION)).safe, false);
    kube.get = () => Promise.reject(new KubeError(500, 'InternalError', 'etcd is away'));
    const answer = await reader.check(RULE_FOR_ROTATION);
    assert.match(answer.safe ? '' : answer.error, /failed to read the state of the cluster: .*etcd is away/);
    const permission = await reader.mayRestart({ nodeName: 'master-0', isOperandReady: true });
    assert.match(permission.allowed ? '' : permission.reason, /not known: .*etcd is away/);
  });

  test('a restart is decided by what the member at the address of the node is worth', async () => {
    const { reader, members } = await cluster();
    const mayRestart = async (nodeName: string) =>
      (await reader.mayRestart({ nodeName, isOperandReady: true })).allowed;
    assert.equal(await mayRestart('master-1'), true);
    members.set('etcd-1', false);
    assert.equal(await mayRestart('master-0'), false);
    assert.equal(await mayRestart('master-1'), true, 'it is the one that is down');
    assert.equal(await mayRestart('unknown'), false, 'it may be any of them');
  });

  test('before anything has run a restart is nothing, and nobody is asked', async () => {
    const { reader, members } = await cluster({ revision: 0 });
    members.failure = 'refused';
    assert.deepEqual(await reader.mayRestart({ nodeName: 'master-0', isOperandReady: true }), { allowed: true });
    assert.equal(members.asked, 0);
  });
});
