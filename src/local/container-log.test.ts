import assert from 'node:assert/strict';
import { appendFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { VirtualClock } from '../kube/clock.ts';
import { ContainerLog, type ReadLogOptions, readLog, tailOf } from './container-log.ts';

function setup(t: TestContext, largestBytes?: number) {
  const directory = mkdtempSync(join(tmpdir(), 'rotunda-log-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const path = join(directory, 'main', '0.log');
  const log = new ContainerLog(path, clock, largestBytes);
  const write = async (text: string) => {
    appendFileSync(path, text);
    log.note();
    await clock.advance(10_000);
  };
  return { clock, path, log, write };
}

async function text(path: string, options?: ReadLogOptions): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of readLog(path, options)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test('the whole log, its tail, and what was written lately', async t => {
  const { path, write } = setup(t);
  await write('one\ntwo\n');
  await write('three\n');
  await write('four');
  assert.equal(await text(path), 'one\ntwo\nthree\nfour');
  assert.equal(await text(path, { tailLines: 2 }), 'three\nfour');
  assert.equal(await text(path, { tailLines: 0 }), '');
  assert.equal(await text(path, { tailLines: 99 }), 'one\ntwo\nthree\nfour');
  assert.equal(await text(path, { since: new Date('2026-01-01T00:00:05Z') }), 'three\nfour');
  assert.equal(await text(path, { since: new Date('2026-01-01T00:00:15Z') }), 'four');
  assert.equal(await text(path, { since: new Date('2026-01-01T00:01:00Z') }), '');
  assert.equal(await text(path, { since: new Date('2026-01-01T00:00:05Z'), tailLines: 1 }), 'four');
  assert.equal(await text(path, { limitBytes: 5 }), 'one\nt');
  assert.equal(
    await text(path, { timestamps: true, tailLines: 2 }),
    '2026-01-01T00:00:10.000000000Z three\n2026-01-01T00:00:20.000000000Z four',
  );
  assert.equal(await text(join(path, '..', 'none.log')), '');
  assert.equal(tailOf(path, 2, 7), 'ee\nfour');
});

test('a log that grows too large is cut, and what is kept can be read as one', async t => {
  const { path, write } = setup(t, 20);
  await write('first first\n');
  await write('second second\n');
  assert.ok(existsSync(`${path}.1`));
  assert.equal(statSync(path).size, 0);
  await write('third\n');
  assert.equal(await text(path), 'first first\nsecond second\nthird\n');
  assert.equal(await text(path, { since: new Date('2026-01-01T00:00:15Z') }), 'third\n');
  await write('fourth fourth fourth\n');
  assert.equal(await text(path), 'third\nfourth fourth fourth\n');
});

test('times survive the one who noted them', async t => {
  const { clock, path, write, log } = setup(t);
  await write('one\n');
  await write('two\n');
  log.close();
  const again = new ContainerLog(path, clock);
  again.close();
  assert.equal(await text(path, { since: new Date('2026-01-01T00:00:05Z') }), 'two\n');
  again.remove();
  assert.equal(existsSync(path), false);
});

test('somebody who follows gets what comes until nothing comes any more', async t => {
  const { path, log } = setup(t);
  log.follow();
  t.after(() => log.close());
  appendFileSync(path, 'one\n');
  let isOver = false;
  const stop = new AbortController();
  const seen: string[] = [];
  for await (const chunk of readLog(path, { follow: { isOver: () => isOver, signal: stop.signal } })) {
    seen.push(Buffer.from(chunk).toString());
    if (seen.join('') === 'one\n') appendFileSync(path, 'two\n');
    if (seen.join('') === 'one\ntwo\n') {
      appendFileSync(path, 'three\n');
      isOver = true;
    }
  }
  assert.equal(seen.join(''), 'one\ntwo\nthree\n');

  const following = text(path, { follow: { isOver: () => false, signal: stop.signal } });
  stop.abort();
  assert.equal(await following, 'one\ntwo\nthree\n');
});
