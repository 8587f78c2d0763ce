import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { answeredError, retryAfterMs, warningsOf } from './answer.ts';

describe('answers', () => {
  it('errors come from the Status object, else from the code', () => {
    const status = { kind: 'Status', code: 409, reason: 'AlreadyExists', message: 'there', details: { name: 'a' } };
    const error = answeredError(409, JSON.stringify(status), 'PUT', '/x');
    assert.deepEqual(
      [error.code, error.reason, error.message, error.details],
      [409, 'AlreadyExists', 'there', { name: 'a' }],
    );
    for (const [code, method, reason] of [
      [409, 'POST', 'AlreadyExists'],
      [409, 'PUT', 'Conflict'],
      [404, 'GET', 'NotFound'],
      [418, 'GET', 'Unknown'],
    ] as const) {
      for (const text of ['', 'plain', 'null', '[]', '{"kind":"Pod"}']) {
        assert.equal(answeredError(code, text, method, '/x').reason, reason);
      }
    }
  });

  it('Retry-After is seconds or a date, never negative', () => {
    const now = new Date('2024-01-01T00:00:00Z');
    for (const [header, expected] of [
      ['5', 5000],
      [['7', '9'], 7000],
      ['Mon, 01 Jan 2024 00:00:10 GMT', 10_000],
      ['Sun, 31 Dec 2023 00:00:00 GMT', 0],
      ['-1', undefined],
      ['soon', undefined],
      ['99999999999', undefined],
      [undefined, undefined],
    ] as const) {
      assert.equal(retryAfterMs(header as string | string[] | undefined, now), expected, String(header));
    }
  });

  it('warnings are unquoted, also several in one line', () => {
    assert.deepEqual(warningsOf('299 - "a, b", 299 agent "c \\\\ \\"d\\""'), ['a, b', 'c \\ "d"']);
    assert.deepEqual(warningsOf(undefined), []);
    assert.deepEqual(warningsOf('nonsense "x"'), []);
    assert.equal(warningsOf(Array.from({ length: 50 }, () => '299 - "x"')).length, 20);
  });
});
