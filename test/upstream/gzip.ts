import { gzipSync } from 'node:zlib';

/** Where a header names the system that made it. */
const SYSTEM_BYTE = 9;

/** The same bytes on every machine: nothing is compressed, and no system named. */
export function gzipped(content: string | Buffer): Buffer {
  const bytes = gzipSync(content, { level: 0 });
  bytes[SYSTEM_BYTE] = 255;
  return bytes;
}
