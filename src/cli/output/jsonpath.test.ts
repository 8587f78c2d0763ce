import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { UsageError } from '../usage-error.ts';
import { evaluateJsonPath, parseJsonPath } from './jsonpath.ts';

const DOCUMENT = {
  kind: 'List',
  items: [
    { metadata: { name: 'a', labels: { 'x.y/z': 'one' } }, n: 1, tags: ['p', 'q'] },
    { metadata: { name: 'b' }, n: 2, tags: [] },
    { metadata: { name: 'c' }, n: 3, ok: true },
  ],
};

describe("kubectl's jsonpath", () => {
  for (const [template, wanted] of [
    ['{.kind}', 'List'],
    ['kind', 'List'],
    ['{.items[*].metadata.name}', 'a b c'],
    ['{.items[0].metadata.name} and {.items[-1].metadata.name}', 'a and c'],
    ['{.items[0:2].n}', '1 2'],
    ['{.items[0:3:2].n}', '1 3'],
    ['{.items[::2].n}', '1 3'],
    ['{.items[1::].n}', '2 3'],
    ['{.items[0,2].n}', '1 3'],
    ['{.items[2, 0:1, 7].n}', '3 1'],
    ['{.items[0]["n", \'tags\'][*]}', 'p q'],
    ['{range .items[*]}{.metadata.name}={.n}{"\\n"}{end}', 'a=1\nb=2\nc=3\n'],
    ["{.items[0].metadata.labels['x.y/z']}", 'one'],
    ['{.items[0].metadata.labels.x\\.y/z}', 'one'],
    ["{.items[0]['n','kind']}", '1'],
    ['{.items[?(@.n>1)].metadata.name}', 'b c'],
    ['{.items[?(@.metadata.name=="b")].n}', '2'],
    ["{.items[?(@.metadata.name!='b')].n}", '1 3'],
    ['{.items[?(@.ok)].metadata.name}', 'c'],
    ['{.items[?(@.ok==true)].n}', '3'],
    ['{..name}', 'a b c'],
    ['{$.items[1].n}', '2'],
    ['{.items[*].tags[*]}', 'p q'],
    ['{.items[0].tags}', '["p","q"]'],
    ['{.nothing.here}', ''],
    ['plain text, no path: {"{"}', 'plain text, no path: {'],
  ] as const) {
    test(template, () => assert.equal(evaluateJsonPath(parseJsonPath(template), DOCUMENT), wanted));
  }

  for (const wrong of [
    '{',
    '{.a',
    '{.items[}',
    '{.items[?(@.n>)]}',
    '{end}',
    '{range .items[*]}',
    '{"a',
    "{['a'}",
    '{.items[0:2:0]}',
    '{.items[0,]}',
    '{.items[0:1:2:3]}',
  ]) {
    test(`${wrong} is refused with the place`, () => {
      assert.throws(
        () => parseJsonPath(wrong),
        (error: unknown) => error instanceof UsageError && /at character \d+/.test(error.message),
      );
    });
  }

  test('whatever the template and the document, it answers or says UsageError', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), fc.jsonValue(), (template, document) => {
        try {
          assert.equal(typeof evaluateJsonPath(parseJsonPath(`{${template}`), document), 'string');
        } catch (error) {
          assert.ok(error instanceof UsageError, String(error));
        }
      }),
      { numRuns: 500 },
    );
  });
});
