const NEWLINE = 0x0a;

/**
 * Reads a stream of JSON values, one a line, from chunks cut anywhere. Throws `TornLine` when the stream ends inside a
 * line and `LineTooLong` before a line longer than `largestBytes` is held in memory.
 */
export async function* jsonLines(
  chunks: AsyncIterable<Uint8Array>,
  largestBytes: number,
): AsyncGenerator<unknown, void, undefined> {
  let pieces: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const rest = chunk.subarray(start, end);
      start = end + 1;
      size += rest.length;
      if (size > largestBytes) throw new LineTooLong(largestBytes);
      const line = pieces.length === 0 ? rest : Buffer.concat([...pieces, rest], size);
      pieces = [];
      size = 0;
      if (!isBlank(line)) yield parse(line);
    }
    if (start === chunk.length) continue;
    size += chunk.length - start;
    if (size > largestBytes) throw new LineTooLong(largestBytes);
    pieces.push(chunk.subarray(start));
  }
  if (size > 0 && !isBlank(Buffer.concat(pieces, size))) throw new TornLine(size);
}

/** The stream ended, but not at the end of a line. */
export class TornLine extends Error {
  override readonly name = 'TornLine';

  constructor(bytes: number) {
    super(`the stream ended in the middle of a line, after ${bytes} bytes of it`);
  }
}

export class LineTooLong extends Error {
  override readonly name = 'LineTooLong';

  constructor(largestBytes: number) {
    super(`expected lines of at most ${largestBytes} bytes, found a longer one`);
  }
}

/** A line that is not JSON. Says nothing of its content, which may be a Secret. */
export class NotJson extends Error {
  override readonly name = 'NotJson';

  constructor(bytes: number) {
    super(`expected a JSON value, found a line of ${bytes} bytes that is none`);
  }
}

function parse(line: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString('utf8')) as unknown;
  } catch {
    throw new NotJson(line.length);
  }
}

function isBlank(line: Uint8Array): boolean {
  return line.every(byte => byte === 0x20 || byte === 0x0d || byte === 0x09);
}
