/** What the test command does with files that misbehave. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { startTimeOf } from '../../src/local/process.ts';
import { end } from '../tools/child.ts';
import { eventually, PATIENCE_MS } from '../tools/eventually.ts';
import { type Outcome, runApart } from './run-apart.ts';

const dir = mkdtempSync(join(tmpdir(), 'rotunda-runner-'));
const HEAD = `
  import { spawn, spawnSync } from 'node:child_process';
  import { writeFileSync } from 'node:fs';
  import { after, before, describe, test } from 'node:test';
  const note = text => writeFileSync(${JSON.stringify(dir)} + '/' + text.split(' ')[0], text);
`;

function run(name: string, code: string, signal = new AbortController().signal): Promise<Outcome> {
  const file = join(dir, `${name}.test.mjs`);
  writeFileSync(file, `${HEAD}${code}`);
  return runApart(name, [file], signal);
}

/** Runs a file until it has left its note, then lets its time be over. */
async function runUntil(note: string, name: string, code: string): Promise<Outcome> {
  const over = new AbortController();
  const outcome = run(name, code, over.signal);
  await eventually(note, () => existsSync(join(dir, note)));
  over.abort();
  return outcome;
}

/** Nothing else happens in this process meanwhile. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

const counts = ({ passed, failed, skipped }: Outcome) => [passed, failed, skipped];

describe('the test command', () => {
  after(() => rmSync(dir, { recursive: true, force: true }));

  test('what a test leaves behind is named and ended, though it holds on to the output', async () => {
    const outcome = await run(
      'leaves',
      `test('leaves a process', () => {
        const child = spawn('sleep', ['86399'], { stdio: 'inherit' });
        child.unref();
        note('left ' + child.pid);
      });`,
    );
    assert.deepEqual(counts(outcome), [1, 0, 0]);
    assert.match(outcome.text, /^left behind by leaves: sleep 86399$/m);
    const pid = Number(readFileSync(join(dir, 'left'), 'utf8').split(' ')[1]);
    await eventually('its end', () => startTimeOf(pid) === undefined);
  });

  test('nobody waits for the output of a process that has gone its own way', async t => {
    t.after(() => process.kill(Number(readFileSync(join(dir, 'away'), 'utf8').split(' ')[1]), 'SIGKILL'));
    const outcome = await run(
      'away',
      `test('leaves a process', () => {
        const child = spawn('sleep', ['86398'], { stdio: 'inherit', detached: true });
        child.unref();
        note('away ' + child.pid);
      });`,
    );
    assert.deepEqual(counts(outcome), [1, 0, 0]);
  });

  test('a file whose tests are done is over, whatever keeps its process alive', async () => {
    const outcome = await run('alive', `test('is done', () => {}); setInterval(() => {}, 1000);`);
    assert.deepEqual(counts(outcome), [1, 0, 0]);
  });

  test('what a file says last arrives, though nobody listens while it says it', async () => {
    const outcome = run(
      'talks',
      `const wait = ms => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
       test('talks', () => { note('talking'); wait(500); for (let i = 0; i < 5000; i++) process.stdout.write('line ' + i + '\\n'); });`,
    );
    // As on a busy machine: this process gets no turn until that one is over.
    const started = performance.now();
    while (!existsSync(join(dir, 'talking')) && performance.now() - started < PATIENCE_MS) pause(10);
    pause(2000);
    assert.deepEqual(counts(await outcome), [1, 0, 0]);
    assert.match((await outcome).text, /^line 4999$/m);
  });

  test('time is over: the test is named that did not end', async () => {
    const outcome = await runUntil(
      'waiting',
      'waits',
      `test('is done', () => {});
       describe('a suite', () => test('waits for ever', () => new Promise(() => {
         setInterval(() => {}, 1000);
         note('waiting');
       })));`,
    );
    assert.deepEqual(counts(outcome), [0, 1, 0]);
    assert.match(outcome.text, /^FAILED .*waits\.test\.mjs: waits for ever\nnot done in time$/m);
  });

  test('time is over: a file that hears nothing is ended too', async () => {
    const outcome = await runUntil(
      'deaf',
      'deaf',
      `test('is deaf', () => { note('deaf'); spawnSync('sleep', ['86397']); });`,
    );
    assert.deepEqual(counts(outcome), [0, 1, 0]);
    assert.match(outcome.text, /^FAILED deaf: ended with SIGKILL before it was done$/m);
  });

  test('a command that is killed leaves nothing running', async () => {
    const file = join(dir, 'orphan.test.mjs');
    writeFileSync(
      file,
      `${HEAD}test('waits for ever', () => new Promise(() => {
        setInterval(() => {}, 1000);
        note('orphan ' + process.pid);
      }));`,
    );
    const apart = new URL('./run-apart.ts', import.meta.url).href;
    const code = `(await import('${apart}')).runApart('orphan', ['${file}'], new AbortController().signal)`;
    const command = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'ignore' });
    await eventually('its start', () => existsSync(join(dir, 'orphan')));
    await end(command, 'SIGKILL');
    const pid = Number(readFileSync(join(dir, 'orphan'), 'utf8').split(' ')[1]);
    await eventually('the end of the file', () => startTimeOf(pid) === undefined);
  });

  test('time was over before: it is not begun', async () => {
    const outcome = await run('late', `test('x', () => {});`, AbortSignal.abort());
    assert.deepEqual(counts(outcome), [0, 1, 0]);
    assert.equal(outcome.text, 'FAILED late: not begun in time');
  });

  for (const [name, code, expected, text] of [
    [
      'before',
      `describe('s', () => { before(() => { throw new Error('B') }); test('x', () => {}); });`,
      [0, 2, 0],
      /Error: B/,
    ],
    [
      'after',
      `describe('s', () => { after(() => { throw new Error('A') }); test('x', () => {}); });`,
      [1, 1, 0],
      /Error: A/,
    ],
    ['exit', `test('x', () => process.exit(0));`, [0, 1, 0], /^FAILED exit: ended with 0/m],
    ['import', `throw new Error('I');`, [0, 1, 0], /Error: I/],
    [
      'afterwards',
      `test('x', () => void setTimeout(() => { throw new Error('L') }, 1)); test('y', () => new Promise(done => setTimeout(done, 50)));`,
      [2, 1, 0],
      /Error: L/,
    ],
    ['skip', `describe('s', { skip: 'because' }, () => test('x', () => {}));`, [0, 0, 1], /^skipped .*: s: because$/m],
  ] as const) {
    test(`errors outside of tests count: ${name}`, async () => {
      const outcome = await run(name, code);
      assert.deepEqual(counts(outcome), expected, outcome.text);
      assert.match(outcome.text, text);
    });
  }
});
