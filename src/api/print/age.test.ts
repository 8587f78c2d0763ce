import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { days, hours, minutes, seconds } from '../../kube/duration.ts';
import { ageOf, humanDuration } from './age.ts';

describe('humanDuration', () => {
  const cases: [milliseconds: number, text: string][] = [
    [seconds(-2), '<invalid>'],
    [seconds(-1.5), '0s'],
    [-1, '0s'],
    [0, '0s'],
    [999, '0s'],
    [seconds(59), '59s'],
    [seconds(119), '119s'],
    [seconds(120), '2m'],
    [seconds(125), '2m5s'],
    [minutes(9) + seconds(59), '9m59s'],
    [minutes(10) + seconds(30), '10m'],
    [minutes(179), '179m'],
    [hours(3), '3h'],
    [hours(7) + minutes(59), '7h59m'],
    [hours(8) + minutes(30), '8h'],
    [hours(47), '47h'],
    [hours(48), '2d'],
    [days(5) + hours(3), '5d3h'],
    [days(7) + hours(23), '7d23h'],
    [days(8) + hours(5), '8d'],
    [days(729), '729d'],
    [days(730), '2y'],
    [days(740), '2y10d'],
    [days(8 * 365), '8y'],
    [days(3000), '8y'],
  ];
  for (const [milliseconds, text] of cases) {
    it(`${milliseconds} ms is ${text}`, () => {
      assert.equal(humanDuration(milliseconds), text);
    });
  }

  it('ageOf', () => {
    const now = new Date('2026-01-01T00:01:00Z');
    assert.equal(ageOf('2026-01-01T00:00:00Z', now), '60s');
    assert.equal(ageOf(undefined, now), '<unknown>');
    assert.equal(ageOf('soon', now), '<unknown>');
  });
});
