import { type Gunzip, gunzipSync } from 'node:zlib';
import { decodeDataUrl } from './data-url.ts';
import { IgnitionError, type IgnitionResource } from './types.ts';

/** What one file may hold once it is expanded. A config travels in one object of 1.5 MB; what grows larger is a bomb. */
export const LARGEST_CONTENTS_BYTES = 16 * 1024 * 1024;

/**
 * The bytes a file is to have (spec 60, 6.6): a data URL, plain or base64, expanded if it is compressed. No source, or an empty
 * one, is an empty file (D-15). A node fetches nothing: any other source is refused. Throws `IgnitionError`.
 */
export function contentsOf(resource: IgnitionResource | undefined, limitBytes = LARGEST_CONTENTS_BYTES): Buffer {
  const { source = '', compression = '' } = resource ?? {};
  if (source === '') return Buffer.alloc(0);
  if (compression !== '' && compression !== GZIP)
    throw new IgnitionError('compression', `unsupported compression type ${JSON.stringify(compression)}`);
  const bytes = decodeDataUrl(source);
  if (bytes === undefined)
    throw new IgnitionError(
      'source',
      `expected a data URL, found one of scheme ${schemeOf(source)} or a malformed one`,
    );
  return compression === GZIP ? expanded(bytes, limitBytes) : limited(bytes, limitBytes);
}

/** The mode a file is to have; Ignition leaves it out for 0644 (spec 60, 6.7). */
export const DEFAULT_FILE_MODE = 0o644;

/** Expands gzip, never beyond the limit. Throws `IgnitionError`. */
export function expanded(bytes: Uint8Array, limitBytes: number): Buffer {
  const { buffer, engine } = gunzipped(bytes, limitBytes);
  // zlib overlooks zero bytes after the end; others call that broken.
  if (engine.bytesWritten !== bytes.length) throw new IgnitionError('source', 'is not valid gzip');
  return buffer;
}

function gunzipped(bytes: Uint8Array, limitBytes: number): { buffer: Buffer; engine: Gunzip } {
  try {
    return gunzipSync(bytes, { maxOutputLength: limitBytes, info: true }) as unknown as ReturnType<typeof gunzipped>;
  } catch (error) {
    const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw new IgnitionError('source', isTooLarge ? `expands to more than ${limitBytes} bytes` : 'is not valid gzip');
  }
}

const GZIP = 'gzip';

/** Only this much of a source is for error texts: the rest may hold secrets. */
function schemeOf(source: string): string {
  return /^[a-z][a-z0-9+.-]{0,15}(?=:)/i.exec(source)?.[0] ?? '(none)';
}

function limited(bytes: Buffer, limitBytes: number): Buffer {
  if (bytes.length > limitBytes)
    throw new IgnitionError('source', `has ${bytes.length} bytes, at most ${limitBytes} are allowed`);
  return bytes;
}
