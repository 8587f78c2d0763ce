import { escapedDataUrl } from '../../machine-config-api/ignition/data-url.ts';
import { mergeIgnition } from '../../machine-config-api/ignition/merge.ts';
import { emptyIgnition, type IgnitionConfig, type IgnitionUnit } from '../../machine-config-api/ignition/types.ts';
import type { TemplateValues } from './values.ts';

/** A file that a template makes. */
export interface FileEntry {
  readonly path: string;
  readonly mode: number;
  readonly contents: string;
}

/** What becomes of a template with the values of a cluster; undefined where there is nothing to say for it. */
export type Template<T> = (values: TemplateValues) => T | undefined;

/** In a directory instead of a template: the one of that name in earlier directories does not count. */
export const REMOVED = Symbol('removed');

/** Templates by file name. */
export type TemplateDirectory<T> = Readonly<Record<string, Template<T> | typeof REMOVED>>;

/**
 * The entries of directories laid over each other, by file name ascending: a later one replaces an equal name, `REMOVED` takes
 * it away, and one that says nothing leaves it as it is (spec 50, TM-4, TM-5).
 */
export function overlay<T>(
  directories: readonly TemplateDirectory<T>[],
  values: TemplateValues,
): [name: string, entry: T][] {
  const entries = new Map<string, T>();
  for (const directory of directories) {
    for (const [name, template] of Object.entries(directory)) {
      if (template === REMOVED) {
        entries.delete(name);
        continue;
      }
      const entry = template(values);
      if (entry !== undefined) entries.set(name, entry);
    }
  }
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Entries as one Ignition document, one merged after the other (spec 50, TM-5). */
export function ignitionOfEntries(files: readonly FileEntry[], units: readonly IgnitionUnit[]): IgnitionConfig {
  const documents = [
    ...files.map(({ path, mode, contents }) => ({
      storage: { files: [{ path, mode, overwrite: true, contents: { source: escapedDataUrl(contents) } }] },
    })),
    ...units.map(unit => ({ systemd: { units: [unit] } })),
  ];
  return documents.reduce<IgnitionConfig>(
    (merged, document) => mergeIgnition(merged, { ...emptyIgnition(), ...document }),
    emptyIgnition(),
  );
}
