import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { days, formatGoDuration, hours, minutes, parseGoDuration, seconds } from './duration.ts';

describe('spec 10, 3.4: Go duration notation', () => {
  const printed: [number, string][] = [
    [days(15), '360h0m0s'],
    [hours(12), '12h0m0s'],
    [minutes(90), '1h30m0s'],
    [seconds(45), '45s'],
    [0, '0s'],
    [seconds(1.5), '1.5s'],
    [500, '500ms'],
    [-minutes(1), '-1m0s'],
    [hours(24) + seconds(1), '24h0m1s'],
    [days(3650) + 1, '87600h0m0.001s'],
    [hours(24) + 0.001, '24h0m0.000001s'],
    [0.5, '500µs'],
    [-0.000_001, '-1ns'],
    [1.5e-3, '1.5µs'],
    [2.000_5, '2.0005ms'],
    [999.999_999_9, '1s'],
    [Number.NaN, 'NaN'],
    [Infinity, 'Infinity'],
  ];
  for (const [duration, text] of printed) test(`prints ${text}`, () => assert.equal(formatGoDuration(duration), text));

  const read: [string, number][] = [
    ['2h', hours(2)],
    ['1h30m', minutes(90)],
    ['1.5h', minutes(90)],
    ['0', 0],
    ['+5s', seconds(5)],
    ['-1.5s', -1500],
    ['1h1h', hours(2)],
    ['100ms', 100],
    ['1us', 0.001],
    ['-1ns', -0.000_001],
    ['24h1us', hours(24) + 0.001],
    ['87600h', days(3650)],
    ['.5ns', 0],
    ['.5s', 500],
  ];
  for (const [text, duration] of read) test(`reads ${text}`, () => assert.equal(parseGoDuration(text), duration));

  for (const text of [
    '',
    '1',
    '1d',
    'h',
    '1 h',
    '1h ',
    '1,5h',
    '--1h',
    '1e3s',
    '.s',
    'NaN',
    '9999999999h',
    `1${'0'.repeat(200)}s`,
  ]) {
    test(`refuses ${JSON.stringify(text.slice(0, 20))}`, () => assert.equal(parseGoDuration(text), undefined));
  }

  test('reads what it prints', () => {
    fc.assert(
      fc.property(fc.integer({ min: -(2 ** 40), max: 2 ** 40 }), ms => {
        assert.equal(parseGoDuration(formatGoDuration(ms)), ms);
      }),
    );
  });

  test('reads what it prints, to the nanosecond', () => {
    fc.assert(
      fc.property(fc.integer({ min: -(2 ** 46), max: 2 ** 46 }), nanos => {
        const duration = nanos / 1e6;
        const read = parseGoDuration(formatGoDuration(duration));
        assert.equal(Math.round((read as number) * 1e6), nanos);
      }),
    );
  });
});
