import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { contentsOf } from './contents.ts';
import { readIgnitionBytes } from './read-bytes.ts';
import { IgnitionError } from './types.ts';

const packed = (bytes: Uint8Array) => `data:;base64,${gzipSync(bytes).toString('base64')}`;

test('contents are decoded and expanded', () => {
  assert.equal(contentsOf({ source: 'data:,a%20b' }).toString(), 'a b');
  assert.equal(contentsOf({ source: packed(Buffer.from('text')), compression: 'gzip' }).toString(), 'text');
  for (const nothing of [undefined, {}, { source: '' }, { source: '', compression: 'gzip' }, { compression: 'xz' }]) {
    assert.equal(contentsOf(nothing).length, 0);
  }
});

test('a bomb is refused before it goes off', () => {
  const source = packed(Buffer.alloc(100 * 1024 * 1024));
  assert.throws(() => contentsOf({ source, compression: 'gzip' }), /expands to more than/);
  assert.throws(() => contentsOf({ source: 'data:,12345' }, 4), /at most 4/);
});

test('what a node would have to fetch is refused, and not repeated in full', () => {
  const secret = 'https://user:password-of-the-registry@x.io/file';
  assert.throws(
    () => contentsOf({ source: secret }),
    (error: Error) => error instanceof IgnitionError && !error.message.includes('password-of'),
  );
  assert.throws(() => contentsOf({ source: 'data:,x', compression: 'gzip' }), /not valid gzip/);
  const padded = Buffer.concat([gzipSync('text'), Buffer.alloc(8)]).toString('base64');
  assert.throws(() => contentsOf({ source: `data:;base64,${padded}`, compression: 'gzip' }), /not valid gzip/);
  assert.throws(() => contentsOf({ source: 'data:,x', compression: 'xz' }), /unsupported compression type "xz"/);
});

test('documents come plain, packed, or packed in base64; one byte of the magic number is not enough (D-33)', () => {
  const text = JSON.stringify({ ignition: { version: '3.4.0' }, storage: { files: [{ path: '/a' }] } });
  const zipped = gzipSync(text);
  for (const bytes of [Buffer.from(text), zipped, Buffer.from(zipped.toString('base64'))]) {
    assert.equal(readIgnitionBytes(bytes)?.storage?.files?.[0]?.path, '/a');
  }
  assert.throws(() => readIgnitionBytes(Buffer.from([0x1f, 0x00, 0x01])), IgnitionError);
  assert.throws(() => readIgnitionBytes(Buffer.from([0x1f, 0x8b, 0x01])), IgnitionError);
});
