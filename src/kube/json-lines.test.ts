import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { jsonLines, LineTooLong, NotJson, TornLine } from './json-lines.ts';

async function* chunksOf(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function read(chunks: AsyncIterable<Uint8Array>, largest = 1024 * 1024): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of jsonLines(chunks, largest)) values.push(value);
  return values;
}

describe('jsonLines', () => {
  it('gives the same values wherever the chunks are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue(), { maxLength: 8 }),
        fc.array(fc.nat(400), { maxLength: 12 }),
        async (values, cuts) => {
          const bytes = Buffer.from(values.map(value => `${JSON.stringify(value)}\n`).join(''));
          const borders = [0, ...cuts.filter(cut => cut < bytes.length), bytes.length].sort((a, b) => a - b);
          const chunks = borders.slice(1).map((end, index) => bytes.subarray(borders[index], end));
          const expected = JSON.parse(JSON.stringify(values)) as unknown[];
          assert.deepEqual(await read(chunksOf(...chunks)), expected);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('skips empty lines and accepts \\r\\n', async () => {
    assert.deepEqual(await read(chunksOf(Buffer.from('\n\r\n1\r\n \n2\n'))), [1, 2]);
  });

  it('complains about a torn line, a long line and a line that is not JSON', async () => {
    await assert.rejects(read(chunksOf(Buffer.from('1\n{"a":'))), TornLine);
    await assert.rejects(read(chunksOf(Buffer.from('"aaaa'), Buffer.from('aaaaaaaa')), 10), LineTooLong);
    await assert.rejects(read(chunksOf(Buffer.from('"aaaaaaaaaaaa"\n')), 10), LineTooLong);
    await assert.rejects(read(chunksOf(Buffer.from('secret\n'))), (error: Error) => {
      assert.ok(error instanceof NotJson);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  });
});
