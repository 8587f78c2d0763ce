import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KUBEADM_CHAINS } from '../chains.ts';
import type { NodeReport } from '../report.ts';
import { compareNodes, onlyWatched, type ReportedNode } from './compare.ts';

const [CA, PROXY, ETCD, KEY, OTHER] = ['a', 'b', 'c', 'd', 'e'].map(letter => letter.repeat(64)) as [
  string,
  string,
  string,
  string,
  string,
];
const NOW = new Date('2026-11-19T00:00:00Z');
const LEAF = { digest: OTHER, notBefore: '2026-11-18T19:00:00Z', notAfter: '2027-11-18T19:00:00Z' };

const CONTROL_PLANE: NodeReport = {
  role: 'control-plane',
  etcd: 'stacked',
  signers: {
    ca: { cas: [CA], key: 'fits' },
    'front-proxy-ca': { cas: [PROXY], key: 'fits' },
    'etcd-ca': { cas: [ETCD], key: 'fits' },
  },
  signing: { ca: CA, isSeparate: false },
  serviceAccount: { signs: KEY, accepts: [KEY] },
  leaves: Object.fromEntries(KUBEADM_CHAINS.filter(chain => !chain.isOptional).map(({ name }) => [name, LEAF])),
  processes: {},
};
const WORKER: NodeReport = {
  role: 'worker',
  etcd: 'external',
  signers: { ca: { cas: [CA], key: 'none' } },
  leaves: { 'kubelet.conf': LEAF },
  processes: {},
};

const server = (name: string, change: Partial<NodeReport> = {}): ReportedNode => ({
  name,
  report: { ...CONTROL_PLANE, ...change },
  isControlPlane: true,
});
const worker = (name: string, change: Partial<NodeReport> = {}): ReportedNode => ({
  name,
  report: { ...WORKER, ...change },
  isControlPlane: false,
});
const signers = (change: Partial<NodeReport['signers']>): Partial<NodeReport> => ({
  signers: { ...CONTROL_PLANE.signers, ...change },
});
const leaves = (change: NodeReport['leaves'], without = ''): Partial<NodeReport> => ({
  leaves: {
    ...Object.fromEntries(Object.entries(CONTROL_PLANE.leaves).filter(([name]) => name !== without)),
    ...change,
  },
});

test('what kubeadm made has no difference, with workers and without, and a super-admin.conf on the first node only', () => {
  const first = server('a', leaves({ 'super-admin.conf': LEAF }));
  assert.deepEqual(compareNodes([first], NOW), []);
  assert.deepEqual(compareNodes([server('c'), worker('w'), first, server('b')], NOW), []);
  assert.deepEqual(onlyWatched([first, worker('w')]), []);
});

const DIFFERENCES: readonly [string, readonly ReportedNode[], readonly string[]][] = [
  ['no node is labelled', [worker('w')], ['^No node has the label node-role']],
  [
    'a control-plane node is silent',
    [server('a'), { name: 'b', report: undefined, isControlPlane: true }],
    ['^b does not report: '],
  ],
  [
    'the label is on a worker',
    [server('a'), { ...worker('b'), isControlPlane: true }],
    ['^b has the label .* none of the files'],
  ],
  [
    'the label is missing',
    [server('a'), { ...server('b'), isControlPlane: false }],
    ['^b has the files of a control plane but not'],
  ],
  [
    'one has another CA',
    [
      server('a'),
      server('b', { ...signers({ ca: { cas: [OTHER], key: 'fits' } }), signing: { ca: OTHER, isSeparate: false } }),
      server('c'),
    ],
    ['^ca.crt is not the same on \\[a and c\\] and b: copy ca.crt and ca.key '],
  ],
  [
    'one has another CA for front proxies, one another for etcd',
    [
      server('a', signers({ 'front-proxy-ca': { cas: [OTHER], key: 'fits' } })),
      server('b', signers({ 'etcd-ca': { cas: [OTHER], key: 'fits' } })),
    ],
    ['^etcd/ca.crt is not the same on a and b: ', '^front-proxy-ca.crt is not the same on a and b: '],
  ],
  [
    'somebody replaces a CA by hand',
    [server('a', signers({ ca: { cas: [CA, OTHER], key: 'fits' } })), server('b')],
    ['^a has more than one CA in ca.crt: '],
  ],
  [
    'a file has no CA, another is not there',
    [server('a', signers({ ca: { cas: [], key: 'fits' }, 'etcd-ca': { cas: [], key: 'none' } })), server('b')],
    [
      '^a has no CA in ca.crt: ',
      '^a has no CA in etcd/ca.crt: ',
      '^a has a kube-controller-manager that signs with another CA',
    ],
  ],
  [
    'a key is that of something else',
    [server('a', signers({ ca: { cas: [CA], key: 'wrong' } })), server('b')],
    ['^a has a key in ca.key that is not that of ca.crt: '],
  ],
  [
    'a key is on some nodes only',
    [
      server('a'),
      server('b', signers({ ca: { cas: [CA], key: 'none' } })),
      server('c', signers({ ca: { cas: [CA], key: 'none' } })),
    ],
    ['^b and c have no ca.key, which a has: '],
  ],
  [
    'kube-controller-manager signs with something else',
    [server('a', { signing: { ca: OTHER, isSeparate: false } })],
    ['^a has a kube-controller-manager that signs with another CA'],
  ],
  [
    'tokens are signed with different keys',
    [server('a'), server('b', { serviceAccount: { signs: OTHER, accepts: [OTHER] } })],
    ['^sa.key is not the same on a and b: ', '^sa.pub is not the same on a and b: '],
  ],
  [
    'a node has no key for tokens',
    [server('a'), server('b', { serviceAccount: undefined })],
    ['^b has no key in sa.pub: ', '^b has no sa.key, which a has: '],
  ],
  [
    'a node does not accept its own tokens',
    [server('a', { serviceAccount: { signs: OTHER, accepts: [KEY] } })],
    ['^a has an sa.key that sa.pub does not have: '],
  ],
  ['etcd is not on all', [server('a'), server('b', { etcd: 'external' })], ['^b has no member of etcd, which a has: ']],
  [
    'leaves are missing',
    [
      server('a', leaves({}, 'etcd-peer')),
      server('b', leaves({}, 'admin.conf')),
      server('c', leaves({}, 'kubelet.conf')),
    ],
    [
      '^a has no etcd-peer: .* kubeadm init phase certs etcd-peer\\.$',
      '^b has no admin.conf: .* kubeadm init phase kubeconfig admin\\.$',
      '^c has no client certificate of its kubelet',
    ],
  ],
  [
    'leaves are wrong',
    [
      server('a', leaves({ apiserver: { ...LEAF, problem: 'it lacks the name api.example' } })),
      worker('w', { leaves: { 'kubelet.conf': { ...LEAF, problem: 'another CA signed it' } } }),
    ],
    [
      '^apiserver on a is wrong: it lacks the name api.example. Make it anew with kubeadm certs renew apiserver\\.$',
      '^kubelet.conf on w is wrong: another CA signed it. Join the node anew\\.$',
    ],
  ],
  [
    'a worker has another CA',
    [server('a'), worker('w', { signers: { ca: { cas: [OTHER], key: 'none' } } }), worker('x', { signers: {} })],
    ['^w and x have another ca.crt than the control plane: '],
  ],
  [
    'what cannot be read is not missing as well',
    [server('a', { ...signers({ ca: { cas: [], key: 'none' } }), problem: 'ca.crt cannot be read' }), server('b')],
    ['^a has a problem: ca.crt cannot be read\\. '],
  ],
  [
    'a CA has ended',
    [server('a', signers({ ca: { cas: [CA], key: 'fits', ends: '2026-11-18T19:00:00Z' } })), server('b')],
    ['^a has a CA in ca.crt that ended at 2026-11-18T19:00:00Z: make another one'],
  ],
  [
    'what a foreign CA has signed says nothing new',
    [
      server('a', {
        ...signers({ ca: { cas: [OTHER], key: 'fits' } }),
        signing: { ca: OTHER, isSeparate: false },
        ...leaves({ apiserver: { ...LEAF, problem: 'another CA signed it' } }),
        kubeconfigs: { 'admin.conf': [CA] },
      }),
      server('b'),
    ],
    ['^ca.crt is not the same on a and b: '],
  ],
  [
    'a kubeconfig trusts something else',
    [
      server('a', { kubeconfigs: { 'admin.conf': [CA], 'scheduler.conf': [OTHER], 'kubelet.conf': [CA, OTHER] } }),
      worker('w', { kubeconfigs: { 'kubelet.conf': [] } }),
    ],
    ['^scheduler.conf on a does not trust the CA', '^kubelet.conf on a does not ', '^kubelet.conf on w does not '],
  ],
  [
    'a node has a problem',
    [server('a'), worker('w', { problem: 'disk is full' })],
    ['^w has a problem: disk is full\\. Mend that; the rest of this node is compared then\\.$'],
  ],
];

for (const [what, nodes, expected] of DIFFERENCES) {
  test(`adoption stops: ${what}`, () => {
    const found = compareNodes(nodes, NOW);
    assert.equal(found.length, expected.length, found.join('\n'));
    for (const [index, sentence] of expected.entries()) assert.match(found[index] as string, new RegExp(sentence));
    assert.deepEqual(compareNodes(nodes.toReversed(), NOW), found, 'the order of nodes does not matter');
  });
}

test('of many nodes a few are named', () => {
  const silent = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(name => ({ name, report: undefined, isControlPlane: true }));
  assert.match(compareNodes(silent, NOW)[0] as string, /^a, b, c, d, e and 2 more do not report/);
});

test('an external CA and an external etcd are no differences, but are said to be watched only', () => {
  const { 'etcd-ca': _, ...without } = CONTROL_PLANE.signers;
  const change: Partial<NodeReport> = {
    etcd: 'external',
    signers: { ...without, ca: { cas: [CA], key: 'none' } },
    signing: undefined,
    leaves: Object.fromEntries(Object.entries(CONTROL_PLANE.leaves).filter(([name]) => !name.includes('etcd'))),
  };
  const nodes = [server('a', change), server('b', change), worker('w')];
  assert.deepEqual(compareNodes(nodes, NOW), []);
  const [etcd, ca, ...others] = onlyWatched(nodes);
  assert.match(etcd as string, /^etcd is external: /);
  assert.match(ca as string, /^ca is an external CA \(no node has ca.key\): /);
  assert.deepEqual(others, []);
});
