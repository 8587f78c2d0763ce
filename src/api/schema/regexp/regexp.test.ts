import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Budget, BudgetSpent } from '../budget.ts';
import { Pattern } from './regexp.ts';

const PLENTY = 1e9;
const finds = (pattern: string, text: string) => new Pattern(pattern).test(text, new Budget(PLENTY));

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
    ['^\\p{L}+\\pN$', ['äß文1'], ['a-1', 'a']],
    ['^[\\p{Greek}\\P{L}]+$', ['αβ-1'], ['a']],
    ['^\\p{^Lu}$', ['a', '1'], ['A']],
    ['^\\p{Letter}\\p{old_italic}$', ['a𐌀'], ['aa']],
    ['(?i)^straße$', ['STRAẞE', 'ſTRAßE'], ['STRASSE']],
    ['(?i)^[^k]$', ['x'], ['k', 'K', '\u212a']],
    ['^\\012\\0$', ['\n\0'], ['12']],
    ['^\\Qab\\E*$', ['a', 'abb'], ['abab']],
  ];
  for (const [pattern, matching, others] of cases) {
    test(pattern, () => {
      for (const text of matching) assert.equal(finds(pattern, text), true, JSON.stringify(text));
      for (const text of others) assert.equal(finds(pattern, text), false, JSON.stringify(text));
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
      '\\p{Nope}',
      '\\p{Alphabetic}',
      '\\p{L',
      '(a{40}){40}',
      '[[:nope:]]',
      '\\x{110000}',
    ];
    for (const pattern of bad) assert.throws(() => new Pattern(pattern), SyntaxError, pattern);
    assert.throws(() => new Pattern('('.repeat(5000) + ')'.repeat(5000)), SyntaxError);
    assert.throws(() => new Pattern('((a{1000}){1000}){1000}'), SyntaxError);
    assert.throws(() => new Pattern('(((){1000}){1000}){1000}'), SyntaxError);
  });

  test('the work grows no faster than the text, where backtracking takes for ever', () => {
    const patterns = [
      '^(a+)+$',
      '^(a|a)*$',
      '^(a|aa)+$',
      '(x+x+)+y',
      '^(([a-z])+.)+[A-Z]([a-z])+$',
      '[a-q][^u-z]{13}x',
    ];
    for (const pattern of patterns) {
      const steps = (length: number) => {
        const budget = new Budget(PLENTY);
        assert.equal(new Pattern(pattern).test(`${'a'.repeat(length)}!`, budget), false);
        return budget.used;
      };
      assert.ok(steps(100_000) <= 10 * steps(10_000), pattern);
    }
  });

  test('a pattern with thousands of steps is worked out once, not once for every character', () => {
    const budget = new Budget(10_000_000);
    assert.equal(new Pattern('(a?){1000}(a){1000}$').test('a'.repeat(100_000), budget), true);
  });

  test('what would take too long is stopped', () => {
    const coins = Array.from({ length: 100_000 }, (_, index) => ((index * index) % 7 < 3 ? 'a' : 'b')).join('');
    const random = coins.replaceAll(/./g, (letter, at: number) => (((at * 2654435761) >>> 7) & 1 ? letter : 'a'));
    assert.throws(() => new Pattern('a(a|b){900}c').test(random, new Budget(1_000_000)), BudgetSpent);
    assert.throws(() => [...new Pattern('(a|b)*c').matches(random, Infinity, new Budget(100_000))], BudgetSpent);
    assert.throws(() => new Pattern('(?:[a-z]{1000}){1}'.repeat(20), new Budget(10_000)), BudgetSpent);
  });

  test('finds the first match, the preferred one, and all of them', () => {
    const cases: [pattern: string, text: string, matches: string[]][] = [
      ['a+', 'caabaaa', ['aa', 'aaa']],
      ['a+?', 'aab', ['a', 'a']],
      ['(?U)a+', 'aab', ['a', 'a']],
      ['a|ab', 'ab', ['a']],
      ['ab|a', 'ab', ['ab']],
      ['a*', 'baac', ['', 'aa', '']],
      ['', '😀x', ['', '', '']],
      ['\\bx\\b', 'x ax x', ['x', 'x']],
      ['^a', 'aaa', ['a']],
      ['(|a)*', 'aa', ['', '', '']],
      ['(|a)+', 'aa', ['', '', '']],
      ['[0-9]+\\.[0-9]+', '4.16 and 1.29', ['4.16', '1.29']],
    ];
    for (const [pattern, text, matches] of cases) {
      assert.deepEqual([...new Pattern(pattern).matches(text, Infinity, new Budget(PLENTY))], matches, pattern);
    }
    assert.deepEqual([...new Pattern('a').matches('aaa', 2, new Budget(PLENTY))], ['a', 'a']);
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
          finds(source, value),
          new RegExp(source, 'u').test(value),
          `${source} on ${JSON.stringify(value)}`,
        );
      }),
      { numRuns: 2000 },
    );
  });
});
