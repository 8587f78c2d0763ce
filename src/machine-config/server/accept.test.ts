import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { servedVersion } from './accept.ts';

describe('the version for an Accept header (MS-2)', () => {
  const type = 'application/vnd.coreos.ignition+json';
  for (const [header, expected] of [
    ['I;version=3.4.0', '3.4.0'],
    ['I;version=3.9.1', '3.4.0'],
    // What comes before a release is less than the release.
    ['I;version=3.4.0-rc.1', '3.3.0'],
    ['I;version=4.0.0-alpha', '3.4.0'],
    ['I;version=3.1.0-experimental', undefined],
    ['I;version=2.2.0-dev', undefined],
    ['I;version=3.0.0-dev', '2.2.0'],
    ['I;version=3.3.0+build-1', '3.3.0'],
    // The first that can be read counts.
    ['I;version=x;version=3.2.0', '3.2.0'],
    ['I;version=3.2.0;version=3.4.0', '3.2.0'],
    ['I;version=3.2.0;q=0.5, I;version=3.4.0;q=', '3.4.0'],
    ['I;version=3.2.0;q=0.5, I;version=3.4.0;q=much;q=0.1', '3.2.0'],
    ['I;version=3.2.0;q=0.5, I;version=3.3.0', '3.3.0'],
    ['I;version=x', '2.2.0'],
    ['*/*', '2.2.0'],
    ['', '2.2.0'],
  ] as const) {
    test(`${header || 'none'} gets ${expected ?? 'nothing'}`, () =>
      assert.equal(servedVersion(header.replaceAll('I;', `${type};`)), expected));
  }
});
