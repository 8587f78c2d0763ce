import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { isInTransition, type NodeStatus } from '../node-status.ts';
import { NOW, node } from '../testing.ts';
import { chooseNode, chooseWorst, hasIdleTarget, otherNodeDown, revisionToStart, ringFrom } from './choice.ts';
import type { Operand, OperandState } from './operand.ts';

function operand(state: OperandState, revision: string): Operand {
  return { state, revision, reason: '', errors: [], since: NOW, readySince: state === 'ready' ? NOW : undefined };
}

type Pods = Record<string, [OperandState, string] | undefined>;
const lookUp = (pods: Pods) => (name: string) => {
  const pod = pods[name];
  return pod && operand(...pod);
};
const READY: Pods = { a: ['ready', '4'], b: ['ready', '4'], c: ['ready', '4'] };
const AT_4 = ['a', 'b', 'c'].map(name => node(name, { currentRevision: 4 }));

const CASES: [rule: string, nodes: NodeStatus[], pods: Pods, index: number, reason: string][] = [
  [
    '1: the first with a target, whatever else is wrong',
    [node('a', { currentRevision: 4 }), node('b', { targetRevision: 5 }), node('c', { targetRevision: 6 })],
    { a: undefined },
    1,
    'node b is progressing towards 5',
  ],
  [
    '2: the first that failed at something newer than anybody runs',
    [node('a', { currentRevision: 4 }), node('b', { currentRevision: 4, lastFailedRevision: 5 }), node('c')],
    { ...READY, a: ['failed', '4'] },
    1,
    'node b is progressing with failed revisions',
  ],
  [
    '2: not when somebody runs that revision by now',
    [node('a', { currentRevision: 5 }), node('b', { currentRevision: 4, lastFailedRevision: 5 })],
    { a: ['ready', '5'], b: ['ready', '4'] },
    1,
    'node b with revision 4 is the oldest',
  ],
  ['3: the first without a pod', AT_4, { ...READY, b: undefined }, 1, 'node b static pod not found'],
  [
    "3': a label that is no number",
    AT_4,
    { ...READY, b: ['ready', 'four'], c: undefined },
    1,
    'node b has an invalid current revision "four"',
  ],
  [
    '4: of those that are not ready the one with the lowest revision',
    AT_4,
    { a: ['pending', '4'], b: ['fallback', '3'], c: ['failed', '2'] },
    2,
    'node c with revision 2 is the oldest not ready',
  ],
  [
    '4: ties go to the lower index',
    AT_4,
    { ...READY, b: ['pending', '4'], c: ['failed', '4'] },
    1,
    'node b with revision 4 is the oldest not ready',
  ],
  [
    '5: runs something else than it should; the revision is named, not the index',
    AT_4,
    { ...READY, b: ['ready', '3'], c: ['ready', '2'] },
    2,
    'node c with revision 2 is the oldest not matching its expected revision 4',
  ],
  [
    '6: the oldest',
    [node('a', { currentRevision: 4 }), node('b', { currentRevision: 3 }), node('c', { currentRevision: 3 })],
    { a: ['ready', '4'], b: ['ready', '3'], c: ['ready', '3'] },
    1,
    'node b with revision 3 is the oldest',
  ],
];

describe('the node to begin with (spec 30, 9.4)', () => {
  for (const [rule, nodes, pods, index, reason] of CASES) {
    test(`rule ${rule}`, () => assert.deepEqual(chooseNode(nodes, lookUp(pods)), { index, reason }));
  }

  test('there has to be one', () => {
    assert.throws(() => chooseNode([], () => undefined), /nodes array cannot be empty/);
  });

  test('the others follow in a ring', () => {
    const ring = ringFrom(AT_4, { index: 2, reason: 'because' });
    assert.deepEqual(
      ring.map(({ node, previous, reason }) => [node.nodeName, previous?.nodeName, reason]),
      [
        ['c', undefined, 'because'],
        ['a', 'c', 'node a is the next node in the line'],
        ['b', 'a', 'node b is the next node in the line'],
      ],
    );
  });
});

describe('the revision to start (spec 30, 9.7)', () => {
  const at = (currentRevision: number, entry = {}) => node('n', { currentRevision, ...entry });
  const cases: [string, NodeStatus, NodeStatus | undefined, number][] = [
    ['the first of the ring goes to the published one', at(3), undefined, 5],
    ['and stays where it is there', at(5), undefined, 0],
    ['and never goes back (T26)', at(6), undefined, 0],
    ['a follower goes where its predecessor is', at(3), at(4), 4],
    ['but not while that one is on its way', at(3), at(4, { targetRevision: 5 }), 0],
    ['a target that is reached is no way', at(3), at(5, { targetRevision: 5 }), 5],
    ['nor where it has failed itself', at(3, { lastFailedRevision: 4 }), at(4), 0],
    ['nor back', at(6), at(5), 0],
  ];
  for (const [what, current, previous, expected] of cases) {
    test(what, () => assert.equal(revisionToStart(current, previous, 5), expected));
  }

  test('a target that leads nowhere is recognised (T26)', () => {
    assert.ok(hasIdleTarget(at(5, { targetRevision: 5 })));
    assert.ok(hasIdleTarget(at(5, { targetRevision: 4 })));
    assert.ok(!hasIdleTarget(at(5, { targetRevision: 6 })));
    assert.ok(!hasIdleTarget(at(5)));
  });
});

describe('a healthy operand and another one that is down', () => {
  const [a, b] = AT_4 as [NodeStatus, NodeStatus];
  test('all are up', () => assert.equal(otherNodeDown(a, AT_4, lookUp(READY)), undefined));
  test('another one is not ready', () => {
    assert.equal(otherNodeDown(a, AT_4, lookUp({ ...READY, c: ['pending', '4'] })), 'c');
  });
  test('another one has no pod', () => assert.equal(otherNodeDown(a, AT_4, lookUp({ ...READY, b: undefined })), 'b'));
  test('this one is down itself: there is nothing to lose', () => {
    assert.equal(otherNodeDown(b, AT_4, lookUp({ ...READY, b: ['failed', '4'], c: undefined })), undefined);
  });
});

describe('whatever the nodes are in', () => {
  const status = fc.record({
    currentRevision: fc.nat(4),
    targetRevision: fc.nat(5),
    lastFailedRevision: fc.nat(5),
  });
  const pod = fc.option(fc.tuple(fc.constantFrom<OperandState>('ready', 'pending', 'failed', 'fallback'), fc.nat(5)));
  const clusters = fc.array(fc.tuple(status, pod), { minLength: 1, maxLength: 5 });

  test('one is chosen, and a healthy one never by its looks while another is down', () => {
    fc.assert(
      fc.property(clusters, cluster => {
        const nodes = cluster.map(([entry], index) => node(`n${index}`, entry));
        const pods: Pods = Object.fromEntries(
          cluster.map(([, found], index) => [`n${index}`, found === null ? undefined : [found[0], String(found[1])]]),
        );
        const choice = chooseNode(nodes, lookUp(pods));
        assert.ok(nodes[choice.index] !== undefined);
        if (nodes.some(isInTransition)) {
          assert.equal(
            choice.index,
            nodes.findIndex(({ targetRevision }) => targetRevision !== 0),
          );
        }
        const worst = nodes[chooseWorst(nodes, lookUp(pods)).index] as NodeStatus;
        assert.equal(otherNodeDown(worst, nodes, lookUp(pods)), undefined);
      }),
    );
  });
});
