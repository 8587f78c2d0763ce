import { createHash } from 'node:crypto';
import { goYaml } from './go-yaml.ts';
import type { RenderedSpec } from './merge.ts';

/** Fixed, so that no other text is likely to give the same name (spec 50, section 16). */
const SALT = Buffer.from(
  '107ccee48b38afaf4fe586769d9ad36e195d2ffdac6a2507ae0da0b96e115734db830cceda8d7487bcb5c097e93e7ea54053b3770fa8d0c5926b3ae385bcee1a211aebca20ad1fea2990944f06ce1716',
  'hex',
);

/** `rendered-<pool>-<md5>` of a text that stands for the merged spec (spec 50, RN-14). */
export function renderedName(pool: string, specText: string): string {
  return `rendered-${pool}-${createHash('md5').update(SALT).update(specText).digest('hex')}`;
}

/** The one text of a merged spec: what 4.16 hashes, so that a pool that changes hands keeps its config. */
export function canonicalSpec(spec: RenderedSpec): string {
  return goYaml(spec);
}

/** The name that we gave to the same content before names were 4.16's: the hash of JSON with sorted members. */
export function formerName(pool: string, spec: RenderedSpec): string {
  return renderedName(pool, JSON.stringify(sorted(spec)));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = value as Record<string, unknown>;
  return Object.fromEntries(
    Object.keys(members)
      .sort()
      .filter(name => members[name] !== undefined)
      .map(name => [name, sorted(members[name])]),
  );
}
