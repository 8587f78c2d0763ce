import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Engine, startEngine } from '../api/api.ts';
import { KubeError } from '../kube/error.ts';
import type { Kube } from '../kube/port.ts';
import { NODES } from '../kube/resource.ts';
import {
  CURRENT_CONFIG,
  CURRENT_IMAGE,
  DAEMON_REASON,
  DAEMON_STATE,
  DESIRED_DRAIN,
  DESIRED_IMAGE,
} from '../machine-config-api/names.ts';
import { changeOf, LONGEST_REASON, MOST_WAITING, type NodeState, NodeWriter } from './node-writer.ts';

const NAME = 'worker-0';

test('the operations of the table', () => {
  assert.deepEqual(changeOf({ kind: 'done', currentConfig: 'r-1' }), {
    set: { [DAEMON_STATE]: 'Done', [CURRENT_CONFIG]: 'r-1', [DAEMON_REASON]: '' },
    remove: [CURRENT_IMAGE, DESIRED_IMAGE],
  });
  assert.deepEqual(changeOf({ kind: 'done', currentConfig: 'r-1', currentImage: 'a', desiredImage: 'a' }), {
    set: { [DAEMON_STATE]: 'Done', [CURRENT_CONFIG]: 'r-1', [DAEMON_REASON]: '', [CURRENT_IMAGE]: 'a' },
    remove: [],
  });
  assert.deepEqual(changeOf({ kind: 'working' }), { set: { [DAEMON_STATE]: 'Working' }, remove: [] });
  assert.deepEqual(changeOf({ kind: 'unreconcilable', reason: 'why' }).set, {
    [DAEMON_STATE]: 'Unreconcilable',
    [DAEMON_REASON]: 'why',
  });
  assert.deepEqual(changeOf({ kind: 'desired-drain', value: 'drain-r-1' }), {
    set: { [DESIRED_DRAIN]: 'drain-r-1' },
    remove: [],
  });
});

test('a reason is cut to its length, not within a character, and shows no key', () => {
  const reasonOf = (reason: string) => changeOf({ kind: 'degraded', reason }).set[DAEMON_REASON] ?? '';
  assert.equal(reasonOf('x'.repeat(5000)).length, LONGEST_REASON);
  assert.equal(reasonOf('x'.repeat(LONGEST_REASON - 1) + '\u{1F600}').length, LONGEST_REASON - 1);
  const key = '-----BEGIN PRIVATE KEY-----\nMIIsecret\n-----END PRIVATE KEY-----';
  assert.doesNotMatch(reasonOf(`writing failed: ${key}`), /MIIsecret/);
});

test('writes only its annotations, also back to a value that a cache still shows (D-14)', async t => {
  const { kube } = await nodeOn(t, { other: 'kept', [DESIRED_IMAGE]: 'gone' });
  const states: [NodeState, string][] = [];
  const seen: string[] = [];
  const writer = new NodeWriter({
    kube,
    nodeName: NAME,
    onState: (state, reason) => states.push([state, reason]),
    onWritten: node => seen.push(node.metadata?.resourceVersion ?? ''),
  });
  await Promise.all([
    writer.write({ kind: 'done', currentConfig: 'r-1' }),
    writer.write({ kind: 'working' }),
    writer.write({ kind: 'done', currentConfig: 'r-1' }),
  ]);
  const { metadata } = await kube.get(NODES, { name: NAME });
  assert.deepEqual(metadata?.annotations, {
    other: 'kept',
    [DAEMON_STATE]: 'Done',
    [CURRENT_CONFIG]: 'r-1',
    [DAEMON_REASON]: '',
  });
  assert.deepEqual(
    states.map(([state]) => state),
    ['Done', 'Working', 'Done'],
  );
  assert.equal(new Set(seen).size, 3);
});

test('a failing node does not say that it works', async t => {
  const { kube } = await nodeOn(t, {});
  const states: NodeState[] = [];
  const writer = new NodeWriter({ kube, nodeName: NAME, onState: state => states.push(state) });
  await writer.write({ kind: 'degraded', reason: 'broken' });
  const node = await writer.write({ kind: 'working' });
  assert.equal(node.metadata?.annotations?.[DAEMON_STATE], 'Degraded');
  assert.deepEqual(states, ['Degraded']);
});

test('a conflict is tried again, four times in all; another error at once goes to its caller alone', async t => {
  const { kube } = await nodeOn(t, {});
  let conflicts = 3;
  const failing = new Proxy(kube, {
    get: (target, name: keyof Kube) =>
      name !== 'patch'
        ? target[name].bind(target)
        : (...args: Parameters<Kube['patch']>) => {
            if (conflicts-- > 0) throw new KubeError(409, 'Conflict', 'modified');
            return target.patch(...args);
          },
  });
  const writer = new NodeWriter({ kube: failing, nodeName: NAME });
  await writer.annotate({ a: '1' });
  conflicts = 4;
  await assert.rejects(writer.annotate({ a: '2' }), { reason: 'Conflict' });
  await writer.annotate({ a: '3' }, ['b']);
  assert.equal((await kube.get(NODES, { name: NAME })).metadata?.annotations?.['a'], '3');
  await assert.rejects(new NodeWriter({ kube, nodeName: 'other' }).annotate({ a: '1' }), { reason: 'NotFound' });
});

test('the queue has an end', async t => {
  const { kube } = await nodeOn(t, {});
  const writer = new NodeWriter({ kube, nodeName: NAME });
  const all = Array.from({ length: MOST_WAITING + 1 }, (_, i) => writer.annotate({ n: String(i) }));
  const results = await Promise.allSettled(all);
  assert.equal(results.filter(({ status }) => status === 'rejected').length, 1);
  assert.equal((await kube.get(NODES, { name: NAME })).metadata?.annotations?.['n'], String(MOST_WAITING - 1));
});

async function nodeOn(
  t: { after(end: () => Promise<void>): void },
  annotations: Record<string, string>,
): Promise<Engine> {
  const api = await startEngine({});
  t.after(() => api.close());
  await api.kube.create(NODES, { metadata: { name: NAME, annotations } });
  return api;
}
