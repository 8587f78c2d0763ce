import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Progress } from './progress.ts';

const part = (name: string, ready: boolean, text: string) => ({ name, ready, text });

function recorded(output: { isTTY?: boolean; columns?: number } = {}) {
  const written: string[] = [];
  let now = 0;
  const progress = new Progress({ ...output, write: text => written.push(text) }, () => now);
  return { progress, written, advance: (ms: number) => (now += ms) };
}

test('without a terminal: one line for every change, nothing twice', () => {
  const { progress, written, advance } = recorded();
  progress.say('starting');
  progress.show([part('etcd', false, 'waiting'), part('nodes', true, '2 of 2')]);
  advance(1500);
  progress.show([part('etcd', true, 'revision 1'), part('nodes', true, '2 of 2')]);
  assert.deepEqual(written, [
    'starting\n',
    '  0.0s ... etcd  waiting\n',
    '  0.0s ok  nodes  2 of 2\n',
    '  1.5s ok  etcd  revision 1\n',
  ]);
});

test('on a terminal: the lines change in place and never wrap', () => {
  const { progress, written } = recorded({ isTTY: true, columns: 30 });
  progress.show([part('etcd', false, 'x'.repeat(100)), part('api', true, 'fine')]);
  progress.show([part('etcd', true, 'fine'), part('api', true, 'fine')]);
  assert.deepEqual(
    written.map(text => text.replaceAll('\u001b', 'ESC')),
    [
      '  0.0s ... etcd  xxxxxxxxxxxx\n',
      '  0.0s ok  api   fine\n',
      'ESC[2AESC[J',
      '  0.0s ok  etcd  fine\n',
      '  0.0s ok  api   fine\n',
    ],
  );
  written.length = 0;
  progress.end();
  progress.say('stopping');
  assert.deepEqual(written, ['stopping\n']);
});
