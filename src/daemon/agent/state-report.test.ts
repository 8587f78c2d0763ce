import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../controller/log.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { CURRENT_CONFIG, DAEMON_REASON, DAEMON_STATE } from '../../machine-config-api/names.ts';
import { StateReport } from './state-report.ts';

function scene() {
  const node: Record<string, string | null> = {};
  let away = false;
  let writes = 0;
  const counted: string[] = [];
  const report = new StateReport({
    writer: {
      async annotate(set) {
        if (away) throw new Error('the API is away');
        writes++;
        Object.assign(node, set);
        return {};
      },
    },
    clock: new VirtualClock('2026-01-01T00:00:00Z'),
    log: silentLog,
    metrics: { state: (_, reason) => void counted.push(reason) },
  });
  report.resume({});
  const says = () => [node[DAEMON_STATE], node[DAEMON_REASON]];
  return { report, node, counted, says, setAway: (value: boolean) => (away = value), writes: () => writes };
}

test('what is secret in a reason is neither on the node nor in a metric', async () => {
  const { report, counted, says } = scene();
  await report.problem('update', { state: 'Degraded', reason: 'refused: Bearer hunter2' });
  assert.deepEqual([says()[1], counted], ['refused: Bearer [redacted]', ['refused: Bearer [redacted]']]);
});

test('a problem with certificates stays visible while updates go on, and the node does not flap (D-39)', async () => {
  const { report, node, says, writes } = scene();
  await report.problem('certificates', { state: 'Degraded', reason: 'no role label' });
  await report.working();
  assert.deepEqual(says(), ['Degraded', 'no role label']);
  await report.done({ currentConfig: 'b' });
  assert.deepEqual(says(), ['Degraded', 'no role label']);
  assert.deepEqual([node[CURRENT_CONFIG], report.updateState({ countsDrift: false })], ['b', 'Done']);
  const before = writes();
  await report.problem('certificates', { state: 'Degraded', reason: 'no role label' });
  assert.equal(writes(), before);
  await report.problem('certificates', undefined);
  assert.deepEqual(says(), ['Done', '']);
});

test('a failing node keeps its state while it tries again, also over a restart', async () => {
  const { report, says } = scene();
  report.resume({ [DAEMON_STATE]: 'Unreconcilable', [DAEMON_REASON]: 'disks' });
  await report.working();
  assert.equal(report.state, 'Unreconcilable');
  await report.problem('drift', { state: 'Degraded', reason: 'x' });
  assert.equal(report.state, 'Unreconcilable');
  await report.problem('drift', undefined);
  await report.done({ currentConfig: 'a' });
  assert.deepEqual(says(), ['Done', '']);
});

test('what could not be written goes out later, and a reason is at most 2000 characters', async () => {
  const { report, says, setAway } = scene();
  setAway(true);
  await report.problem('update', { state: 'Degraded', reason: 'x'.repeat(5000) });
  assert.deepEqual(says(), [undefined, undefined]);
  setAway(false);
  await report.retry();
  assert.deepEqual(says(), ['Degraded', 'x'.repeat(2000)]);
});

test('Working does not clear the reason', async () => {
  const { report, says, node } = scene();
  node[DAEMON_REASON] = 'old';
  await report.working();
  assert.deepEqual(says(), ['Working', 'old']);
});
