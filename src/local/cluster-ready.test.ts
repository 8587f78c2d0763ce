import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRolledOut } from './cluster-ready.ts';

const WELL = [
  { type: 'StaticPodsAvailable', status: 'True' },
  { type: 'NodeInstallerProgressing', status: 'False' },
] as const;
const at = (nodeName: string, currentRevision: number, targetRevision = 0) => ({
  nodeName,
  currentRevision,
  targetRevision,
});

const CASES = [
  [
    'all nodes at the latest revision',
    { latestAvailableRevision: 2, nodeStatuses: [at('a', 2), at('b', 2)] },
    WELL,
    true,
  ],
  ['nothing yet', {}, [], false],
  ['a node is not known yet', { latestAvailableRevision: 2, nodeStatuses: [at('a', 2)] }, WELL, false],
  ['a node is behind', { latestAvailableRevision: 2, nodeStatuses: [at('a', 2), at('b', 1)] }, WELL, false],
  ['a node is on its way', { latestAvailableRevision: 2, nodeStatuses: [at('a', 2), at('b', 2, 3)] }, WELL, false],
  ['not said yet', { latestAvailableRevision: 2, nodeStatuses: [at('a', 2), at('b', 2)] }, [], false],
] as const;

for (const [name, status, conditions, expected] of CASES) {
  test(`rolled out: ${name}`, () => {
    const metadata = { name: 'cluster' };
    assert.equal(isRolledOut({ metadata, status: { ...status, conditions } }, 2), expected);
  });
}
