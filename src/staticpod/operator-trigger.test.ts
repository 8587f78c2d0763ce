import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Source } from '../controller/trigger.ts';
import type { StaticPodOperatorResource } from './operator.ts';
import { onSteering } from './operator-trigger.ts';

test('who is steered by the operator resource hears of everything in it but of conditions', () => {
  let change: (before: StaticPodOperatorResource, after: StaticPodOperatorResource) => void = () => {};
  const source: Source<StaticPodOperatorResource> = {
    synced: Promise.resolve(),
    subscribe: handlers => {
      change = handlers.update;
      return () => {};
    },
  };
  let passes = 0;
  onSteering(source).start(() => passes++);
  const passesAfter = (before: StaticPodOperatorResource, after: StaticPodOperatorResource) => {
    passes = 0;
    change(before, after);
    return passes;
  };
  const condition = {
    type: 'A',
    status: 'True',
    reason: 'B',
    message: 'c',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  } as const;
  const before: StaticPodOperatorResource = { metadata: { name: 'cluster', resourceVersion: '1', generation: 1 } };
  const status = { nodeStatuses: [{ nodeName: 'master-0', currentRevision: 1 }] };
  assert.equal(passesAfter(before, { ...before, status: { conditions: [condition] } }), 0);
  assert.equal(passesAfter({ ...before, status }, { ...before, status: { ...status, conditions: [condition] } }), 0);
  assert.equal(passesAfter(before, { ...before, status }), 1);
  assert.equal(passesAfter(before, { ...before, spec: { managementState: 'Unmanaged' } }), 1);
  assert.equal(passesAfter(before, { ...before, metadata: { ...before.metadata, annotations: { a: 'b' } } }), 1);
});
