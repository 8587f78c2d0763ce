import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { storedNodeStatus } from '../node-status.ts';
import { at, NOW, node, operandPod } from '../testing.ts';
import { FALLBACK_FOR_REVISION, FALLBACK_MESSAGE, FALLBACK_REASON, operandOf } from './operand.ts';
import { nextNodeState, type TransitionState } from './transition.ts';

const MOVING = node('m0', { currentRevision: 3, targetRevision: 4 });
const FAILED_BEFORE = node('m0', {
  ...MOVING,
  lastFailedRevision: 4,
  lastFailedCount: 2,
  lastFallbackCount: 1,
  lastFailedReason: 'InstallerFailed',
  lastFailedTime: '2025-12-31T00:00:00Z',
  lastFailedRevisionErrors: ['before'],
});

function installer(phase: string, message?: string, containers: Record<string, string> = {}): Pod {
  const containerStatuses = Object.entries(containers).map(([name, text]) => ({
    name,
    image: '',
    imageID: '',
    ready: false,
    restartCount: 0,
    state: { terminated: { exitCode: 1, message: text } },
  }));
  return {
    metadata: { namespace: 'ns', name: 'installer-4-m0' },
    status: { phase, ...(message === undefined ? {} : { message }), containerStatuses },
  };
}

function next(state: Partial<TransitionState>) {
  const { node: after, ...rest } = nextNodeState({
    node: MOVING,
    published: 4,
    installerPod: installer('Succeeded'),
    operand: undefined,
    hasStartupMonitor: false,
    now: NOW,
    ...state,
  });
  return { after: storedNodeStatus(after), ...rest };
}

const ready = operandOf(operandPod('m0', 4, true), NOW);
const pending = operandOf(operandPod('m0', 4, false), NOW);
const older = operandOf(operandPod('m0', 3, true), NOW);
const failed = operandOf(
  {
    ...operandPod('m0', 4, false, at(-60)),
    status: {
      phase: 'Failed',
      message: 'segfault',
      containerStatuses: [
        {
          name: 'c',
          image: '',
          imageID: '',
          ready: false,
          restartCount: 1,
          lastState: { terminated: { exitCode: 1, finishedAt: '2025-12-31T23:59:50Z' } },
        },
      ],
    },
  },
  NOW,
);
const fallback = operandOf(
  {
    ...operandPod('m0', 3, true),
    metadata: {
      ...operandPod('m0', 3, true, at(-60)).metadata,
      annotations: { [FALLBACK_FOR_REVISION]: '4', [FALLBACK_REASON]: 'Crash', [FALLBACK_MESSAGE]: 'it crashed' },
    },
  },
  NOW,
);
const unchanged = { nodeName: 'm0', currentRevision: 3, targetRevision: 4 };

describe('a node in transition (spec 30, 9.6.5)', () => {
  test('a: the installer pod is gone', () => {
    const { after, reason, installerFailed } = next({ installerPod: undefined });
    assert.deepEqual([after, reason, installerFailed], [unchanged, 'pod installer-4-m0 disappeared', true]);
  });

  test('b: a newer revision takes over at once; a running installer is stopped, a finished one is not', () => {
    for (const [phase, stops] of [
      ['Pending', true],
      ['Running', true],
      ['Succeeded', false],
      ['Failed', false],
    ] as const) {
      const { after, reason, deletesInstaller } = next({
        published: 5,
        installerPod: installer(phase),
        node: FAILED_BEFORE,
      });
      assert.equal(reason, 'new revision pending');
      assert.equal(deletesInstaller, stops, phase);
      assert.deepEqual(after, { ...storedNodeStatus(FAILED_BEFORE), targetRevision: 5 });
    }
    assert.equal(next({ published: 5, installerPod: undefined }).deletesInstaller, false);
  });

  test('c: the operand is not there yet', () => {
    assert.deepEqual([next({}).after, next({}).reason], [unchanged, 'static pod is pending']);
  });

  test('d: the operand is still the old one', () => {
    const { after, reason } = next({ operand: older });
    assert.deepEqual([after, reason], [unchanged, 'waiting for static pod of revision 4, found 3']);
    const nameless = next({ operand: { ...older, revision: '' } });
    assert.equal(nameless.reason, 'waiting for static pod of revision 4');
  });

  test('e: the operand failed; the time of its last end is recorded, and it is counted once', () => {
    const { after, reason } = next({ operand: failed });
    const expected = {
      nodeName: 'm0',
      currentRevision: 3,
      lastFailedRevision: 4,
      lastFailedTime: '2025-12-31T23:59:50Z',
      lastFailedReason: 'OperandFailed',
      lastFailedCount: 1,
      lastFailedRevisionErrors: ['segfault'],
    };
    assert.deepEqual(after, expected);
    assert.equal(reason, 'operand pod failed: segfault');
    const again = next({
      node: node('m0', { ...expected, targetRevision: 4, lastFailedReason: 'OperandFailed' }),
      operand: failed,
    });
    assert.deepEqual(again.after, expected);
  });

  test("e': with a startup monitor the target stays and nothing is counted yet", () => {
    const { after } = next({ operand: failed, hasStartupMonitor: true });
    assert.deepEqual(after, {
      ...unchanged,
      lastFailedRevision: 4,
      lastFailedReason: 'OperandFailed',
      lastFailedRevisionErrors: ['segfault', 'falling back to last-known-good revision, might take up to 5 min'],
    });
  });

  test('f: ready; older failures stay in the record', () => {
    const { after, reason } = next({ operand: ready, node: FAILED_BEFORE });
    const { targetRevision: _, ...rest } = storedNodeStatus(FAILED_BEFORE);
    assert.deepEqual(after, { ...rest, currentRevision: 4 });
    assert.equal(reason, 'static pod is ready');
  });

  test("f': with a startup monitor somebody else promotes", () => {
    assert.deepEqual(next({ operand: ready, hasStartupMonitor: true }).after, unchanged);
  });

  test('g: a fallback is counted once, by the time its pod was made', () => {
    const { after, reason } = next({ operand: fallback, hasStartupMonitor: true });
    assert.deepEqual(after, {
      ...unchanged,
      lastFailedRevision: 4,
      lastFailedTime: '2025-12-31T23:59:00Z',
      lastFailedReason: 'OperandFailedFallback',
      lastFallbackCount: 1,
      lastFailedRevisionErrors: ['fallback to last-known-good revision 3 took place after: it crashed (Crash)'],
    });
    assert.equal(reason, 'static pod for 4 did not launch and last-known-good revision 3 has been started');
    const again = next({ node: node('m0', after), operand: fallback, hasStartupMonitor: true });
    assert.deepEqual(again.after, after);
  });

  test('h: not ready yet', () => {
    assert.deepEqual(
      [next({ operand: pending }).after, next({ operand: pending }).reason],
      [unchanged, 'static pod is pending'],
    );
  });

  test('i: the installer failed', () => {
    const { after, reason, installerErrors, installerFailed } = next({
      installerPod: installer('Failed', undefined, { one: 'out of memory', two: '', three: 'no disk' }),
      node: FAILED_BEFORE,
    });
    assert.deepEqual(installerErrors, ['one: out of memory', 'three: no disk']);
    assert.equal(reason, 'installer pod failed: one: out of memory\nthree: no disk');
    assert.ok(installerFailed);
    assert.deepEqual(after, {
      ...storedNodeStatus(FAILED_BEFORE),
      lastFailedCount: 3,
      lastFailedTime: '2026-01-01T00:00:00Z',
      lastFailedRevisionErrors: installerErrors,
    });
  });

  test('i: without a message it says where to look', () => {
    const { reason, installerErrors } = next({ installerPod: installer('Failed') });
    const expected =
      'installer pod failed: no detailed termination message, see `oc get -oyaml -n "ns" pods "installer-4-m0"`';
    assert.equal(reason, expected);
    assert.deepEqual(installerErrors, []);
  });

  test('i: counters are about one revision and start anew with the next', () => {
    const before = node('m0', { ...FAILED_BEFORE, lastFailedRevision: 3 });
    const { after } = next({ installerPod: installer('Failed', undefined, { c: 'x' }), node: before });
    assert.equal(after.lastFailedCount, 1);
    assert.equal(after.lastFallbackCount, undefined);
  });

  test('j: the installer is not finished', () => {
    assert.equal(
      next({ installerPod: installer('Pending', 'no image') }).reason,
      'installer is not finished: no image',
    );
    assert.equal(
      next({ installerPod: installer('Running') }).reason,
      'installer is not finished, but in Running phase',
    );
  });
});
