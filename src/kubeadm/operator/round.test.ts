import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { days, minutes, seconds } from '../../kube/duration.ts';
import { ownCertificate } from '../../pki/authority.ts';
import { issueSigner } from '../../pki/issue.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { caDigest } from '../../trust/receipts.ts';
import type { NodeReport } from '../report.ts';
import type { Wanted } from '../wanted.ts';
import type { Cluster, NodeSight } from './cluster.ts';
import { decideRound } from './round.ts';

const ASKED = new Date('2026-11-18T20:00:00Z');
const MANAGER = 'kube-controller-manager';
const CONF = '/etc/kubernetes/controller-manager.conf';

const WANTED: Wanted = { round: ASKED.toISOString(), publishes: [], signers: {}, isSeparate: false, leaves: {} };

function report(change: Partial<NodeReport> = {}): NodeReport {
  const process = { startedAt: '2026-11-18T19:00:00Z', behind: [CONF], began: {} };
  return {
    role: 'control-plane',
    etcd: 'stacked',
    done: WANTED.round,
    signers: {},
    leaves: {},
    processes: { [MANAGER]: process },
    ...change,
  };
}

function node(name: string, change: Partial<NodeSight> = {}): NodeSight {
  const common = { isControlPlane: true, isReady: true, isWaived: false };
  return { name, ...common, report: report({ processes: {} }), wanted: WANTED, ...change };
}

function decideAfter(passedMs: number, nodes: readonly NodeSight[], families: Cluster['families'] = []) {
  const now = new Date(ASKED.getTime() + passedMs);
  const cluster: Cluster = { nodes, families, separates: false, serviceAccount: undefined, refresh: 0.666, now };
  return decideRound(cluster);
}

describe('which node is asked next (spec 80, KA-6)', () => {
  test('nobody, where everybody is done and as it is to be', () => {
    assert.deepEqual(decideAfter(0, [node('a'), node('b')]), {
      step: { do: 'nothing' },
      waitingFor: [],
      againAt: undefined,
    });
  });

  test('one that was never asked, at once; the others wait until it is done', () => {
    const fresh = node('b', { wanted: undefined, report: report() });
    const { step } = decideAfter(0, [node('a'), fresh]);
    assert.equal(step.do === 'order' ? step.node : step.do, 'b');
    const other = { ...fresh, name: 'c' };
    const busy = node('b', { report: report({ done: undefined }) });
    assert.equal(decideAfter(0, [node('a'), busy, other]).step.do, 'nothing');
  });

  test('whoever was asked longest ago, so that one that differs again and again does not keep the others waiting', () => {
    const other = {
      ...report().processes,
      kubelet: { startedAt: '', behind: ['/etc/kubernetes/kubelet.conf'], began: {} },
    };
    const again = { ...WANTED, round: new Date(ASKED.getTime() + seconds(30)).toISOString() };
    const restless = node('a', { wanted: again, report: report({ done: again.round, processes: other }) });
    const { step } = decideAfter(minutes(2), [restless, node('b', { report: report() })]);
    assert.equal(step.do === 'order' ? step.node : step.do, 'b');
    const worker = node('0', { isControlPlane: false, wanted: undefined, report: report() });
    const { step: first } = decideAfter(minutes(2), [restless, worker]);
    assert.equal(first.do === 'order' ? first.node : first.do, 'a');
  });

  test('one that works is asked otherwise when a leaf ends, without which it may not come to an end; not when one is due', async () => {
    const keys = seededKeys('round');
    const lifetimeMs = days(3650);
    const pair = await issueSigner({ keys, now: ASKED, commonName: 'kubernetes', lifetimeMs, algorithm: 'P-256' });
    const current = ownCertificate(pair);
    const families = [{ name: 'ca', current, trusted: [current], leaves: 'hold' }] as const;
    const signers = { ca: { bundle: encodeCertificates([current]), signs: caDigest(current) } };
    const working = (notAfter: string, asked: Wanted['leaves'] = {}) => {
      const leaf = { digest: 'a'.repeat(64), notBefore: '2025-11-18T20:00:00Z', notAfter };
      const leaves = { 'apiserver-kubelet-client': leaf };
      return node('a', { report: report({ done: undefined, leaves }), wanted: { ...WANTED, signers, leaves: asked } });
    };
    const { step } = decideAfter(minutes(1), [working('2026-11-18T20:00:30Z'), node('b')], families);
    assert.equal(step.do === 'order' && step.node, 'a');
    const asked = (step.do === 'order' && step.wanted.leaves) || {};
    assert.deepEqual(Object.keys(asked), ['apiserver-kubelet-client']);
    assert.equal(decideAfter(minutes(1), [working('2026-11-18T20:00:30Z', asked)], families).step.do, 'nothing');
    assert.equal(decideAfter(minutes(1), [working('2026-11-18T21:00:00Z')], families).step.do, 'nothing');
  });

  test('one that was done in vain is named, and asked again after a minute', () => {
    const behind = node('a', { report: report() });
    const soon = decideAfter(seconds(59), [behind, node('b')]);
    assert.equal(soon.step.do, 'nothing');
    assert.deepEqual(soon.waitingFor, [
      { who: 'node/a', why: `it is asked again: ${MANAGER} began before ${CONF} changed` },
    ]);
    assert.deepEqual(soon.againAt, new Date(ASKED.getTime() + seconds(60)));
    const { step } = decideAfter(seconds(60), [behind, node('b')]);
    assert.equal(step.do === 'order' ? step.node : step.do, 'a');
  });
});
