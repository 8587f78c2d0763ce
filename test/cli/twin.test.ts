import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const SMALL = ['--control-plane', '1', '--workers', '0'];

function twin(...args: string[]) {
  return spawnSync(process.execPath, [main, 'twin', ...SMALL, ...args], { encoding: 'utf8', timeout: 120_000 });
}

test('a life is printed with its verdict first, and is the same byte for byte when it is played again', () => {
  const play = () => twin('--days', '3', '--faults=60', '--seed', 'a', '--trace').stdout.replace(/; [\d.]+ s/g, '');
  const once = play();
  assert.match(once, /^2026-01-01T\S+ kube-apiserver-operator: /);
  assert.match(once, /FAULT: /);
  assert.match(once, /\n(?:nobody was refused|broken) /);
  assert.equal(play(), once);
});

test('several lives have seeds of their own, each of which can be played alone', () => {
  const read = (...args: string[]) => JSON.parse(twin('--days', '2', '--faults=60', '-o', 'json', ...args).stdout);
  const both = read('--seed', 'b', '--lives', '2');
  assert.equal(both.kind, 'Twin');
  assert.deepEqual(
    both.items.map(({ seed }: { seed: string }) => seed),
    ['b', 'b.1'],
  );
  const [second] = read('--seed', 'b.1').items;
  assert.deepEqual(second, both.items[1]);
  assert.ok(second.faults > 0);
});

test('what is asked for wrongly is said', () => {
  assert.match(twin('--trace', '--lives', '2').stderr, /--trace prints the story of one life/);
  assert.match(twin('--days', '1', '--years', '1').stderr, /found both/);
  assert.match(twin('--faults=0').stderr, /--faults must be a number from 1 to 300/);
});

test('Ctrl-C ends it with what was found until then', async () => {
  const child = spawn(process.execPath, [main, 'twin', ...SMALL, '--years', '1000'], { stdio: 'pipe' });
  let printed = '';
  child.stdout.on('data', chunk => (printed += chunk));
  // The seed is printed when it listens for signals already.
  await once(child.stderr, 'data');
  child.kill('SIGINT');
  const [code] = await once(child, 'close');
  assert.match(printed, /^nobody was refused in .*, stopped by you\n/);
  assert.equal(code, 0);
});
