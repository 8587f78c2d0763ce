import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isPkiError } from './error.ts';
import { Lane } from './lane.ts';

/** A task that ends when told to. */
function task(name: string, log: string[]) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const run = () => {
    log.push(name);
    return promise;
  };
  return { run, end: () => resolve(name), fail: () => reject(new Error(name)) };
}

const turn = () => new Promise(resolve => setImmediate(resolve));

describe('Lane', () => {
  it('runs as many as it is wide, the others in order', async () => {
    const log: string[] = [];
    const lane = new Lane(2, 10);
    const tasks = ['a', 'b', 'c', 'd'].map(name => task(name, log));
    const results = tasks.map(({ run }) => lane.run(run));
    await turn();
    assert.deepEqual(log, ['a', 'b']);
    tasks[1]!.end();
    assert.equal(await results[1], 'b');
    await turn();
    assert.deepEqual(log, ['a', 'b', 'c']);
    for (const { end } of tasks) end();
    assert.deepEqual(await Promise.all(results), ['a', 'b', 'c', 'd']);
  });
  it('a newcomer does not overtake one that was handed the place', async () => {
    const log: string[] = [];
    const lane = new Lane(1, 10);
    const [a, b, c] = ['a', 'b', 'c'].map(name => task(name, log));
    const first = lane.run(a!.run);
    const second = lane.run(b!.run);
    a!.end();
    await first;
    const third = lane.run(c!.run);
    await turn();
    assert.deepEqual(log, ['a', 'b']);
    b!.end();
    c!.end();
    await Promise.all([second, third]);
    assert.deepEqual(log, ['a', 'b', 'c']);
  });
  it('a failure frees the place', async () => {
    const lane = new Lane(1, 10);
    const failing = task('failing', []);
    const failed = assert.rejects(lane.run(failing.run));
    const next = lane.run(async () => 'next');
    failing.fail();
    await failed;
    assert.equal(await next, 'next');
  });
  it('refuses when too many wait', async () => {
    const lane = new Lane(1, 1);
    const slow = task('slow', []);
    const results = [lane.run(slow.run), lane.run(slow.run)];
    await assert.rejects(lane.run(slow.run), error => isPkiError(error, 'BUSY'));
    slow.end();
    await Promise.all(results);
  });
});
