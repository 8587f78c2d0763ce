import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { logFile } from './log-file.ts';
import { temporaryFiles } from './testing.ts';

test('a full log is put aside, two are kept, and none for more than 28 days (17.1)', async t => {
  const { root } = await temporaryFiles(t);
  const directory = join(root, 'logs');
  mkdirSync(directory);
  const path = join(directory, 'monitor.log');
  const log = logFile(path, systemClock);
  const fill = (letter: string) => log.write(letter.repeat(5 * 1024 * 1024 + 1));
  for (const letter of ['a', 'b', 'c']) fill(letter);
  log.write('d');
  assert.deepEqual(readdirSync(directory), ['monitor.log', 'monitor.log.1', 'monitor.log.2']);
  assert.equal(statSync(path).size, 1);

  const age = (name: string, ageMs: number) => {
    const time = new Date(Date.now() - ageMs);
    utimesSync(join(directory, name), time, time);
  };
  age('monitor.log.1', days(29));
  age('monitor.log.2', days(27));
  fill('e');
  assert.deepEqual(readdirSync(directory), ['monitor.log.1'], 'what was kept too long goes with the next change');

  writeFileSync(join(directory, 'monitor.log.2'), '');
  age('monitor.log.2', days(29));
  logFile(path, systemClock);
  assert.deepEqual(readdirSync(directory), ['monitor.log.1'], 'and with the next start');
});
