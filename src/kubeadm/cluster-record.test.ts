import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ClusterSettings,
  type ClusterStatus,
  encodeSettings,
  readSettings,
  refreshFrom,
  statusOf,
  withStatus,
} from './cluster-record.ts';

const SETTINGS: ClusterSettings = {
  certificatesDirectory: '/etc/kubernetes/pki',
  keysOnNodes: false,
  refresh: 0.5,
  pods: 'restart',
  publishFrom: 'node-a',
};

const MOMENT = '2026-11-18T19:00:00Z';

const STATUS: ClusterStatus = {
  adopted: false,
  differences: ['node-b has another sa.key than node-a'],
  message: 'it waits for node-b',
  round: { node: 'node-b', round: 'node-b 4', since: MOMENT, because: 'apiserver is made anew' },
  waitingFor: [{ who: 'node/node-c', why: 'it is not ready', since: MOMENT }],
  families: { ca: { phase: 'Distributing', because: 'somebody asked for it', since: MOMENT, waitingFor: ['x'] } },
  serviceAccount: { phase: 'Retiring', because: 'tokens are good', leavesAt: MOMENT },
};

test('what adoption writes is what the operator reads', () => {
  assert.deepEqual(readSettings({ data: encodeSettings(SETTINGS) }), { ok: true, settings: SETTINGS });
  const least = readSettings({ data: { publishFrom: 'node-a' } });
  assert.deepEqual(least, { ok: true, settings: { ...SETTINGS, refresh: 0.666, pods: 'wait' } });
});

test('a cluster that is only for trying has shorter days, and says so', () => {
  const trying = { ...SETTINGS, dayMs: 2000 };
  assert.deepEqual(readSettings({ data: encodeSettings(trying) }), { ok: true, settings: trying });
  const read = readSettings({ data: { ...encodeSettings(SETTINGS), rotationDay: '25h' } });
  assert.equal(read.ok, false);
  assert.match(read.ok ? '' : read.problem, /rotationDay in .* must be a duration from 1s to 24h, found "25h"/);
});

test('what is wrong with the settings is said, with what was expected and found', () => {
  const problemWith = (change: Record<string, string>) => {
    const read = readSettings({ data: { ...encodeSettings(SETTINGS), ...change } });
    assert.equal(read.ok, false);
    return read.ok ? '' : read.problem;
  };
  assert.equal(
    problemWith({ pods: 'later' }),
    'pods in ConfigMap rotunda-pki/kubeadm must be "wait", "restart" or "ignore", found "later"',
  );
  assert.match(problemWith({ certificatesDir: 'pki' }), /an absolute path, found "pki"/);
  assert.match(problemWith({ keysOnNodes: 'yes' }), /"true" or "false", found "yes"/);
  assert.match(problemWith({ publishFrom: '' }), /the name of a control-plane node, found ""/);
  for (const refresh of ['0', '1', '1.5', '-0.5', 'x', '', '0.0']) {
    assert.match(problemWith({ refresh }), /above 0 and below 1/);
    assert.equal(refreshFrom(refresh), undefined);
  }
});

test('the status is read as it was written, beside what adoption wrote', () => {
  const record = withStatus({ metadata: { name: 'kubeadm' }, data: encodeSettings(SETTINGS) }, STATUS);
  assert.deepEqual(statusOf(record), STATUS);
  assert.deepEqual(readSettings(record), { ok: true, settings: SETTINGS });
});

test('a status that cannot be understood is none', () => {
  assert.equal(statusOf(undefined), undefined);
  assert.equal(statusOf({ data: { status: '{' } }), undefined);
  const wrong: unknown[] = [
    { ...STATUS, adopted: 'yes' },
    { ...STATUS, differences: [1] },
    { ...STATUS, round: { node: 'node-b' } },
    { ...STATUS, waitingFor: [{ who: 'x', why: 'y', since: 'then' }] },
    { ...STATUS, families: { other: STATUS.families.ca } },
    { ...STATUS, families: { ca: { phase: 'Steady' } } },
    { ...STATUS, message: undefined },
  ];
  for (const status of wrong) assert.equal(statusOf({ data: { status: JSON.stringify(status) } }), undefined);
});
