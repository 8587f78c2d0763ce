import { KUBELET_CONFIGURATION, type KubeletConfiguration, zeroOf } from './decode.ts';
import type { GoType } from './go-type.ts';

/** A configuration as Go writes it: fields in the order of their definition, with those that are always written. */
export function encodeKubeletConfiguration(configuration: KubeletConfiguration): Record<string, unknown> {
  return encoded(KUBELET_CONFIGURATION, configuration) as Record<string, unknown>;
}

function encoded(type: GoType, value: unknown): unknown {
  if (type.kind === 'struct') {
    const values = (value ?? {}) as KubeletConfiguration;
    return Object.fromEntries(
      [...type.fields.values()]
        .filter(field => !field.omitEmpty || field.type.kind === 'struct' || !isEmpty(field.type, values[field.name]))
        .map(field => [field.name, encoded(field.type, values[field.name])]),
    );
  }
  if (value === undefined || value === null) return zeroOf(type) ?? null;
  if (type.kind === 'pointer') return encoded(type.of, value);
  if (type.kind === 'slice') return (value as unknown[]).map(each => encoded(type.of, each));
  if (type.kind === 'map') {
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(entries.map(([key, each]) => [key, encoded(type.of, each)]));
  }
  return value;
}

/** A type that reads itself is a struct to Go, and no struct is empty. */
function isEmpty(type: GoType, value: unknown): boolean {
  if (type.kind === 'self') return false;
  if (value === undefined || value === null) return true;
  return (type.kind === 'slice' || type.kind === 'map') && Object.keys(value).length === 0;
}
