import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

// The vectors are loosely typed data; each adapter says what it expects of its group.
// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any;

export interface Case {
  readonly id: string;
  readonly group: string;
  readonly given: Json;
  readonly expected: Json;
  readonly advice?: string;
  readonly expectedFixed?: Json;
}

/** Runs one case of its group. */
export type Adapter = (given: Json, expected: Json, vector: Case) => void | Promise<void>;

const document = JSON.parse(readFileSync(new URL('../mcd-vectors.json', import.meta.url), 'utf8')) as {
  schema: { groups: Record<string, unknown> };
  fixtures: Json;
  cases: Case[];
};

/** Every group the file speaks of. */
export const GROUPS: readonly string[] = [
  ...new Set([...Object.keys(document.schema.groups), ...document.cases.map(({ group }) => group)]),
];

/** The cases of a group with their shared inputs in place. A case that 4.16 gets wrong is compared with what is right. */
export function vectorsOf(group: string): Case[] {
  return document.cases
    .filter(vector => vector.group === group)
    .map(vector => {
      const isMended = vector.advice === 'avoid' && vector.expectedFixed !== undefined;
      const expected = resolved(isMended ? vector.expectedFixed : vector.expected);
      return { ...vector, given: resolved(vector.given), expected };
    });
}

/** With the shared inputs in the places that name them. */
function resolved(value: Json): Json {
  if (Array.isArray(value)) return value.map(resolved);
  if (typeof value !== 'object' || value === null) return value;
  if (typeof value.$fixture === 'string') {
    return resolved(value.$fixture.split('.').reduce((at: Json, name: string) => at[name], document.fixtures));
  }
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, resolved(member)]));
}

/** Fails on members that the adapter does not read: a new way to say something must not pass unseen. */
export function onlyMembers(value: Json, names: readonly string[]): void {
  assert.deepEqual(Object.keys(value).filter(name => !names.includes(name) && name !== 'note'), []);
}
