import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { KubeError } from '../kube/error.ts';
import { type KubeObject, resource } from '../kube/resource.ts';
import { AggregateFailure, errorText, lineText, listText, throwIfAny } from './aggregate-error.ts';
import { setCondition } from './condition.ts';
import { isPanic } from './panic.ts';
import { updateStatus } from './status.ts';

interface Operator extends KubeObject {
  status?: { count?: number; list?: string[] };
}
const OPERATORS = resource<Operator>('operator.openshift.io/v1', 'Etcd', 'etcds', false);
const at = (version: string, count: number): Operator => ({
  metadata: { name: 'cluster', resourceVersion: version },
  status: { count },
});

/** A live object, a cache that may lag, and writes that answer as told. */
function world(live: Operator, cache: () => Operator | undefined, answers: ('ok' | 'conflict' | 'gone')[]) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const reads: string[] = [];
  const written: Operator[] = [];
  const kube = {
    get: async () => {
      reads.push('live');
      return live as never;
    },
    updateStatus: async (_: unknown, object: KubeObject) => {
      written.push(object);
      const answer = answers[written.length - 1];
      if (answer === 'conflict') throw new KubeError(409, 'Conflict', 'changed');
      if (answer === 'gone') throw new KubeError(404, 'NotFound', 'gone');
      return object as never;
    },
  };
  const run = async (mutate: (operator: Operator) => Operator) => {
    const outcome = updateStatus(kube, OPERATORS, { name: 'cluster' }, mutate, {
      clock,
      cached: () => {
        reads.push('cache');
        return cache();
      },
    });
    outcome.catch(() => {});
    await clock.advance(seconds(1));
    return outcome;
  };
  return { run, reads, written };
}
const plusOne = (operator: Operator): Operator => ({
  ...operator,
  status: { ...operator.status, count: (operator.status?.count ?? 0) + 1 },
});

describe('status update with retry (spec 30, 5.2)', () => {
  it('once the cache has not moved, the API is read for good (T08)', async () => {
    const { run, reads, written } = world(at('9', 5), () => at('1', 0), ['conflict', 'conflict', 'ok']);
    assert.deepEqual((await run(plusOne)).object.status, { count: 6 });
    assert.deepEqual(reads, ['cache', 'cache', 'live', 'live']);
    assert.deepEqual(
      written.map(object => object.metadata?.resourceVersion),
      ['1', '9', '9'],
    );
  });

  it('without a cached object the API is read', async () => {
    const { run, reads } = world(at('9', 5), () => undefined, ['ok']);
    assert.equal((await run(plusOne)).updated, true);
    assert.deepEqual(reads, ['cache', 'live']);
  });

  it('nothing different, nothing written; empty and absent are the same (5.2.5)', async () => {
    const { run, written } = world(at('9', 5), () => at('1', 0), []);
    const same = await run(operator => ({ ...operator, status: { ...operator.status, list: [] } }));
    assert.deepEqual([same.updated, written], [false, []]);
  });

  it('a mutation that throws writes nothing (5.2.4)', async () => {
    const { run, written } = world(at('9', 5), () => at('1', 0), []);
    await assert.rejects(
      run(() => {
        throw new Error('cannot');
      }),
      { message: 'cannot' },
    );
    assert.deepEqual(written, []);
  });

  it('only conflicts are tried again, four times in all (5.2.2)', async () => {
    await assert.rejects(world(at('9', 5), () => at('1', 0), ['gone']).run(plusOne), { code: 404 });
    const { run, written } = world(at('9', 5), () => at('1', 0), [
      'conflict',
      'conflict',
      'conflict',
      'conflict',
      'ok',
    ]);
    await assert.rejects(run(plusOne), { code: 409 });
    assert.equal(written.length, 4);
  });
});

describe('texts of several errors (spec 30, 5.3)', () => {
  const errors = [new Error('a'), undefined, 'b', new Error('a'), null];
  it('list', () => {
    assert.equal(listText(errors), '[a, b]');
    assert.equal(listText([new Error('a'), undefined]), 'a');
    assert.equal(listText([]), '');
  });
  it('lines', () => {
    assert.equal(lineText(errors), 'a\nb\na');
  });
  it('throwing', () => {
    throwIfAny([undefined]);
    assert.throws(() => throwIfAny([undefined, new RangeError('one')]), RangeError);
    assert.throws(
      () => throwIfAny([new Error('a'), new Error('b')]),
      (error: unknown) => error instanceof AggregateFailure && error.message === '[a, b]',
    );
  });
  it('anything can be thrown', () => {
    assert.deepEqual([errorText({ a: 1 }), errorText(undefined), errorText(7)], ['{"a":1}', 'undefined', '7']);
    assert.deepEqual(
      [isPanic('x'), isPanic(new TypeError()), isPanic(new Error()), isPanic(new KubeError(404, 'NotFound', ''))],
      [true, true, false, false],
    );
  });
});

it('the transition time of a condition moves with its status alone (5.1.1)', () => {
  const [now, type] = [new Date('2026-01-01T00:00:00Z'), 'A'];
  const timeAfter = (status: 'True' | 'False', message: string) =>
    setCondition([{ type, status: 'True' }], { type, status, message }, now)[0]?.lastTransitionTime;
  assert.equal(timeAfter('True', 'new'), undefined, 'not even when there was none');
  assert.equal(timeAfter('False', 'new'), '2026-01-01T00:00:00Z');
});
