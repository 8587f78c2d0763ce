import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { floorToMs, formatGoTime, formatRfc3339, instantOf, parseRfc3339 } from './time.ts';

describe('spec 10, 3.1: reading time annotations', () => {
  const good: [string, string][] = [
    ['2025-09-14T17:08:41Z', '2025-09-14T17:08:41.000Z'],
    ['2108-09-08T22:47:31-07:00', '2108-09-09T05:47:31.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['2024-01-01T00:00:00.5+05:30', '2023-12-31T18:30:00.500Z'],
    ['2024-01-01T00:00:00.123456789Z', '2024-01-01T00:00:00.123Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
    ['2024-01-01T00:00:00-00:00', '2024-01-01T00:00:00.000Z'],
  ];
  for (const [text, expected] of good) {
    test(`accepts ${text}`, () => assert.equal(floorToMs(parseRfc3339(text)!).toISOString(), expected));
  }

  const malformed = [
    '',
    '2024-01-01',
    '2024-01-01T00:00:00',
    '2024-01-01 00:00:00Z',
    '2024-01-01t00:00:00Z',
    '2024-01-01T00:00:00z',
    '2024-02-30T00:00:00Z',
    '2023-02-29T00:00:00Z',
    '2100-02-29T00:00:00Z',
    '2024-13-01T00:00:00Z',
    '2024-00-01T00:00:00Z',
    '2024-01-00T00:00:00Z',
    '2024-04-31T00:00:00Z',
    '2024-01-01T24:00:00Z',
    '2024-01-01T00:60:00Z',
    '2024-01-01T00:00:60Z',
    '2024-01-01T00:00:00.Z',
    '2024-01-01T00:00:00,5Z',
    '2024-01-01T00:00:00+0700',
    '2024-01-01T00:00:00+07',
    '2024-01-01T00:00:00+24:00',
    ' 2024-01-01T00:00:00Z',
    '2024-01-01T00:00:00Z ',
    '2024-01-01T00:00:00Z\n',
    '+12024-01-01T00:00:00Z',
    '24-01-01T00:00:00Z',
    'Sat Sep 08 2108 22:47:31 GMT',
    '1700000000',
    `2024-01-01T00:00:00.${'1'.repeat(1000)}Z`,
  ];
  for (const text of malformed) {
    test(`refuses ${JSON.stringify(text.slice(0, 40))}`, () => assert.equal(parseRfc3339(text), undefined));
  }

  test('agrees with a calendar on every generated date, real or not', () => {
    const field = (max: number) => fc.integer({ min: 0, max }).map(n => String(n).padStart(2, '0'));
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 9999 }),
        field(14),
        field(33),
        field(26),
        field(62),
        field(62),
        (year, month, day, hour, minute, second) => {
          const text = `${String(year).padStart(4, '0')}-${month}-${day}T${hour}:${minute}:${second}Z`;
          // The oracle: a date that prints as it was written is a real one.
          const date = new Date(text);
          const real = !Number.isNaN(date.getTime()) && formatRfc3339(date) === text;
          assert.equal(parseRfc3339(text) !== undefined, real, text);
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('an offset is the same moment as its UTC form', () => {
    fc.assert(
      fc.property(
        fc.date({ min: new Date('1970-01-02'), max: new Date('2300-01-01'), noInvalidDate: true }),
        fc.integer({ min: -23 * 60, max: 23 * 60 }),
        (date, offset) => {
          const whole = new Date(Math.floor(date.getTime() / 1000) * 1000);
          const local = new Date(whole.getTime() + offset * 60_000).toISOString().slice(0, 19);
          const minutes = Math.abs(offset);
          const zone = `${offset < 0 ? '-' : '+'}${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;
          assert.equal(parseRfc3339(local + zone)?.nanos, instantOf(whole).nanos);
        },
      ),
    );
  });

  test('never throws', () => {
    fc.assert(fc.property(fc.string(), text => void parseRfc3339(text)));
  });
});

describe('spec 10, 3.2: printing times inside reasons', () => {
  const cases: [string, string][] = [
    ['2024-01-25T00:00:00.8Z', '2024-01-25 00:00:00.8 +0000 UTC'],
    ['2024-01-16T00:00:00Z', '2024-01-16 00:00:00 +0000 UTC'],
    ['2108-09-08T22:47:31-07:00', '2108-09-08 22:47:31 -0700 -0700'],
    ['2024-01-01T00:00:00.120000001+05:30', '2024-01-01 00:00:00.120000001 +0530 +0530'],
    ['1969-12-31T23:59:59.5Z', '1969-12-31 23:59:59.5 +0000 UTC'],
  ];
  for (const [text, expected] of cases) {
    test(text, () => assert.equal(formatGoTime(parseRfc3339(text)!), expected));
  }
});
