import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readIgnition } from './read.ts';
import { IgnitionError } from './types.ts';

/** What a version brought: read by it, refused or unknown before. */
describe('each version of spec 3 by its own rules (RN-9)', () => {
  const read = (minor: number, parts: object, ignition: object = {}) =>
    readIgnition({ ignition: { version: `3.${minor}.0`, ...ignition }, ...parts });
  const file = (contents: object) => ({ storage: { files: [{ path: '/a', contents }] } });
  const brought: [since: number, what: string, parts: object][] = [
    [1, 'sha256', file({ source: 'data:,', verification: { hash: `sha256-${'0'.repeat(64)}` } })],
    [2, 'the scheme gs', file({ source: 'gs://bucket/object' })],
    [3, 'the format none', { storage: { filesystems: [{ device: '/dev/a', format: 'none' }] } }],
    [4, 'the scheme arn', file({ source: 'arn:aws:s3:::bucket/object' })],
  ];
  for (const [since, what, parts] of brought) {
    test(`3.${since} brought ${what}`, () => {
      assert.ok(read(since, parts));
      assert.throws(() => read(since - 1, parts), IgnitionError);
    });
  }

  test('3.1 brought the compression of other documents; before that it was nothing', () => {
    const merge = { config: { merge: [{ source: 'data:,', compression: 'gzip' }] } };
    assert.deepEqual(read(0, {}, merge)?.ignition.config?.merge, [{ source: 'data:,' }]);
    assert.deepEqual(read(1, {}, merge)?.ignition.config?.merge, merge.config.merge);
  });
});
