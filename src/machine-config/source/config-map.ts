import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { configMapBytes } from '../../machine-config-api/config-map.ts';
import { SourceError } from './error.ts';

export { bytesOfText } from '../../machine-config-api/config-map.ts';

/** The bytes of one key of a ConfigMap, by the rules of `configMapBytes`. Throws `SourceError` when there is no such key. */
export function readBytes(configMap: ConfigMap, key: string): Buffer {
  const bytes = configMapBytes(configMap, key);
  if (bytes === undefined) throw keyNotFound(configMap, key);
  return bytes;
}

/** `cloud.conf` and the like: only `data`, verbatim (spec 50, RD-5). */
export function readText(configMap: ConfigMap, key: string): string {
  const { data } = configMap;
  if (data && Object.hasOwn(data, key)) return data[key] as string;
  throw keyNotFound(configMap, key);
}

function keyNotFound({ metadata = {} }: ConfigMap, key: string): SourceError {
  const { namespace = '', name = '' } = metadata;
  return new SourceError(`configmap ${namespace}/${name}`, key, `${key} not found in ${namespace}/${name}`);
}
