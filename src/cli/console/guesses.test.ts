import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { Guesses, MOST_WRONG } from './guesses.ts';

const begin = (guesses: Guesses, address: string) => Array.from({ length: MOST_WRONG }, () => guesses.begin(address));

describe('guesses at tokens', () => {
  test('many at once are many: they count before it is known whether they are right', () => {
    const guesses = new Guesses(new VirtualClock('2024-06-01T00:00:00Z'));
    const [first] = begin(guesses, 'a');
    assert.equal(guesses.begin('a'), undefined);
    first?.undo();
    assert.notEqual(guesses.begin('a'), undefined, 'a right one takes no place');
    assert.equal(guesses.begin('a'), undefined);
  });

  test('one address does not lock another out', () => {
    const guesses = new Guesses(new VirtualClock('2024-06-01T00:00:00Z'));
    begin(guesses, 'a');
    assert.equal(guesses.begin('a'), undefined);
    assert.notEqual(guesses.begin('b'), undefined);
  });

  test('after a minute one may guess again', async () => {
    const clock = new VirtualClock('2024-06-01T00:00:00Z');
    const guesses = new Guesses(clock);
    begin(guesses, 'a');
    await clock.advance(seconds(59));
    assert.equal(guesses.begin('a'), undefined);
    await clock.advance(seconds(1));
    assert.notEqual(guesses.begin('a'), undefined);
  });
});
