import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { discardBody } from './request-body.ts';

describe('a body nobody wants', () => {
  it('is taken to its end', async () => {
    const body = new PassThrough();
    discardBody(body, () => assert.fail('there is nothing to cut'));
    body.end('x'.repeat(1_000_000));
    await once(body, 'close');
    assert.equal(body.readableEnded, true);
  });

  it('is cut off when it does not end in time', async () => {
    const body = new PassThrough();
    body.write('x');
    discardBody(body, () => body.destroy(), 1);
    await once(body, 'close');
    assert.equal(body.readableEnded, false);
  });
});
