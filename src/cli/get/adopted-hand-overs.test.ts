import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { ObjectSource } from '../../inventory/source.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { CLUSTER_RECORD, type ClusterStatus, withStatus } from '../../kubeadm/cluster-record.ts';
import { adoptedHandOvers } from './adopted-hand-overs.ts';
import { type Kind, kindsAt } from './listings.ts';

const NOW = new Date('2026-03-01T01:00:00Z');
const SINCE = '2026-03-01T00:00:00Z';
const KIND = kindsAt(NOW).find(({ words }) => words.includes('hand-overs')) as Kind;
const STATUS: ClusterStatus = {
  adopted: true,
  differences: [],
  message: 'ca is handed over',
  waitingFor: [{ who: 'node/w', why: 'it is not ready', since: SINCE }],
  families: {
    ca: { phase: 'Distributing', because: 'one is missing', since: SINCE, waitingFor: ['kubelet on w', 'b', 'c'] },
    'etcd-ca': { phase: 'Waiting', because: 'it waits for the hand-over of ca' },
  },
};

const record = (status?: ClusterStatus): ConfigMap =>
  status === undefined ? { metadata: CLUSTER_RECORD } : withStatus({ metadata: CLUSTER_RECORD }, status);

function source(...found: readonly KubeObject[]): ObjectSource {
  return { warnings: [], list: async () => found as never };
}

const of = (found: readonly KubeObject[], layout?: 'kubeadm' | 'openshift') =>
  adoptedHandOvers(source(...found), KIND, layout, NOW);

test('each hand-over of an adopted cluster, with whom it waits for, and that of sa beside them', async () => {
  const { kind, items = [] } = (await of([record(STATUS)], 'kubeadm')) ?? {};
  const cells = items.map(item => kind?.columns.map(({ cell }) => cell(item)));
  assert.deepEqual(cells, [
    ['ca', 'Distributing', '60m', 'kubelet on w and 2 more', 'one is missing'],
    ['etcd-ca', 'Waiting', '', '', 'it waits for the hand-over of ca'],
    ['sa', 'Steady', '', '', 'nobody has asked for other keys'],
  ]);
  assert.deepEqual(kind?.summary?.(items), {
    first: 'ca is handed over',
    last: 'node/w is waited for (60m): it is not ready',
  });
  const serviceAccount = { phase: 'Retiring', because: 'tokens may be good' };
  const { items: moved = [] } = (await of([record({ ...STATUS, serviceAccount })])) ?? {};
  assert.equal(moved.at(-1)?.phase, 'Retiring');
});

test('where there are none it says why: nobody has adopted it, or its operator is silent or has not begun', async () => {
  const why = async (...found: ConfigMap[]) => (await of(found, 'kubeadm'))?.nothing ?? '';
  assert.match(await why(), /nobody has adopted it.*rotunda adopt kubeadm adopts it$/);
  assert.match(await why({ metadata: { ...CLUSTER_RECORD, name: 'other' } }), /nobody has adopted it/);
  assert.match(await why(record()), /has not said anything yet/);
  assert.equal(
    await why(record({ ...STATUS, families: {}, message: 'nothing is changed: x' })),
    'nothing is changed: x',
  );
});

test('of other layouts nothing is said, and files tell by themselves', async () => {
  assert.equal(await of([record(STATUS)], 'openshift'), undefined);
  assert.equal(await of([]), undefined);
  assert.equal((await of([record(STATUS)]))?.items.length, 3);
});
