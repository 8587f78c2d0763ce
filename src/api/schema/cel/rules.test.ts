import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatFieldError } from '../field-error.ts';
import type { Schema, ValidationRule } from '../schema.ts';
import { validate } from '../validate.ts';
import { evaluate } from './evaluate.ts';
import { parseExpression } from './parse.ts';
import { ruleFault } from './rules.ts';
import { EvaluationError, type Value } from './value.ts';

const SELF: Value = new Map<string, Value>([
  ['replicas', 3n],
  ['ratio', 0.5],
  ['name', 'web'],
  ['tags', ['a', 'b', 'c']],
  ['numbers', [3n, 1n, 2n]],
  [
    'labels',
    new Map<string, Value>([
      ['app', 'x'],
      ['with-dash', 'y'],
    ]),
  ],
  [
    'ports',
    [
      new Map<string, Value>([
        ['port', 80n],
        ['name', 'http'],
      ]),
      new Map<string, Value>([['port', 443n]]),
    ],
  ],
  ['on', true],
]);
const run = (source: string): Value => evaluate(parseExpression(source), new Map([['self', SELF]]));

describe('expressions', () => {
  const cases: [source: string, expected: Value][] = [
    ['1 + 2 * 3', 7n],
    ['7 / 2', 3n],
    ['-7 / 2', -3n],
    ['-7 % 3', -1n],
    ['7.0 / 2.0', 3.5],
    ['1 - 2 - 3', -4n],
    ['0x10 + 1', 17n],
    ['\'a\' + "b"', 'ab'],
    ["r'\\d' == '\\\\d'", true],
    ["'\\u00e9\\n' == 'é\\n'", true],
    ["'''it's'''", "it's"],
    ['1 == 1.0', true],
    ['2 > 1.5', true],
    ["'b' > 'a'", true],
    ['!true || true && false', false],
    ['true ? 1 : 2', 1n],
    ['false ? 1 : true ? 2 : 3', 2n],
    ['1 in [1, 2]', true],
    ["'app' in self.labels", true],
    ['[1, 2] + [3] == [1, 2, 3]', true],
    ["{'a': 1}['a']", 1n],
    ["{'a': 1}.a", 1n],
    ['self.replicas >= 3', true],
    ['self.ratio * 2.0', 1],
    ["self.labels['with-dash']", 'y'],
    ['self.labels.with__dash__dash', 'y'],
    ['self.tags[1]', 'b'],
    ['size(self.tags) == self.tags.size()', true],
    ["'😀'.size()", 1n],
    ['has(self.name) && !has(self.nope)', true],
    ["self.tags.all(t, t.matches('^[a-c]$'))", true],
    ["self.tags.exists(t, t == 'c')", true],
    ["self.tags.exists_one(t, t == 'c')", true],
    ['self.numbers.map(n, n * 2) == [6, 2, 4]', true],
    ['self.numbers.map(n, n > 1, n * 2) == [6, 4]', true],
    ['self.numbers.filter(n, n > 1).size()', 2n],
    ["self.labels.all(k, self.labels[k] != '')", true],
    ['self.ports.all(p, self.ports.exists_one(q, q.port == p.port))', true],
    ['self.ports.all(p, !has(p.name) || p.name.size() < 16)', true],
    ['self.numbers.isSorted()', false],
    ['self.numbers.sum() + self.numbers.max() - self.numbers.min()', 8n],
    ["self.tags.join('-')", 'a-b-c'],
    ["'a,b,c'.split(',').size()", 3n],
    ["'Hello'.lowerAscii() + 'x'.upperAscii()", 'helloX'],
    ["'abc'.substring(1) + 'abc'.substring(0, 1)", 'bca'],
    ["'abcabc'.indexOf('c') + 'abcabc'.lastIndexOf('c')", 7n],
    ["' a '.trim().replace('a', 'b')", 'b'],
    ["'web-1'.startsWith(self.name) && 'x.y'.endsWith('.y') && 'xyz'.contains('y')", true],
    ["int('12') + int(3.9)", 15n],
    ['string(5) + string(true)', '5true'],
    ["double('1.5')", 1.5],
    ["duration('1h') > duration('59m')", true],
    ["timestamp('2026-01-01T00:00:00Z') + duration('1h') == timestamp('2026-01-01T01:00:00Z')", true],
    ["string(duration('90m'))", '5400s'],
    ['true || self.nope', true],
    ['self.nope || true', true],
    ['false && self.nope', false],
    ['[self.on, self.nope].size() == 2 || true', true],
    ["self.?nope.orValue('d')", 'd'],
    ["self.?name.orValue('d')", 'web'],
    ['self.?nope.hasValue()', false],
    ['optional.of(1).value() + optional.none().orValue(2)', 3n],
    ['isURL("https://example.com")', true],
    ["matches('abc', '^a')", true],
    ["'web-12-3'.find('[0-9]+')", '12'],
    ["'web'.find('[0-9]+')", ''],
    ["'web-12-3'.findAll('[0-9]+')", ['12', '3']],
    ["'web-12-3'.findAll('[0-9]+', 1)", ['12']],
    ["'web-12-3'.findAll('[0-9]+', 0)", []],
    ["'a-b-c'.replace('-', '', 1)", 'ab-c'],
    ["'ab'.replace('', '.')", '.a.b.'],
    ["isIP('::1') && ip('10.0.0.1').family() == 4", true],
    ["isCIDR('10.0.0.0/8') && cidr('fd00::/64').prefixLength() == 64 && !isCIDR('10.0.0.0/33')", true],
    ["url('https://example.com:8443/a?b=c').getPort() + url('/x/y').getEscapedPath()", '8443/x/y'],
    ["url('https://example.com').getScheme()", 'https'],
    ["quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').compareTo(quantity('0.5')) == 0", true],
    ["quantity('1e3').isLessThan(quantity('1.1k'))", true],
    ["format.dns1123Label().validate('a-b').hasValue()", false],
    ["format.dns1123Subdomain().validate('A').hasValue()", true],
    ['null == null', true],
    ["1 == '1'", false],
    ['1 // a comment', 1n],
    ["b'a' == b'a'", true],
  ];
  for (const [source, expected] of cases) test(source, () => assert.deepEqual(run(source), expected));

  test('that have no value say why', () => {
    const bad: [source: string, message: RegExp][] = [
      ['self.nope', /no such key: nope/],
      ['self.tags[9]', /index out of bounds: 9/],
      ['1 / 0', /division by zero/],
      ["1 + 'a'", /no such overload/],
      ['1 + 1.0', /no such overload/],
      ['9223372036854775807 + 1', /integer overflow/],
      ['other', /undeclared reference to 'other'/],
      ["1 < 'a'", /no such overload/],
      ["'a'.matches('(')", /missing closing/],
      ['self.name && true', /no such overload/],
      ['!1', /no such overload/],
      ['self.tags.all(t, t.size() > self.nope)', /no such key/],
    ];
    for (const [source, message] of bad) {
      assert.throws(
        () => run(source),
        (error: unknown) => error instanceof EvaluationError && message.test(error.message),
        source,
      );
    }
  });

  test('that are no expressions are refused', () => {
    for (const source of ['', '1 +', '(1', 'a b', "'open", '[1', '{1}', 'a.', 'a ? b', '#', "'\\q'", '('.repeat(500)]) {
      assert.match(ruleFault(source) ?? '', /compilation failed/, source);
    }
    assert.equal(ruleFault('self.x.unheardOf()'), undefined, 'a function we do not have is no fault of the rule');
  });

  test('that loop too much are stopped', () => {
    const list = Array.from({ length: 2000 }, (_, index) => BigInt(index));
    const scope = new Map<string, Value>([['self', list]]);
    assert.throws(
      () => evaluate(parseExpression('self.all(a, self.all(b, a + b >= 0))'), scope),
      /cost limit exceeded/,
    );
    const long = new Map<string, Value>([['self', 'x'.repeat(100_000)]]);
    assert.throws(
      () => evaluate(parseExpression(Array.from({ length: 200 }, () => 'self').join(' + ')), long),
      /cost limit exceeded/,
    );
  });
});

describe('rules', () => {
  const schemaWith = (...rules: ValidationRule[]): Schema => ({
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        'x-kubernetes-validations': rules,
        properties: {
          min: { type: 'integer' },
          max: { type: 'integer' },
          color: {
            type: 'string',
            'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'color is immutable' }],
          },
          items: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['id'],
            items: {
              type: 'object',
              'x-kubernetes-validations': [{ rule: 'self.size >= oldSelf.size', message: 'cannot shrink' }],
              properties: { id: { type: 'string' }, size: { type: 'integer' } },
            },
          },
        },
      },
    },
  });
  const lines = (schema: Schema, spec: object, old?: object) =>
    validate(schema, { spec }, old && { spec: old }).map(formatFieldError);

  test('report the field, its type and the message', () => {
    const schema = schemaWith({ rule: 'self.min <= self.max', message: 'min must not exceed max' });
    assert.deepEqual(lines(schema, { min: 1, max: 2 }), []);
    assert.deepEqual(lines(schema, { min: 3, max: 2 }), ['spec: Invalid value: "object": min must not exceed max']);
  });

  test('can have no message, make one, name a field and a reason', () => {
    assert.deepEqual(lines(schemaWith({ rule: 'self.min > 1' }), { min: 1 }), [
      'spec: Invalid value: "object": failed rule: self.min > 1',
    ]);
    assert.deepEqual(
      lines(schemaWith({ rule: 'false', messageExpression: "'min is ' + string(self.min)" }), { min: 1 }),
      ['spec: Invalid value: "object": min is 1'],
    );
    assert.deepEqual(
      lines(schemaWith({ rule: 'false', message: 'no', fieldPath: '.min', reason: 'FieldValueForbidden' }), { min: 1 }),
      ['spec.min: Forbidden: no'],
    );
  });

  test('that cannot be evaluated fail', () => {
    assert.deepEqual(lines(schemaWith({ rule: 'self.min <= self.max' }), { min: 1 }), [
      'spec: Invalid value: "object": no such key: max evaluating rule: self.min <= self.max',
    ]);
  });

  test('about transitions need an old value, by key in lists', () => {
    const schema = schemaWith();
    assert.deepEqual(lines(schema, { color: 'red' }), []);
    assert.deepEqual(lines(schema, { color: 'red' }, { color: 'blue' }), [
      'spec.color: Invalid value: "string": color is immutable',
    ]);
    const old = {
      items: [
        { id: 'a', size: 5 },
        { id: 'b', size: 1 },
      ],
    };
    assert.deepEqual(
      lines(
        schema,
        {
          items: [
            { id: 'b', size: 2 },
            { id: 'a', size: 4 },
            { id: 'c', size: 0 },
          ],
        },
        old,
      ),
      ['spec.items[1]: Invalid value: "object": cannot shrink'],
    );
  });

  test('with an optional old value are evaluated on creation too', () => {
    const schema = schemaWith({
      rule: 'oldSelf.hasValue() || self.min == 0',
      message: 'start at 0',
      optionalOldSelf: true,
    });
    assert.deepEqual(lines(schema, { min: 1 }), ['spec: Invalid value: "object": start at 0']);
    assert.deepEqual(lines(schema, { min: 1 }, { min: 0 }), []);
  });

  test('that use what we do not have are left alone', () => {
    assert.deepEqual(lines(schemaWith({ rule: "cidr('10.0.0.0/8').containsIP('11.0.0.1')" }), { min: 1 }), []);
  });

  test('are not asked when the shape is wrong', () => {
    assert.deepEqual(lines(schemaWith({ rule: 'false' }), { min: 'x' }).length, 1);
  });
});
