import assert from 'node:assert/strict';
import { test } from 'node:test';
import { days } from '../../kube/duration.ts';
import type { Life } from '../../twin/life.ts';
import type { LifeReport } from './lives.ts';
import { seedOf, twinText } from './text.ts';

const ASKED = {
  seed: '7',
  lives: 2,
  days: 365,
  hasFaults: true,
  again: '--years 1 --faults',
  seconds: 41.2,
  isStopped: false,
};

function report(index: number, more: Partial<LifeReport> = {}): LifeReport {
  const sofar = { livedMs: days(365), faults: 572, inevitable: index, looks: 9, checked: 5000, handOvers: 38 };
  return { seed: seedOf('7', index), sofar, life: undefined, story: undefined, ...more };
}

test('the verdict comes first: who was refused, in how much time, and what the faults made inevitable', () => {
  assert.equal(
    twinText([report(0), report(1)], ASKED),
    'nobody was refused in 2 years: 1,144 faults, 1 refusal that they made inevitable; 41 s\n' +
      '2 lives, seeds 7 to 7.1: 76 hand-overs, 10,000 sides of connections verified\n',
  );
  const quiet = { ...ASKED, lives: 1, hasFaults: false, isStopped: true };
  assert.match(twinText([report(0)], quiet), /^nobody was refused in 1 year: 41 s, stopped by you\nseed 7: /);
});

test('what was broken comes with the shortest story and with how to see all of it', () => {
  const violation = { atMs: 0, rule: 'nobody refuses anybody', what: 'a refuses b', about: 'a to b' };
  const life = { violations: [violation] } as unknown as Life;
  const story = { lines: ['day 1  somebody', 'day 2  refuses'], faults: 1, days: 2, lives: 20 };
  assert.equal(
    twinText([report(0), report(1, { life, story })], ASKED),
    'broken after 2 years: nobody refuses anybody: a refuses b\n' +
      'the shortest story of it (1 fault, 2 days; 20 lives to find it):\n' +
      ' 1. day 1  somebody\n 2. day 2  refuses\n' +
      'all of it again: rotunda twin --years 1 --faults --seed 7.1 --trace\n' +
      '1,144 faults, 1 refusal that they made inevitable; 76 hand-overs, 10,000 sides of connections verified; 41 s\n',
  );
});
