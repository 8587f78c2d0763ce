import { parse } from 'smol-toml';
import { contentsOf } from '../../../src/machine-config-api/ignition/contents.ts';
import type { IgnitionFile } from '../../../src/machine-config-api/ignition/types.ts';

/** The text of each file, in their order. */
export function textsOf(files: readonly IgnitionFile[]): Record<string, string> {
  return Object.fromEntries(files.map(({ path, contents }) => [path, contentsOf(contents).toString()]));
}

/** TOML as plain values; whole numbers as text, because they can be greater than a number is exact. */
export function readToml(text: string): Record<string, unknown> {
  const plain = JSON.stringify(parse(text, { integersAsBigInt: true }), (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return JSON.parse(plain) as Record<string, unknown>;
}
