import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistry } from '../controller/metrics.ts';
import { staticPodMetrics } from './metrics.ts';
import type { StaticPodOperatorStatus } from './operator.ts';

test('revisions and conditions are what the status says at the moment; a node that has left is gone', async () => {
  const registry = createRegistry();
  let status: StaticPodOperatorStatus | undefined;
  staticPodMetrics(registry, 'etcd', () => status);
  assert.doesNotMatch(await registry.metrics(), /^rotunda/m);
  status = {
    latestAvailableRevision: 7,
    nodeStatuses: [
      { nodeName: 'a', currentRevision: 7 },
      { nodeName: 'b', currentRevision: 6, lastFailedRevision: 7 },
    ],
    conditions: [
      { type: 'EtcdMembersAvailable', status: 'True' },
      { type: 'InstallerControllerDegraded', status: 'Unknown' },
    ],
  };
  const text = await registry.metrics();
  for (const line of [
    'rotunda_static_pod_latest_revision{operand="etcd"} 7',
    'rotunda_static_pod_node_revision{operand="etcd",node="b"} 6',
    'rotunda_static_pod_node_failed_revision{operand="etcd",node="b"} 7',
    'rotunda_static_pod_node_failed_revision{operand="etcd",node="a"} 0',
    'rotunda_operator_condition{operand="etcd",condition="EtcdMembersAvailable"} 1',
    'rotunda_operator_condition{operand="etcd",condition="InstallerControllerDegraded"} 0',
  ]) {
    assert.ok(text.includes(`${line}\n`), line);
  }
  status = { latestAvailableRevision: 7, nodeStatuses: [{ nodeName: 'a', currentRevision: 7 }] };
  assert.doesNotMatch(await registry.metrics(), /node="b"|condition=/);
});
