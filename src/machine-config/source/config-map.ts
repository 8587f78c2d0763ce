import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { SourceError } from './error.ts';
import { decodeStrictBase64 } from '../../machine-config-api/base64.ts';

/**
 * The bytes of one key of a ConfigMap: `binaryData` as it is; `data` decoded where the whole text is strict base64, else as
 * text (spec 50, RD-1 to RD-3). Throws `SourceError` when the key is in neither.
 */
export function readBytes(configMap: ConfigMap, key: string): Buffer {
  const { data = {}, binaryData = {} } = configMap;
  if (Object.hasOwn(binaryData, key)) return Buffer.from(binaryData[key] as string, 'base64');
  if (Object.hasOwn(data, key)) return bytesOfText(data[key] as string);
  throw keyNotFound(configMap, key);
}

/** `cloud.conf` and the like: only `data`, verbatim (spec 50, RD-5). */
export function readText(configMap: ConfigMap, key: string): string {
  const { data = {} } = configMap;
  if (Object.hasOwn(data, key)) return data[key] as string;
  throw keyNotFound(configMap, key);
}

/** One value of `data` by rule RD-2. */
export function bytesOfText(text: string): Buffer {
  return decodeStrictBase64(text) ?? Buffer.from(text, 'utf8');
}

function keyNotFound({ metadata = {} }: ConfigMap, key: string): SourceError {
  const { namespace = '', name = '' } = metadata;
  return new SourceError(`configmap ${namespace}/${name}`, key, `${key} not found in ${namespace}/${name}`);
}
