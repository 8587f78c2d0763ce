import assert from 'node:assert/strict';
import { type Profile, profile416, profileLater } from '../../../src/etcd/profile.ts';
import type { MemberHealth } from '../../../src/etcd/quorum/member.ts';

// The vectors are loosely typed data; each adapter says what it expects of its area.
// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any;
export type Version = '4.16' | 'main';

export interface Case {
  readonly id: string;
  readonly area: string;
  readonly version: Version[];
  readonly rule?: string;
  readonly note?: string;
  readonly given: Json;
  readonly expected: Json;
}

export interface Adapter {
  /** The fields it understands; a case with any other fails instead of passing unread. */
  readonly given: readonly string[];
  readonly expected: readonly string[];
  run(vector: Case, version: Version): void | Promise<void>;
}

export function requireKnownWords({ given, expected }: Case, adapter: Adapter): void {
  const unknown = (found: Json, known: readonly string[]) => Object.keys(found).filter(word => !known.includes(word));
  assert.deepEqual(unknown(given, adapter.given), [], 'words in "given" that the adapter does not know');
  assert.deepEqual(unknown(expected, adapter.expected), [], 'words in "expected" that the adapter does not know');
}

export function profileOf(version: Version): Profile {
  return version === '4.16' ? profile416() : profileLater();
}

/** Members as the vectors write them; ids are numbers there. */
export function healthOf(members: Json[]): MemberHealth[] {
  return members.map(({ id = 0, name, peerURLs, clientURLs, isLearner = false, healthy }, index) => ({
    member: { id: String(id ?? index), name, peerURLs, clientURLs: clientURLs ?? [], isLearner },
    healthy,
  }));
}

/** An error text that must be there exactly, begin like this, or be absent. */
export function checkError(error: Error | undefined, expected: Json): void {
  const { errorPrefix, syncErrorPrefix, isError } = expected;
  const exact = expected.error === undefined ? expected.syncError : expected.error;
  if (exact !== undefined) assert.equal(error?.message ?? null, exact);
  for (const prefix of [errorPrefix, syncErrorPrefix]) {
    if (prefix === null) assert.equal(error?.message, undefined);
    else if (prefix !== undefined) assert.ok(error?.message.startsWith(prefix), `expected "${prefix}...", found "${error?.message}"`);
  }
  if (isError !== undefined) assert.equal(error !== undefined, isError, error?.message);
}

export async function attempt(work: () => unknown): Promise<Error | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    assert.ok(error instanceof Error);
    return error;
  }
}
