import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { UsageError } from '../usage-error.ts';
import { outputFormatFrom } from './format.ts';
import { type Listing, printItems } from './print.ts';

const LISTING: Listing<{ metadata: { name: string }; tags?: string[] }> = {
  kind: 'Thing',
  columns: [],
  name: ({ metadata }) => metadata.name,
};
const ITEMS = [{ metadata: { name: 'a' }, tags: ['p', 'q'] }, { metadata: { name: 'bcd' } }];

describe("kubectl's custom columns", () => {
  const print = (format: string, options: Parameters<typeof printItems>[3] = {}) =>
    printItems(LISTING, ITEMS, outputFormatFrom(format), options);

  test('a row an item, several values with commas, <none> for what is not there', () => {
    assert.equal(
      print('custom-columns=NAME:.metadata.name,TAGS:{.tags[*]},KIND:kind'),
      'NAME   TAGS     KIND\na      p,q      Thing\nbcd    <none>   Thing\n',
    );
  });

  test('without headings, and for one object', () => {
    assert.equal(print('custom-columns=NAME:.metadata.name', { withHeader: false }), 'a\nbcd\n');
    const one = printItems(LISTING, ITEMS.slice(0, 1), outputFormatFrom('custom-columns=N:.metadata.name'), {
      isSingle: true,
    });
    assert.equal(one, 'N\na\n');
  });

  test('what is no column is refused', () => {
    for (const wrong of ['custom-columns=', 'custom-columns=NAME', 'custom-columns=A:.a,', 'custom-columns=A:.a[']) {
      assert.throws(() => print(wrong), UsageError, wrong);
    }
  });
});
