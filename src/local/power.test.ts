import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { aborted } from '../kube/aborted.ts';
import { Power } from './power.ts';

test('work goes on while a node is on, ends when it is turned off, and begins again', async t => {
  const root = mkdtempSync(join(tmpdir(), 'rotunda-power-'));
  t.after(() => rmSync(root, { recursive: true }));
  const power = new Power(root);
  const stop = new AbortController();
  const began: (() => void)[] = [];
  const beginnings = [0, 1].map(index => new Promise<void>(resolve => (began[index] = resolve)));
  let [count, ended] = [0, 0];
  const running = power.whileOn(stop.signal, async signal => {
    began[count++]?.();
    await aborted(signal);
    ended++;
  });
  await beginnings[0];
  new Power(root).turn('off');
  assert.equal(power.isOn, false);
  while (ended === 0) await new Promise(resolve => setTimeout(resolve, 10));
  new Power(root).turn('on');
  await beginnings[1];
  stop.abort();
  await running;
  assert.deepEqual([count, ended], [2, 2]);
});

test('an error of the work is not the switch', async t => {
  const root = mkdtempSync(join(tmpdir(), 'rotunda-power-'));
  t.after(() => rmSync(root, { recursive: true }));
  const { signal } = new AbortController();
  await assert.rejects(
    new Power(root).whileOn(signal, async () => {
      throw new Error('no');
    }),
    /^Error: no$/,
  );
});
