import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { KubeError } from '../../kube/error.ts';
import { formatLabelQuery, matchesLabels, NO_LABEL_SET, parseLabelSelector } from './label.ts';
import { labelQueryOf } from './label-object.ts';

const NAME_RULE =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

describe('label selectors: grammar', () => {
  const cases: [rule: string, text: string, canonical: string][] = [
    ['empty selects everything', '', ''],
    ['blanks select everything', ' \t\n', ''],
    ['equality', 'a=b', 'a=b'],
    ['double equality is kept', 'a == b', 'a==b'],
    ['inequality', 'a!=b', 'a!=b'],
    ['empty value before the end', 'a=', 'a='],
    ['empty value before a comma', 'a=,b', 'a=,b'],
    ['existence', 'a', 'a'],
    ['absence', '! a', '!a'],
    ['set, values sorted without duplicates', 'a in (c, b,c)', 'a in (b,c)'],
    ['set of the empty value', 'a in ()', 'a in ()'],
    ['holes in a set are empty values', 'x in (foo,,baz)', 'x in (,baz,foo)'],
    ['trailing comma in a set', 'a notin (b,)', 'a notin (,b)'],
    ['numbers', 'a>1,b<2', 'a>1,b<2'],
    ['requirements are sorted by key', 'z,y=1,!x', '!x,y=1,z'],
    ['in as a key', 'in in (in,notin)', 'in in (in,notin)'],
    ['in as a value', 'a=in', 'a=in'],
    ['prefixed key', 'node-role.kubernetes.io/master=', 'node-role.kubernetes.io/master='],
    ['newlines are blanks', 'a in\n(b)\r\n', 'a in (b)'],
  ];
  for (const [rule, text, canonical] of cases) {
    it(rule, () => {
      assert.equal(formatLabelQuery(parseLabelSelector(text)), canonical);
    });
  }
});

describe('label selectors: what is refused', () => {
  const cases: [rule: string, text: string, message: string][] = [
    ['starts with an operator', '=a', "found '=', expected: !, identifier, or 'end of string'"],
    ['starts with a comma', ',a', "found ',', expected: !, identifier, or 'end of string'"],
    ['ends with a comma', 'a,', "found '', expected: identifier after ','"],
    ['two commas', 'a,,b', "found ',', expected: identifier after ','"],
    ['something after the value', 'a=b c', "found 'c', expected: ',' or 'end of string'"],
    ['negated equality', '!a=b', "found '=', expected: ',' or 'end of string'"],
    ['nothing to negate', '!', "unable to parse requirement: found '', expected: identifier"],
    ['two negations', '!!a', "unable to parse requirement: found '!', expected: identifier"],
    ['no operator', 'a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['value is an operator', 'a==!', "unable to parse requirement: found '!', expected: identifier"],
    ['three equal signs', 'a===b', "unable to parse requirement: found '=', expected: identifier"],
    ['set without parenthesis', 'a in b', "unable to parse requirement: found 'b' expected: '('"],
    ['set that never ends', 'a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['set that begins badly', 'a in (=', "unable to parse requirement: found '=', expected: ',', ')' or identifier"],
    ['set that goes on badly', 'a in (b,=', "unable to parse requirement: found '=', expected: ',', or identifier"],
    ['two words in a set', 'a in (b c)', "unable to parse requirement: found 'c', expected: ',' or ')'"],
    ['bad key', 'a@=b', `unable to parse requirement: <nil>: Invalid value: "a@": ${NAME_RULE}`],
    [
      'empty prefix and name',
      '/',
      `unable to parse requirement: <nil>: Invalid value: "/": prefix part must be non-empty; name part must be non-empty; ${NAME_RULE}`,
    ],
    [
      'not a number',
      'a>b',
      `unable to parse requirement: values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer`,
    ],
    [
      'bad value',
      'a=$b',
      `unable to parse requirement: values[0][a]: Invalid value: "$b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
    ],
  ];
  for (const [rule, text, message] of cases) {
    it(rule, () => {
      assert.throws(() => parseLabelSelector(text), { name: 'KubeError', code: 400, reason: 'BadRequest', message });
    });
  }

  it('too long keys and values', () => {
    assert.throws(() => parseLabelSelector('a'.repeat(64)), /name part must be no more than 63 characters/);
    assert.throws(() => parseLabelSelector(`a=${'b'.repeat(64)}`), /: must be no more than 63 characters/);
  });
});

describe('label selectors: matching', () => {
  const labels = { app: 'etcd', tier: '', 'k8s.io/zone': 'a', count: '7' };
  const cases: [text: string, expected: boolean][] = [
    ['', true],
    ['app=etcd', true],
    ['app=etcd,tier=', true],
    ['app=other', false],
    ['app!=other', true],
    ['missing!=x', true],
    ['missing=', false],
    ['app in (a,etcd)', true],
    ['missing in (a)', false],
    ['app notin (etcd)', false],
    ['missing notin (etcd)', true],
    ['tier', true],
    ['!tier', false],
    ['!missing', true],
    ['count>6', true],
    ['count>7', false],
    ['count<8', true],
    ['app>1', false],
    ['missing<1', false],
    ['constructor', false],
    ['k8s.io/zone=a', true],
  ];
  for (const [text, expected] of cases) {
    it(`${text || '(empty)'} is ${expected}`, () => {
      assert.equal(matchesLabels(parseLabelSelector(text), labels), expected);
    });
  }

  it('an object without labels', () => {
    assert.equal(matchesLabels(parseLabelSelector('!a'), undefined), true);
    assert.equal(matchesLabels(parseLabelSelector('a'), undefined), false);
  });
});

describe('LabelSelector objects', () => {
  const labels = { app: 'etcd', node: 'master-0' };
  const cases: [rule: string, selector: Parameters<typeof labelQueryOf>[0], expected: boolean][] = [
    ['absent matches nothing', undefined, false],
    ['empty matches everything', {}, true],
    ['matchLabels', { matchLabels: { app: 'etcd' } }, true],
    ['matchLabels must all hold', { matchLabels: { app: 'etcd', node: 'x' } }, false],
    ['In', { matchExpressions: [{ key: 'app', operator: 'In', values: ['etcd', 'x'] }] }, true],
    ['NotIn', { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['etcd'] }] }, false],
    ['Exists', { matchExpressions: [{ key: 'node', operator: 'Exists' }] }, true],
    ['DoesNotExist', { matchExpressions: [{ key: 'node', operator: 'DoesNotExist' }] }, false],
  ];
  for (const [rule, selector, expected] of cases) {
    it(rule, () => {
      assert.equal(matchesLabels(labelQueryOf(selector), labels), expected);
    });
  }

  it('refuses an unknown operator and In without values', () => {
    assert.throws(() => labelQueryOf({ matchExpressions: [{ key: 'a', operator: 'Near' }] }), {
      message: '"Near" is not a valid label selector operator',
    });
    assert.throws(
      () => labelQueryOf({ matchExpressions: [{ key: 'a', operator: 'In' }] }),
      /for 'in', 'notin' operators, values set can't be empty/,
    );
  });

  it('nothing stays nothing for an object without labels', () => {
    assert.equal(matchesLabels(NO_LABEL_SET, undefined), false);
    assert.equal(matchesLabels(NO_LABEL_SET, { '': '' }), false);
  });
});

describe('label selectors: properties', () => {
  const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9_.]{0,8}[a-z0-9])?$/);
  const requirement = fc.oneof(
    name,
    name.map(key => `!${key}`),
    fc.tuple(name, fc.constantFrom('=', '==', '!='), name).map(parts => parts.join(' ')),
    fc
      .tuple(name, fc.constantFrom('in', 'notin'), fc.array(name, { maxLength: 4 }))
      .map(([key, operator, values]) => `${key} ${operator} (${values.join(', ')})`),
    fc.tuple(name, fc.constantFrom('<', '>'), fc.nat()).map(parts => parts.join('')),
  );

  it('what is written reads back to the same query', () => {
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 5 }), requirements => {
        const query = parseLabelSelector(requirements.join(','));
        assert.deepEqual(parseLabelSelector(formatLabelQuery(query)), query);
      }),
    );
  });

  it('any text is parsed or refused with 400', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'a|b| |=|!|(|)|,|<|>|in'.split('|')) })),
        text => {
          try {
            parseLabelSelector(text);
          } catch (error) {
            assert.ok(error instanceof KubeError && error.code === 400, String(error));
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
