import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { NOW } from '../testing.ts';
import { kubeApiserverTrust } from '../trust.ts';
import { kubeApiserverEvidence } from './evidence.ts';

test('kubelets are asked where they say they listen; 0 is what a server writes where nobody has said', () => {
  const graph = kubeApiserverTrust();
  const { whereIs } = kubeApiserverEvidence({
    kube: new MemoryKube(),
    clock: new VirtualClock(NOW),
    units: [],
    graph: () => graph,
    nodes: () => [],
    nodeStatuses: () => [],
    configMap: () => undefined,
    secret: () => undefined,
  });
  const node = (port?: number): Node => ({
    status: {
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      ...(port === undefined ? {} : { daemonEndpoints: { kubeletEndpoint: { Port: port } } }),
    },
  });
  const edge = (name: string) => graph.edges.find(found => found.name === name)!;
  const kubelets = edge('kube-apiserver to kubelets');
  assert.deepEqual(
    [undefined, 0, 10_999].map(port => whereIs(kubelets, node(port))?.port),
    [10_250, 10_250, 10_999],
  );
  assert.equal(whereIs(edge('check-endpoints to kube-apiserver'), node(0))?.port, 6443);
  assert.equal(whereIs(kubelets, {}), undefined);
});
