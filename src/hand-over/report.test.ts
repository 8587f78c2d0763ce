import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, NOW, SIGNER, UNIT } from '../certrotation/testing.ts';
import { unionOfConditions } from '../controller/condition-union.ts';
import { VirtualClock } from '../kube/clock.ts';
import { recordingEvents } from '../kube/events.ts';
import type { FamilyDecision } from './decide.ts';
import type { Receipt } from './receipt.ts';
import { HandOverReport } from './report.ts';

const FAMILY = { signer: SIGNER, units: [UNIT] } as const;
const STEADY: FamilyDecision = {
  phase: 'Steady',
  write: 'nothing',
  leaves: 'follow',
  waitingFor: [],
  leftBehind: [],
  because: 'the signer is good',
};

function missing(node: string): Receipt {
  const evidence = 'has not loaded it';
  return { verifier: `kubelet on ${node}`, node, kind: 'asked', isLoaded: false, evidence, isWaived: false };
}

function waiting(...nodes: string[]): FamilyDecision {
  return { ...STEADY, phase: 'Distributing', waitingFor: nodes.map(missing) };
}

function started() {
  const clock = new VirtualClock(NOW);
  const events = recordingEvents();
  const report = new HandOverReport([SIGNER.name], { clock, events });
  let changes = 0;
  report.onChange = () => changes++;
  return { clock, events, report, changes: () => changes };
}

test('the condition says nothing before every signer was looked at, then who is waited for', () => {
  const { report } = started();
  assert.equal(report.condition(), undefined);
  report.decided(FAMILY, STEADY, undefined);
  assert.deepEqual([report.condition()?.status, report.condition()?.reason], ['False', 'AsExpected']);
  report.decided(FAMILY, waiting('a', 'b'), NOW);
  const condition = report.condition();
  assert.deepEqual([condition?.status, condition?.reason], ['True', 'WaitingForVerifiers']);
  assert.equal(
    condition?.message,
    'signer: Distributing since 2026-01-01T00:00:00Z, waiting for kubelet on a, kubelet on b',
  );
});

test('a ClusterOperator that sums up takes a hand-over for nothing that is wrong or goes on', () => {
  const { report } = started();
  report.decided(FAMILY, waiting('a'), NOW);
  const conditions = [report.condition()].filter(condition => condition !== undefined);
  for (const type of ['Degraded', 'Progressing', 'Available', 'Upgradeable']) {
    assert.equal(unionOfConditions(type, 'True', conditions, NOW).reason, 'NoData');
  }
});

test('the beginning is told once, with names; the same ones missing for an hour are told once more', async () => {
  const { clock, events, report, changes } = started();
  const told = () => events.events.map(({ type, reason }) => `${type} ${reason}`);
  report.decided(FAMILY, STEADY, undefined);
  report.decided(FAMILY, { ...STEADY, phase: 'Distributing', write: 'begin' }, undefined);
  report.decided(FAMILY, waiting('a', 'b'), NOW);
  report.decided(FAMILY, waiting('a', 'b'), NOW);
  assert.deepEqual(told(), ['Normal HandOverWaiting']);
  assert.equal(
    events.events[0]?.message,
    '"signer" is handed over; waiting for kubelet on a (has not loaded it), kubelet on b (has not loaded it)',
  );
  assert.equal(changes(), 3, 'a pass that says the same is no news');
  await clock.advanceTo(at(1800));
  report.decided(FAMILY, waiting('b'), NOW);
  await clock.advanceTo(at(3600 + 1799));
  report.decided(FAMILY, waiting('b'), NOW);
  assert.equal(told().length, 1, 'it changed half an hour ago');
  await clock.advanceTo(at(3600 + 1800));
  report.decided(FAMILY, waiting('b'), NOW);
  report.decided(FAMILY, waiting('b'), NOW);
  assert.deepEqual(told(), ['Normal HandOverWaiting', 'Warning HandOverStuck']);
  assert.match(events.events[1]?.message ?? '', /^"signer" has waited for an hour for the same ones: kubelet on b \(/);
});

test('an operator that starts in the middle does not say that it begins', () => {
  const { events, report } = started();
  report.decided(FAMILY, waiting('a'), NOW);
  assert.deepEqual(events.events, []);
  assert.deepEqual(report.standings()[0]?.waitingSince, NOW);
});
