import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compilePattern, LONGEST_PATTERN } from './regexp.ts';

describe('patterns', () => {
  const cases: [pattern: string, matching: string[], others: string[]][] = [
    ['abc', ['abc', 'xabcx'], ['ab', '']],
    ['^abc$', ['abc'], ['abc\n', 'xabc']],
    ['', ['', 'x'], []],
    ['^$', [''], ['x']],
    ['^a*$', ['', 'aaa'], ['b']],
    ['^(a|b)+c?$', ['ab', 'abac'], ['c', '']],
    ['^a{2,3}$', ['aa', 'aaa'], ['a', 'aaaa']],
    ['^a{2}$', ['aa'], ['aaa']],
    ['^a{2,}$', ['aaaaa'], ['a']],
    ['^a{,2}$', ['a{,2}'], ['aa']],
    ['^[a-c_]+$', ['abc_'], ['d']],
    ['^[^a-c]+$', ['xyz\n'], ['xay']],
    ['^[]a]+$', [']a'], ['b']],
    ['^[a-]+$', ['a-'], ['b']],
    ['^[[:alpha:][:digit:]]+$', ['aZ9'], ['-']],
    ['^\\d+\\.\\w+\\s\\S$', ['12.ab x'], ['12ab x']],
    ['^\\x41\\x{1F600}\\t$', ['A😀\t'], ['A']],
    ['^.$', ['😀', 'x'], ['\n', 'xx']],
    ['(?s)^.$', ['\n'], []],
    ['(?i)^abc$', ['aBC'], ['abd']],
    ['^(?i:a)b$', ['Ab'], ['AB']],
    ['(?m)^b$', ['a\nb\nc'], ['abc']],
    ['\\bfoo\\b', ['a foo b', 'foo'], ['afoo']],
    ['\\Bo', ['foo'], ['o']],
    ['^\\Qa.b\\E$', ['a.b'], ['axb']],
    ['^(?P<name>a)(?:b)$', ['ab'], ['a']],
    ['^a??b$', ['b', 'ab'], ['aab']],
    ['^(|a)+$', ['', 'aaa'], ['b']],
    ['^(a*)*$', ['aaa'], ['b']],
    ['\\A\\w\\z', ['a'], ['ab']],
  ];
  for (const [pattern, matching, others] of cases) {
    test(pattern, () => {
      const compiled = compilePattern(pattern);
      for (const text of matching) assert.equal(compiled.test(text), true, JSON.stringify(text));
      for (const text of others) assert.equal(compiled.test(text), false, JSON.stringify(text));
    });
  }

  test('what RE2 does not have is a syntax error', () => {
    const bad = [
      '(',
      ')',
      'a)',
      '[',
      '[a',
      '*',
      'a**',
      '(?=a)',
      '(?!a)',
      '(?<!a)',
      '(a)\\1',
      'a{1001}',
      'a{3,2}',
      '\\',
      '\\c',
      '[b-a]',
      '\\p{L}',
      '[[:nope:]]',
      '\\x{110000}',
    ];
    for (const pattern of bad) assert.throws(() => compilePattern(pattern), SyntaxError, pattern);
    assert.throws(() => compilePattern('a'.repeat(LONGEST_PATTERN + 1)), SyntaxError);
    assert.throws(() => compilePattern('('.repeat(500) + ')'.repeat(500)), SyntaxError);
    assert.throws(() => compilePattern('((a{1000}){1000}){1000}'), SyntaxError);
    assert.throws(() => compilePattern('(((){1000}){1000}){1000}'), SyntaxError);
  });

  test('no pattern takes more than a moment, where backtracking takes for ever', () => {
    const text = `${'a'.repeat(5000)}!`;
    for (const pattern of ['^(a+)+$', '^(a|a)*$', '^(a|aa)+$', '(x+x+)+y', '^(([a-z])+.)+[A-Z]([a-z])+$']) {
      assert.equal(compilePattern(pattern).test(text), false);
    }
  });

  test('agrees with JavaScript wherever both know the syntax', () => {
    const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\d', '\\w', 'c', '(a|b)', '(?:ab)', '^', '$', '\\b');
    const quantifier = fc.constantFrom('', '', '*', '+', '?', '{1,2}', '*?');
    const piece = fc.tuple(atom, quantifier).map(([a, q]) => (a === '^' || a === '$' || a === '\\b' ? a : a + q));
    const branch = fc.array(piece, { maxLength: 5 }).map(parts => parts.join(''));
    const pattern = fc.array(branch, { minLength: 1, maxLength: 3 }).map(parts => parts.join('|'));
    const text = fc.array(fc.constantFrom('a', 'b', 'c', '1', ' '), { maxLength: 8 }).map(parts => parts.join(''));
    fc.assert(
      fc.property(pattern, text, (source, value) => {
        assert.equal(
          compilePattern(source).test(value),
          new RegExp(source, 'u').test(value),
          `${source} on ${JSON.stringify(value)}`,
        );
      }),
      { numRuns: 2000 },
    );
  });
});
