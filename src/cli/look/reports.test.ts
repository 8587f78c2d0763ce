import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { endsUntil } from '../../forecast/ends.ts';
import { renewalsUntil } from '../../forecast/renewals.ts';
import { testSigner } from '../../inventory/testing.ts';
import { KUBEADM_CHAINS } from '../../kubeadm/chains.ts';
import { CLUSTER_RECORD, type ClusterStatus, encodeSettings, withStatus } from '../../kubeadm/cluster-record.ts';
import { encodeReport, NODE_REPORT, type NodeReport } from '../../kubeadm/report.ts';
import { ownCertificate } from '../../pki/authority.ts';
import { signingKey } from '../../trust/receipts.ts';
import { readReports, replacedAt } from './reports.ts';

const [CA, LEAF] = ['a', 'b'].map(letter => letter.repeat(64)) as [string, string];
const NOW = new Date('2026-02-01T00:00:00Z');
const LEAF_SIGHT = { digest: LEAF, notBefore: '2026-01-01T00:00:00Z', notAfter: '2026-12-27T00:00:00Z' };
const STATUS: ClusterStatus = { adopted: true, differences: [], message: '', waitingFor: [], families: {} };

function report(more: Partial<NodeReport> = {}): NodeReport {
  const cas = { cas: [CA], key: 'fits' } as const;
  return {
    role: 'control-plane',
    etcd: 'stacked',
    signers: { ca: cas, 'front-proxy-ca': cas, 'etcd-ca': cas },
    leaves: Object.fromEntries(KUBEADM_CHAINS.filter(chain => !chain.isOptional).map(({ name }) => [name, LEAF_SIGHT])),
    processes: {},
    ...more,
  };
}

function node(name: string, said: NodeReport): Node {
  return { metadata: { name, annotations: { [NODE_REPORT]: encodeReport(said) } } };
}

function record(adopted = true): ConfigMap {
  const settings = {
    certificatesDirectory: '/etc/kubernetes/pki',
    keysOnNodes: false,
    refresh: 0.5,
    pods: 'wait',
    publishFrom: 'a',
  } as const;
  return withStatus({ metadata: CLUSTER_RECORD, data: encodeSettings(settings) }, { ...STATUS, adopted });
}

const read = (nodes: readonly Node[], of: ConfigMap | undefined = record(), now = NOW) =>
  readReports({ nodes, record: of }, now);

test('every leaf of every node that reports, with who renews it and when', () => {
  const { items, nodes } = read([node('b', report()), node('a', report()), { metadata: { name: 'w' } }]);
  assert.deepEqual([...nodes], ['a', 'b']);
  assert.equal(items.length, 22);
  const apiserver = items.find(({ metadata }) => metadata.name === 'apiserver@a');
  assert.equal(apiserver?.state, 'Good');
  assert.equal(apiserver?.seen?.renewal, 'rotunda');
  assert.equal(apiserver?.seen?.renewsAt, '2026-06-30T00:00:00Z');
  const kubelet = items.find(({ metadata }) => metadata.name === 'kubelet.conf@a');
  assert.equal(kubelet?.seen?.renewal, 'kubelet');
  assert.deepEqual(endsUntil(items, new Date('2030-01-01T00:00:00Z')), [], 'somebody renews all of it');
});

test('in a hand-over each leaf names the CA that has signed it, where that can be seen', async () => {
  const next = ownCertificate(await testSigner('next'));
  const leaves = {
    'admin.conf': { ...LEAF_SIGHT, issuer: signingKey(next) },
    'scheduler.conf': { ...LEAF_SIGHT, issuer: 'ab' },
    'kubelet.conf': LEAF_SIGHT,
  };
  const { items } = readReports({ nodes: [node('a', report({ leaves }))], record: record() }, NOW, [next]);
  assert.deepEqual(
    items.map(({ certificate }) => certificate?.issuer),
    [next.subject.commonName, 'kubernetes', 'kubernetes'],
  );
});

test('before the operator has adopted the cluster, and where a CA is external, nobody of ours renews', () => {
  const renewals = (found: ReturnType<typeof read>) => new Set(found.items.map(({ seen }) => seen?.renewal));
  assert.deepEqual(renewals(read([node('a', report())], record(false))), new Set(['by-hand', 'kubelet']));
  const without = readReports({ nodes: [node('a', report())], record: undefined }, NOW);
  assert.deepEqual(without.items, [], 'a record is what adoption makes');
  const external = report({ signers: { ...report().signers, ca: { cas: [CA], key: 'none' } } });
  const { items } = read([node('a', external)]);
  const owned = items.filter(({ seen }) => seen?.renewal === 'owner').map(({ seen }) => seen?.authority);
  assert.deepEqual(new Set(owned), new Set(['ca']));
  assert.deepEqual(endsUntil(items, new Date('2030-01-01T00:00:00Z')).length, owned.length);
});

test('what is wrong, late or over is told', () => {
  const one = (leaf: object, now = NOW) =>
    read([node('a', report({ leaves: { apiserver: { ...LEAF_SIGHT, ...leaf } } }))], record(), now).items[0];
  assert.equal(one({ problem: 'another CA signed it' })?.state, 'NeedsAttention');
  assert.equal(one({}, new Date('2026-07-01T00:00:00Z'))?.state, 'Good', 'it is being renewed');
  assert.equal(one({}, new Date('2026-11-01T00:00:00Z'))?.state, 'Expiring');
  assert.equal(one({}, new Date('2027-01-01T00:00:00Z'))?.state, 'Expired');
});

test('the plan has the renewals node by node, again and again, with what restarts', () => {
  const { items } = read([node('a', report()), node('b', report())]);
  const events = renewalsUntil(items, NOW, new Date('2027-02-01T00:00:00Z'));
  assert.deepEqual(
    events.map(({ at, reason }) => `${at} ${reason.slice(0, 4)}`),
    [
      '2026-06-30T00:00:00Z on a',
      '2026-06-30T00:00:00Z on b',
      '2026-12-27T00:00:00Z on a',
      '2026-12-27T00:00:00Z on b',
    ],
  );
  assert.match(events[0]?.reason ?? '', /^on a: admin\.conf, apiserver, apiserver-etcd-client and 7 more are due$/);
  const restarts = events[0]?.effects.filter(({ kind }) => kind === 'restart').map(({ process }) => process);
  assert.deepEqual(restarts, ['kube-controller-manager', 'kube-scheduler']);
  assert.deepEqual(renewalsUntil(items, NOW, new Date('2026-03-01T00:00:00Z')), []);
  const due = renewalsUntil(items, new Date('2026-08-01T00:00:00Z'), new Date('2026-08-02T00:00:00Z'));
  assert.equal(due[0]?.at, '2026-08-01T00:00:00Z', 'what is due is renewed now');
});

test('a CA of which the operator has the key is replaced in time', () => {
  const adopted = record();
  const families = { ca: { phase: 'Steady', because: '' } };
  const kept = (of: ConfigMap) => [...read([], of).keptSigners];
  assert.deepEqual(kept(withStatus(adopted, { ...STATUS, families })), ['ca']);
  assert.deepEqual(kept(withStatus(adopted, { ...STATUS, families, adopted: false })), []);
  const onNodes = { ...adopted, data: { ...adopted.data, keysOnNodes: 'true' } };
  assert.deepEqual(kept(withStatus(onNodes, { ...STATUS, families })), []);
  const life = { notBefore: new Date('2026-01-01T00:00:00Z'), notAfter: new Date('2036-01-01T00:00:00Z') };
  assert.equal(replacedAt(life), '2033-12-31T14:24:00Z');
});
