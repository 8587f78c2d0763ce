import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeReport, NODE_REPORT, type NodeReport, reportOf } from './report.ts';
import { decodeWanted, encodeWanted, type Wanted, wantedKey } from './wanted.ts';

const DIGEST = 'ab'.repeat(32);
const MOMENT = '2026-11-18T19:00:00Z';

const WANTED: Wanted = {
  round: 'node-a 1',
  publishes: ['ca'],
  signers: { ca: { bundle: 'pem', signs: DIGEST } },
  isSeparate: false,
  leaves: { apiserver: MOMENT },
  serviceAccount: { publicKeys: 'pem', signs: DIGEST },
};

const REPORT: NodeReport = {
  role: 'control-plane',
  etcd: 'stacked',
  done: 'node-a 1',
  problem: 'etcd does not answer',
  signers: { ca: { cas: [DIGEST], key: 'fits' } },
  signing: { ca: DIGEST, isSeparate: true },
  serviceAccount: { signs: DIGEST, accepts: [DIGEST] },
  leaves: { apiserver: { digest: DIGEST, issuer: 'abcd', notBefore: MOMENT, notAfter: MOMENT } },
  processes: { etcd: { startedAt: MOMENT, behind: [], began: { 'etcd-ca': [DIGEST] } } },
};

const nodeSaying = (text: string) => ({ metadata: { name: 'node-a', annotations: { [NODE_REPORT]: text } } });

test('what the operator writes is what the agent reads', () => {
  assert.deepEqual(decodeWanted({ data: encodeWanted(WANTED) }), WANTED);
  assert.deepEqual(wantedKey('node-a'), { namespace: 'rotunda-pki', name: 'node-node-a' });
});

test('what the agent writes is what the operator reads, and the same sight is the same text', () => {
  assert.deepEqual(reportOf(nodeSaying(encodeReport(REPORT))), REPORT);
  const other = { ...REPORT, processes: {}, leaves: {} };
  const turned = Object.fromEntries(Object.entries(other).toReversed()) as unknown as NodeReport;
  assert.equal(encodeReport(turned), encodeReport(other));
});

test('a problem is cut, not refused', () => {
  const report = reportOf(nodeSaying(encodeReport({ ...REPORT, problem: 'x'.repeat(5000) })));
  assert.equal(report?.problem?.length, 1024);
});

test('what is missing, too long or something else is nothing to act on', () => {
  assert.equal(decodeWanted(undefined), undefined);
  assert.equal(reportOf({}), undefined);
  const wrong: unknown[] = [
    null,
    [],
    { ...WANTED, round: '' },
    { ...WANTED, publishes: ['other'] },
    { ...WANTED, signers: { other: WANTED.signers.ca } },
    { ...WANTED, signers: { ca: { bundle: '', signs: DIGEST } } },
    { ...WANTED, signers: { ca: { bundle: 'pem', signs: 'x' } } },
    { ...WANTED, isSeparate: 'yes' },
    { ...WANTED, leaves: { apiserver: 'soon' } },
    { ...WANTED, serviceAccount: { publicKeys: 1, signs: DIGEST } },
    { ...WANTED, round: 'x'.repeat(300_000) },
  ];
  for (const value of wrong) assert.equal(decodeWanted({ data: encodeWanted(value as Wanted) }), undefined);
  const wrongReports: unknown[] = [
    { ...REPORT, role: 'master' },
    { ...REPORT, etcd: undefined },
    { ...REPORT, signers: { ca: { cas: ['x'], key: 'fits' } } },
    { ...REPORT, signers: { ca: { cas: [], key: 'lost' } } },
    { ...REPORT, signing: { ca: DIGEST } },
    { ...REPORT, serviceAccount: { accepts: DIGEST } },
    { ...REPORT, leaves: { apiserver: { digest: DIGEST, notBefore: MOMENT } } },
    { ...REPORT, processes: { etcd: { startedAt: MOMENT, behind: [], began: { other: [] } } } },
  ];
  for (const value of wrongReports) assert.equal(reportOf(nodeSaying(JSON.stringify(value))), undefined);
  assert.equal(reportOf(nodeSaying('{')), undefined);
});
