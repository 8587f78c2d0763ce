import { decodeStrictBase64 } from '../base64.ts';
import { expanded } from './contents.ts';
import { readIgnition } from './read.ts';
import { type IgnitionConfig, IgnitionError } from './types.ts';

/** Room for an object of the API several times over. */
const LARGEST_DOCUMENT_BYTES = 16 * 1024 * 1024;

/**
 * Reads an Ignition document that arrives as bytes: JSON, gzipped JSON, or base64 of that (spec 60, 5.8.3). Undefined for one that
 * says nothing. Throws `IgnitionError`.
 */
export function readIgnitionBytes(bytes: Uint8Array): IgnitionConfig | undefined {
  const decoded = decodeStrictBase64(Buffer.from(bytes).toString('latin1').trim());
  const packed = isGzip(bytes) ? bytes : decoded !== undefined && isGzip(decoded) ? decoded : undefined;
  const text = Buffer.from(packed === undefined ? bytes : expanded(packed, LARGEST_DOCUMENT_BYTES)).toString('utf8');
  return readIgnition(parsed(text));
}

/** Both bytes of the magic number, not either (D-33). */
function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new IgnitionError('', 'expected a JSON document, plain, gzipped or base64 of gzipped');
  }
}
