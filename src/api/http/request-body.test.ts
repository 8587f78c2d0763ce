import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { PROTOBUF_MEDIA_TYPE } from '../protobuf/messages.ts';
import { discardBody, LARGEST_BODY_BYTES, parseObject, readBody } from './request-body.ts';

describe('a body', () => {
  it('comes as a whole, up to the largest', async () => {
    const body = new PassThrough();
    const read = readBody(body, undefined);
    body.write(Buffer.alloc(LARGEST_BODY_BYTES - 1, 'x'));
    body.end('y');
    assert.equal((await read).length, LARGEST_BODY_BYTES);
  });

  it('that is too large is refused as soon as that is known', async () => {
    const announced = readBody(new PassThrough(), String(LARGEST_BODY_BYTES + 1));
    await assert.rejects(announced, { code: 413 });
    const body = new PassThrough();
    const read = assert.rejects(readBody(body, undefined), { code: 413 });
    body.write(Buffer.alloc(LARGEST_BODY_BYTES + 1));
    await read;
    assert.equal(body.destroyed, false, 'the answer needs the connection');
  });

  for (const [how, error] of [
    ['breaks', new Error('reset by peer')],
    ['ends early', undefined],
  ] as const) {
    it(`whose connection ${how} is the client's mistake`, async () => {
      const body = new PassThrough();
      const read = assert.rejects(readBody(body, '10'), { code: 400, message: /before the body .* was complete/ });
      body.write('half');
      body.destroy(error);
      await read;
    });
  }

  it('is JSON where nobody says what it is', () => {
    for (const type of [undefined, '', ' ; charset=utf-8', 'Application/JSON;charset=utf-8']) {
      assert.deepEqual(parseObject(Buffer.from('{"a":1}'), type, 'Secret').value, { a: 1 });
    }
    assert.throws(() => parseObject(Buffer.from('{}'), 'text/plain', 'Secret'), { code: 415 });
  });

  const broken: [type: string, text: string, why: RegExp][] = [
    ['application/json', '{"data": hunter2}', /must be of type Secret\): .*invalid JSON$/],
    ['application/json', '{"data" hunter2}', /must be of type Secret\): .*invalid character at position 8$/],
    ['application/json', '{"data": "hunter2', /unexpected end of JSON input$/],
    [PROTOBUF_MEDIA_TYPE, 'hunter2', /must be of type Secret\): /],
    [PROTOBUF_MEDIA_TYPE, 'k8s\0\xffhunter2', /must be of type Secret\): /],
  ];
  for (const [type, text, message] of broken) {
    it(`that is no ${type} is refused without a word of it: ${JSON.stringify(text)}`, () => {
      assert.throws(
        () => parseObject(Buffer.from(text, 'latin1'), type, 'Secret'),
        (error: Error & { code?: number }) => {
          assert.equal(error.code, 400);
          assert.match(error.message, message);
          assert.doesNotMatch(error.message, /hunter/);
          return true;
        },
      );
    });
  }
});

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
