import type { Config, ConfigValue } from '../resources.ts';

/** Lays configurations over each other, the later ones on top: mappings merge, everything else is replaced (spec 20, 4.3.6). */
export function mergeConfigs(...configs: readonly (Config | null | undefined)[]): Config {
  return configs.reduce<Config>((merged, config) => merge(merged, config ?? {}), {});
}

function merge(below: Config, above: Config): Config {
  const result: Record<string, ConfigValue> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const existing = Object.hasOwn(below, key) ? below[key] : undefined;
    result[key] = isMapping(existing) && isMapping(value) ? merge(existing, value) : value;
  }
  return result;
}

/** What of a configuration stands at these paths, and nothing else. */
export function prunedTo(config: Config | null | undefined, paths: readonly (readonly string[])[]): Config {
  return mergeConfigs(...paths.map(path => nested(path, valueAt(config, path))));
}

/** A configuration with one value at one path; empty for no value. */
export function nested(path: readonly string[], value: ConfigValue | undefined): Config {
  if (value === undefined) return {};
  return path.reduceRight<ConfigValue>((inner, key) => ({ [key]: inner }), value) as Config;
}

/** The value at a path; undefined where there is none. */
export function valueAt(config: ConfigValue | null | undefined, path: readonly string[]): ConfigValue | undefined {
  let value: ConfigValue | undefined = config ?? undefined;
  for (const key of path) {
    if (!isMapping(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

export function isMapping(value: ConfigValue | undefined): value is Config {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same content always gives the same text, whatever the order of keys was. */
export function canonicalJson(value: ConfigValue): string {
  return JSON.stringify(value, (_key, part: ConfigValue) =>
    isMapping(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}
