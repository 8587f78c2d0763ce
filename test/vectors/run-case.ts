import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

/** A case that has not ended by then hangs; it fails alone. Cases take milliseconds. */
const LONGEST_MS = 5 * 60_000;
/** What is said to people. */
const REMARKS: readonly string[] = ['note', 'title'];

// The vectors are loosely typed data; each adapter says what it expects of its group.
// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

/** One case under a name of its own. */
export interface NamedCase {
  readonly name: string;
  readonly given: Json;
  readonly expected: Json;
  readonly skip?: string | undefined;
  run(given: Json, expected: Json, t: TestContext): unknown;
}

/**
 * Runs the cases of a group. A new way to say something must not pass unread: whatever a case expects has to be looked at while it runs,
 * down to the last member, and a member of what is given in some case of the group, if it does not matter to all. What is inside of what
 * is given is for the product to read.
 */
export function runGroup(group: string, cases: readonly NamedCase[]): void {
  describe(group, () => {
    const isRead = new Set<string>();
    const isGiven = new Set<string>();
    for (const { name, given, expected, skip, run } of cases) {
      test(name, skip === undefined ? {} : { skip }, async t => {
        const [givenReader, expectedReader] = [new Reader(given, 1), new Reader(expected, Number.POSITIVE_INFINITY)];
        for (const member of Object.keys(given)) isGiven.add(`/${member}`);
        await within(async () => run(givenReader.value, expectedReader.value, t));
        for (const member of givenReader.read) isRead.add(member);
        assert.deepEqual(expectedReader.unread(), [], 'members of "expected" that the adapter does not read');
      });
    }
    test('every member of what is given is read', () => {
      const remarks = REMARKS.map(name => `/${name}`);
      assert.deepEqual(
        [...isGiven].filter(member => !isRead.has(member) && !remarks.includes(member)),
        [],
        'members of "given" that the adapter reads in no case',
      );
    });
  });
}

/** A word that changes nothing for us is still one of these; any other fails the case. */
export function knownWord(word: unknown, ...words: readonly unknown[]): void {
  assert.ok(words.includes(word), `unknown word ${JSON.stringify(word)}`);
}

/** What a case says of 4.16 where ours is the mended result: read, and made of these members, but not compared. */
export function notCompared(expected: Json, ...members: readonly string[]): void {
  const read = JSON.parse(JSON.stringify(expected)) as object;
  assert.deepEqual(
    Object.keys(read).filter(name => !members.includes(name) && !REMARKS.includes(name)),
    [],
    'unknown members',
  );
}

/** What is expected of us where 4.16 is hardened against: its crash, or what it mangles, is not. */
export function hardened(expected: Json, mended: Json): Json {
  if (mended === undefined) return expected;
  const { crash: _crash, messageMangled: _mangled, ...said } = expected;
  return { ...said, ...mended };
}

async function within(work: () => Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const hanging = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('the case never ends')), LONGEST_MS);
  });
  try {
    await Promise.race([work(), hanging]);
  } finally {
    clearTimeout(timer);
  }
}

/** A value that remembers which of its members were looked at, down to a depth. */
class Reader {
  readonly value: Json;
  readonly read = new Set<string>();
  readonly #part: Json;
  readonly #depth: number;

  constructor(part: Json, depth: number) {
    this.#part = part;
    this.#depth = depth;
    this.value = this.#watched(part, '', depth);
  }

  /** Members nobody looked at; of one that nobody looked at, not what is inside. */
  unread(value: Json = this.#part, path = '', depth = this.#depth): string[] {
    if (typeof value !== 'object' || value === null || depth === 0) return [];
    return Object.entries(value).flatMap(([name, member]) => {
      const at = `${path}/${name}`;
      if (REMARKS.includes(name)) return [];
      return this.read.has(at) ? this.unread(member, at, depth - 1) : [at];
    });
  }

  #watched(value: Json, path: string, depth: number): Json {
    if (typeof value !== 'object' || value === null || depth === 0) return value;
    return new Proxy(value, {
      get: (target, name, receiver) => {
        const member: Json = Reflect.get(target, name, receiver);
        if (typeof name !== 'string' || !Object.hasOwn(target, name)) return member;
        this.read.add(`${path}/${name}`);
        return this.#watched(member, `${path}/${name}`, depth - 1);
      },
    });
  }
}
