import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { node } from '../testing.ts';
import { rolloutConditions } from './conditions.ts';

function texts(nodes: Parameters<typeof rolloutConditions>[0], published: number): string[] {
  return rolloutConditions(nodes, published).map(
    ({ status, reason = '', message = '' }) => `${status} ${reason} ${message}`,
  );
}

describe('what the node entries mean (spec 30, 9.8)', () => {
  test('nobody has ever run anything', () => {
    assert.deepEqual(texts([node('a'), node('b')], 1), [
      'False ZeroNodesActive 0 nodes are active; 2 nodes are at revision 0; 0 nodes have achieved new revision 1',
      'True  2 nodes are at revision 0; 0 nodes have achieved new revision 1',
      'False  ',
    ]);
  });

  test('half-way', () => {
    assert.deepEqual(texts([node('a', { currentRevision: 2 }), node('b', { currentRevision: 1 })], 2).slice(0, 2), [
      'True  2 nodes are active; 1 node is at revision 1; 1 node is at revision 2',
      'True  1 node is at revision 1; 1 node is at revision 2',
    ]);
  });

  test('done', () => {
    assert.deepEqual(texts([node('a', { currentRevision: 2 })], 2), [
      'True  1 nodes are active; 1 node is at revision 2',
      'False AllNodesAtLatestRevision 1 node is at revision 2',
      'False  ',
    ]);
  });

  test('no nodes', () => {
    assert.deepEqual(texts([], 2), [
      'False ZeroNodesActive 0 nodes are active; ',
      'False AllNodesAtLatestRevision ',
      'False  ',
    ]);
  });

  test('failures at the target, in order of revision, with all their errors', () => {
    const failing = (name: string, revision: number, ...errors: string[]) =>
      node(name, { targetRevision: revision, lastFailedRevision: revision, lastFailedRevisionErrors: errors });
    const nodes = [failing('a', 5, 'x', 'y'), failing('b', 4, 'z'), failing('c', 5, 'w')];
    assert.equal(
      texts(nodes, 5)[2],
      'True InstallerPodFailed 1 nodes are failing on revision 4:\nz; 2 nodes are failing on revision 5:\nx\ny\nw',
    );
  });

  test('a fallback and a failure that is over are none', () => {
    const fallback = node('a', { targetRevision: 5, lastFailedRevision: 5, lastFailedReason: 'OperandFailedFallback' });
    const past = node('b', { currentRevision: 4, lastFailedRevision: 5, lastFailedReason: 'OperandFailed' });
    assert.equal(texts([fallback, past], 5)[2], 'False  ');
  });
});
