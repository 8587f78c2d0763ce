import { pruned } from './prune.ts';
import type { Schema } from './schema.ts';

/** Past this many, nobody reads on. The real decoder stops there too. */
export const MAX_STRICT_ERRORS = 100;

/** Paths of the fields the schema does not know: `spec.containers[0].foo`. */
export function unknownFields(schema: Schema, value: unknown): string[] {
  const paths: string[] = [];
  pruned(schema, value, '', path => {
    if (paths.length < MAX_STRICT_ERRORS) paths.push(path);
  });
  return paths;
}

/** What a strict decoder complains of. Joined with commas and prefixed with `strict decoding error: ` they make the 400. */
export function strictErrors(unknown: readonly string[], duplicates: readonly string[]): string[] {
  const lines = [
    ...duplicates.map(path => `duplicate field ${JSON.stringify(path)}`),
    ...unknown.map(path => `unknown field ${JSON.stringify(path)}`),
  ];
  return lines.slice(0, MAX_STRICT_ERRORS);
}
