import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../kube/clock.ts';
import { KubeError } from '../kube/error.ts';
import { recordingEvents } from '../kube/events.ts';
import type { Condition } from './condition.ts';
import { reportingDegraded } from './degraded.ts';
import { silentLog } from './log.ts';
import { isManaged, whileManaged } from './management-state.ts';
import { type Reconcile, RetryRequest } from './reconcile.ts';

const START = '2026-01-01T00:00:00Z';

describe('degraded condition (3.10, 3.11)', () => {
  function reporting(reconcile: Reconcile, write?: (condition: Condition) => Promise<unknown>, removable = false) {
    const written: Condition[] = [];
    const record = async (condition: Condition) => written.push(condition);
    const wrapped = reportingDegraded(reconcile, { name: 'Test', write: write ?? record, removable });
    const context = {
      signal: new AbortController().signal,
      clock: new VirtualClock(START),
      events: recordingEvents(),
      log: silentLog,
      enqueue: () => {},
    };
    return { written, pass: (key = 'key') => wrapped(key, context) };
  }
  const good: Condition = { type: 'TestDegraded', status: 'False', reason: 'AsExpected', message: '' };
  const bad = (message: string): Condition => ({ type: 'TestDegraded', status: 'True', reason: 'SyncError', message });

  it('success', async () => {
    const { written, pass } = reporting(async () => {});
    await pass();
    assert.deepEqual(written, [good]);
  });

  it('waiting until a time is success (T27)', async () => {
    const { written, pass } = reporting(async () => ({ againAt: new Date(0) }));
    assert.deepEqual(await pass(), { againAt: new Date(0) });
    assert.deepEqual(written, [good]);
  });

  it('failure', async () => {
    const { written, pass } = reporting(async () => {
      throw new KubeError(500, 'InternalError', 'broken');
    });
    await assert.rejects(pass(), { message: 'broken' });
    assert.deepEqual(written, [bad('broken')]);
  });

  it('a mistake is called a panic (3.11)', async () => {
    const { written, pass } = reporting(async () => {
      throw 'kaboom';
    });
    await assert.rejects(pass(), (error: unknown) => error === 'kaboom');
    assert.deepEqual(written, [bad('panic caught:\nkaboom')]);
  });

  it('a request to try again changes nothing (T17)', async () => {
    const thrown = reporting(async () => {
      throw new RetryRequest();
    });
    await assert.rejects(thrown.pass(), RetryRequest);
    const returned = reporting(async () => ({ retry: true }));
    assert.deepEqual(await returned.pass(), { retry: true });
    assert.deepEqual([...thrown.written, ...returned.written], []);
  });

  it('stays as long as one of several keys fails', async () => {
    const failing = new Set(['b', 'a']);
    const { written, pass } = reporting(async key => {
      if (failing.has(key)) throw new Error(`${key} is broken`);
    });
    for (const key of ['b', 'a']) await assert.rejects(pass(key));
    await pass('c');
    failing.clear();
    await pass('b');
    await pass('a');
    assert.deepEqual(written, [
      bad('b is broken'),
      bad('a is broken\nb is broken'),
      bad('a is broken\nb is broken'),
      bad('a is broken'),
      good,
    ]);
  });

  it('a report that fails: after success it is the failure, after a failure it is not', async () => {
    const refuse = async () => {
      throw new KubeError(503, 'ServiceUnavailable', 'no');
    };
    await assert.rejects(reporting(async () => {}, refuse).pass(), { message: 'no' });
    const failing: Reconcile = async () => {
      throw new Error('broken');
    };
    await assert.rejects(reporting(failing, refuse).pass(), { message: 'broken' });
  });

  it('a resource that is gone: fine where it may be', async () => {
    const gone = async () => {
      throw new KubeError(404, 'NotFound', 'gone');
    };
    await reporting(async () => {}, gone, true).pass();
    await assert.rejects(reporting(async () => {}, gone, false).pass(), { message: 'gone' });
  });
});

describe('management state (2.6)', () => {
  it('what counts as managed', () => {
    assert.deepEqual(
      ['Managed', 'Unmanaged', 'Removed', 'Force', '', undefined].map(state => isManaged(state)),
      [true, false, false, true, true, true],
    );
    assert.equal(isManaged('Removed', { notRemovable: true }), true);
    assert.equal(isManaged('Unmanaged', { alwaysManaged: true }), true);
  });

  it('a gated pass does nothing, successfully', async () => {
    let passes = 0;
    let state = 'Unmanaged';
    const gated = whileManaged(
      async () => {
        passes += 1;
      },
      () => state,
    );
    const context = {
      signal: new AbortController().signal,
      clock: new VirtualClock(START),
      events: recordingEvents(),
      log: silentLog,
      enqueue: () => {},
    };
    await gated('key', context);
    assert.equal(passes, 0);
    state = 'Managed';
    await gated('key', context);
    assert.equal(passes, 1);
  });
});
