import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fitsFormat, fitsIntegerFormat } from './format.ts';
import { isQuantity } from './quantity.ts';

describe('formats', () => {
  const good: Record<string, string[]> = {
    'date-time': ['2026-11-15T12:00:00Z', '2026-11-15T12:00:00.123+02:00'],
    date: ['2026-02-28'],
    duration: ['1h30m', '1.5s', '0', '22 ns', '2 days', '-5m'],
    ipv4: ['10.0.0.1'],
    ipv6: ['::1', 'fe80::1'],
    cidr: ['10.0.0.0/8', '::/0'],
    mac: ['00:1a:2b:3c:4d:5e'],
    uuid: ['123e4567-e89b-12d3-a456-426614174000', '123E4567E89B12D3A456426614174000'],
    uuid4: ['123e4567-e89b-42d3-a456-426614174000'],
    hostname: ['example.com', 'a'],
    email: ['a@b.c'],
    uri: ['https://example.com/x', '/path'],
    byte: ['', 'YQ==', 'YWI='],
    hexcolor: ['#fff', 'a1b2c3'],
    rgbcolor: ['rgb(1, 2, 255)'],
    isbn: ['0321751043', '978-0321751041'],
    creditcard: ['4111 1111 1111 1111'],
    ssn: ['123-45-6789'],
    int32: ['anything'],
  };
  const bad: Record<string, string[]> = {
    'date-time': ['2026-11-15', '2026-13-01T00:00:00Z'],
    date: ['2026-02-30'],
    duration: ['1', 'h', '1 fortnight'],
    ipv4: ['10.0.0.256', '::1'],
    ipv6: ['10.0.0.1'],
    cidr: ['10.0.0.0/33', '10.0.0.0'],
    mac: ['00:1a:2b:3c:4d'],
    uuid: ['123e4567'],
    uuid4: ['123e4567-e89b-12d3-a456-426614174000'],
    hostname: ['-a', 'a..b', ''],
    email: ['a', 'a@'],
    uri: ['not a uri'],
    byte: ['a', 'a===', '!'],
    hexcolor: ['#ff'],
    rgbcolor: ['rgb(1,2,256)'],
    isbn: ['0321751044'],
    creditcard: ['4111 1111 1111 1112'],
    ssn: ['123'],
  };
  for (const [format, values] of Object.entries(good)) {
    for (const value of values) test(`${format}: ${value}`, () => assert.equal(fitsFormat(format, value), true));
  }
  for (const [format, values] of Object.entries(bad)) {
    for (const value of values) test(`${format}: not ${value}`, () => assert.equal(fitsFormat(format, value), false));
  }
  test('values may be as long as a request', () => {
    const long: Record<string, string> = {
      byte: 'QUJD'.repeat(700_000),
      uri: `https://example.com/${'x'.repeat(100_000)}`,
      email: `${'x'.repeat(100_000)}@example.com`,
      duration: '1s'.repeat(1000),
    };
    for (const [format, value] of Object.entries(long)) assert.equal(fitsFormat(format, value), true, format);
    assert.equal(isQuantity(`0.${'0'.repeat(1000)}1`), true);
  });
  test('int32 is 32 bits wide, other formats of integers are not narrower than a number', () => {
    const values = [-(2 ** 31) - 1, -(2 ** 31), 0, 2 ** 31 - 1, 2 ** 31];
    assert.deepEqual(
      values.map(value => fitsIntegerFormat('int32', value)),
      [false, true, true, true, false],
    );
    assert.ok(values.every(value => fitsIntegerFormat('int64', value)));
  });
});
