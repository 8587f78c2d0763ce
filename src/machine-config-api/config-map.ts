import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { decodeStrictBase64 } from './base64.ts';

/**
 * The bytes of one key of a ConfigMap: `binaryData` as it is; `data` decoded where the whole text is strict base64, else as
 * text (spec 50, RD-1 to RD-3; spec 60, 4.7.2). Undefined when the key is in neither.
 */
export function configMapBytes({ data, binaryData }: ConfigMap, key: string): Buffer | undefined {
  if (binaryData && Object.hasOwn(binaryData, key)) return Buffer.from(binaryData[key] as string, 'base64');
  if (data && Object.hasOwn(data, key)) return bytesOfText(data[key] as string);
  return undefined;
}

/** One value of `data` (spec 50, RD-2). */
export function bytesOfText(text: string): Buffer {
  return decodeStrictBase64(text) ?? Buffer.from(text, 'utf8');
}
