import assert from 'node:assert/strict';

// The vectors are loosely typed data; each adapter says what it expects of its group.
// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any;

export interface Case {
  readonly id: string;
  readonly group: string;
  readonly given: Json;
  readonly expected: Json;
  readonly note?: string;
}

/** Runs one case of its group. */
export type Adapter = (given: Json, expected: Json, vector: Case) => void | Promise<void>;

export const NOW = new Date('2026-01-01T00:00:00Z');

/** `error: true` or a text means that the work must fail; our words may differ. Else its result is handed on. */
export async function expectError<T>(expected: Json, work: () => T | Promise<T>, check: (result: T) => void | Promise<void>): Promise<void> {
  if (expected.error === undefined || expected.error === null) {
    await check(await work());
    return;
  }
  await assert.rejects(async () => work());
}

export function base64(text: string | undefined | null): string {
  return Buffer.from(text ?? '').toString('base64');
}

export function utf8(base64Text: string | undefined | null): string {
  return Buffer.from(base64Text ?? '', 'base64').toString('utf8');
}

/** A ConfigMap of the vectors, which leave out what goes without saying. */
export function configMap(given: Json, namespace: string, name: string) {
  return given === null || given === undefined ? undefined : { metadata: { namespace, name }, ...given };
}

/** Without members that are not set. */
export function defined<T extends object>(fields: T): T {
  return JSON.parse(JSON.stringify(fields)) as T;
}
