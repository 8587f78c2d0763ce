import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { goQuote } from './go-quote.ts';

describe('a text in quotes', () => {
  for (const [text, expected] of [
    ['plain', '"plain"'],
    ['a "b" \\c', '"a \\"b\\" \\\\c"'],
    ['a\nb\tc\r\x07\b\f\v', '"a\\nb\\tc\\r\\a\\b\\f\\v"'],
    ['\x01\x7f', '"\\x01\\x7f"'],
    ['\u0080\u00a0\u200b\ufeff', '"\\u0080\\u00a0\\u200b\\ufeff"'],
    ['\u{e0001}', '"\\U000e0001"'],
    ['\u{1f600} \u00e9 \u4e16', '"\u{1f600} \u00e9 \u4e16"'],
    ['\ud800', '"\ufffd"'],
    ['', '""'],
  ] as const) {
    test(`${JSON.stringify(text)} is ${expected}`, () => assert.equal(goQuote(text), expected));
  }
});
