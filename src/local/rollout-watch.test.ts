import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeRollout } from './rollout-watch.ts';

const WELL = [
  { type: 'StaticPodsAvailable', status: 'True' },
  { type: 'NodeInstallerProgressing', status: 'False' },
] as const;
const BAD = [{ type: 'InstallerControllerDegraded', status: 'True', message: 'no such thing\nmore' }] as const;
const at = (nodeName: string, currentRevision: number, targetRevision = 0) => ({
  nodeName,
  currentRevision,
  targetRevision,
});
const DONE = { latestAvailableRevision: 2, nodeStatuses: [at('a', 2), at('b', 2)] };

const CASES = [
  ['all nodes at the latest revision', DONE, WELL, ['a', 'b'], undefined, true, 'revision 2 on 2 of 2 nodes'],
  ['nothing yet', {}, [], [], undefined, false, 'waiting for the first revision'],
  ['nothing yet, and why', {}, BAD, [], undefined, false, 'waiting for the first revision: no such thing'],
  [
    'a node is not known yet',
    { latestAvailableRevision: 2, nodeStatuses: [at('a', 2)] },
    WELL,
    ['a', 'b'],
    undefined,
    false,
    'waiting for the operator to list b',
  ],
  [
    'a node is behind',
    { latestAvailableRevision: 2, nodeStatuses: [at('a', 2), at('b', 1)] },
    WELL,
    ['a', 'b'],
    undefined,
    false,
    'revision 2 on 1 of 2 nodes',
  ],
  [
    'a node is on its way',
    { latestAvailableRevision: 2, nodeStatuses: [at('a', 2), at('b', 1, 2)] },
    WELL,
    ['a', 'b'],
    undefined,
    false,
    'revision 2 on 1 of 2 nodes, installing 2 on b',
  ],
  ['a pod of before is only told of', DONE, WELL, ['a'], undefined, false, 'waiting for ready pods on b'],
  [
    'another revision is to come',
    DONE,
    WELL,
    ['a', 'b'],
    'config',
    false,
    'waiting for a revision with the new config',
  ],
  ['not said yet', DONE, [], ['a', 'b'], undefined, false, 'waiting for the operator to say that all nodes are done'],
] as const;

for (const [name, status, conditions, serving, outdated, ready, text] of CASES) {
  test(`rollout: ${name}`, () => {
    assert.deepEqual(describeRollout({ ...status, conditions }, ['a', 'b'], serving, outdated), { ready, text });
  });
}
