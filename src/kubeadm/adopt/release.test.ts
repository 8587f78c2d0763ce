import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClusterStatus, FamilyStatus } from '../cluster-record.ts';
import type { NodeReport } from '../report.ts';
import { decideRelease, type ReleaseQuestion } from './release.ts';

const [CA, OTHER] = ['a', 'b'].map(letter => letter.repeat(64)) as [string, string];

function report(more: Partial<NodeReport> = {}): NodeReport {
  return {
    role: 'control-plane',
    etcd: 'stacked',
    done: 'r1',
    signers: { ca: { cas: [CA], key: 'fits' } },
    signing: { ca: CA, isSeparate: false },
    serviceAccount: { signs: CA, accepts: [CA] },
    leaves: {},
    processes: {},
    ...more,
  };
}

function question(more: Partial<ReleaseQuestion> = {}, changed: Partial<NodeReport> = {}): ReleaseQuestion {
  return {
    nodes: [
      { name: 'a', report: report(), isControlPlane: true },
      { name: 'b', report: report(changed), isControlPlane: true },
    ],
    status: status(),
    secrets: [{ name: 'ca', hasKey: true }],
    wanted: new Map([
      ['a', 'r1'],
      ['b', 'r1'],
    ]),
    ...more,
  };
}

function status(more: Partial<ClusterStatus> = {}): ClusterStatus {
  return { adopted: true, differences: [], message: '', waitingFor: [], families: {}, ...more };
}

const family = (phase: string): FamilyStatus => ({ phase, because: 'why' });

test('at rest it can be released, also where nothing was ever asked of a node, or nothing is known', () => {
  const atRest = { refused: [], awaited: [] };
  assert.deepEqual(decideRelease(question()), atRest);
  assert.deepEqual(decideRelease(question({ status: status({ families: { ca: family('Steady') } }) })), atRest);
  const nodes = [{ name: 'a', report: undefined, isControlPlane: true }];
  assert.deepEqual(decideRelease({ nodes, status: undefined, secrets: [], wanted: new Map() }), atRest);
});

const REFUSALS: readonly [string, ReleaseQuestion, RegExp][] = [
  [
    'a hand-over, by what the operator says',
    question({ status: status({ families: { 'etcd-ca': family('Distributing') } }) }),
    /^etcd-ca is being handed over \(Distributing: why\): wait .* rotunda rotate etcd-ca --retire/,
  ],
  ...['ca-next', 'front-proxy-ca-previous'].map((name): [string, ReleaseQuestion, RegExp] => [
    `a hand-over, by Secret ${name}`,
    question({ secrets: [{ name, hasKey: true }] }),
    new RegExp(`is being handed over \\(there is Secret ${name}\\)`),
  ]),
  [
    'new keys of service accounts',
    question({ status: status({ serviceAccount: family('Distributing') }) }),
    /^The keys of service accounts are being replaced \(Distributing: why\): wait .* rotunda rotate sa --retire/,
  ],
  [
    'a round, by what the operator says',
    question({
      status: status({ round: { node: 'b', round: 'r2', since: '2026-11-18T19:00:00Z', because: 'apiserver' } }),
    }),
    /^b is being changed since 2026-11-18T19:00:00Z \(apiserver\): wait/,
  ],
  [
    'a round, by what is wanted',
    question({ wanted: new Map([['b', 'r2']]) }, { problem: 'etcd is silent' }),
    /^b is being changed \(etcd is silent\): wait/,
  ],
  [
    'a node that cannot be looked at',
    question({ nodes: [{ name: 'a', report: undefined, isControlPlane: true }], secrets: [] }),
    /^a does not report/,
  ],
  [
    'a key that is nowhere else',
    question({
      nodes: [{ name: 'a', report: report({ signers: { ca: { cas: [CA], key: 'none' } } }), isControlPlane: true }],
    }),
    /^The key of ca is on no node, only in Secret rotunda-pki\/ca/,
  ],
  [
    'a key of service accounts that is nowhere else',
    question({
      nodes: [{ name: 'a', report: report({ serviceAccount: { accepts: [CA] } }), isControlPlane: true }],
      secrets: [{ name: 'service-account-keys', hasKey: false }],
    }),
    /^The key of service accounts is on no node, only in Secret rotunda-pki\/service-account-keys/,
  ],
];

for (const [what, asked, expected] of REFUSALS) {
  test(`it is refused: ${what}`, () => {
    const { refused, awaited } = decideRelease(asked);
    assert.equal(refused.length, 1, refused.join('\n'));
    assert.match(refused[0] as string, expected);
    assert.deepEqual(awaited, []);
  });
}

test('what is not as kubeadm made it is waited for, and so are rounds that bring roles together', () => {
  const changed = {
    signers: { ca: { cas: [CA, OTHER], key: 'fits' } },
    signing: { ca: CA, isSeparate: true },
    serviceAccount: { signs: CA, accepts: [CA, OTHER] },
  } as const;
  const { refused, awaited } = decideRelease(question({}, changed));
  assert.deepEqual(refused, []);
  assert.deepEqual(awaited, [
    'ca.crt on b still holds more than one CA',
    'kube-controller-manager on b still signs with files of its own',
    'sa.pub on b still holds more than one key',
  ]);
  const joining = question({
    status: status({
      families: { ca: family('Joining') },
      round: { node: 'b', round: 'r2', since: '2026-11-18T19:00:00Z', because: 'together' },
    }),
  });
  assert.deepEqual(decideRelease(joining).refused, []);
  assert.equal(decideRelease(joining).awaited.length, 1);
});
