import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Model, search } from './search.ts';
import { StateTable } from './state-table.ts';

/** Numbers from 0 on that grow by one or two. */
function counting(rest: Partial<Model> & { readonly most: number }): Model {
  const { most } = rest;
  return {
    width: 1,
    initial: into => into.fill(0),
    successors: ([at = 0], found) => {
      for (const by of [1, 2]) if (at + by <= most) found(Int32Array.of(at + by));
    },
    wrongWith: () => undefined,
    onward: ([at = 0], into) => {
      into[0] = at + 1;
      return at < most;
    },
    isEnd: ([at = 0]) => at === most,
    ...rest,
  };
}

const LIMITS = { mostStates: 1_000_000 };

test('every state is visited once, also more than one piece of memory holds', () => {
  const { verdict, states, transitions, depth } = search(counting({ most: 150_000 }), LIMITS);
  assert.deepEqual(
    { kind: verdict.kind, states, transitions, depth },
    { kind: 'proved', states: 150_001, transitions: 299_999, depth: 75_000 },
  );
});

test('the way to what is wrong is the shortest one', () => {
  const { verdict } = search(counting({ most: 100, wrongWith: ([at]) => (at === 9 ? 'nine' : undefined) }), LIMITS);
  assert.ok(verdict.kind === 'refuted');
  assert.equal(verdict.wrong, 'nine');
  assert.equal(verdict.path.length, 6);
  assert.deepEqual([verdict.path[0]?.[0], verdict.path.at(-1)?.[0]], [0, 9]);
});

test('a state from which it goes round for ever is found, and one from which nothing leads on', () => {
  const round = counting({ most: 10, onward: ([at = 0], into) => ((into[0] = at === 7 ? 5 : at + 1), true) });
  const dead = counting({ most: 10, onward: ([at = 0], into) => ((into[0] = at + 1), at !== 7) });
  for (const model of [round, dead]) assert.equal(search(model, LIMITS).verdict.kind, 'endless');
});

test('what takes more than it may is not finished', () => {
  assert.equal(search(counting({ most: 100 }), { mostStates: 50 }).verdict.kind, 'unfinished');
});

test('states that differ in any word are told apart', () => {
  const table = new StateTable(3, 1_000_000);
  for (let a = 0; a < 60; a++)
    for (let b = 0; b < 60; b++) for (let c = 0; c < 60; c++) table.add(Int32Array.of(a << 20, b << 10, c));
  assert.equal(table.size, 60 ** 3);
  assert.equal(table.add(Int32Array.of(1 << 20, 2 << 10, 3)), -1);
  assert.equal(table.indexOf(Int32Array.of(1, 0, 0)), -1);
  const index = table.indexOf(Int32Array.of(7 << 20, 8 << 10, 9));
  assert.deepEqual([...table.read(index, new Int32Array(3))], [7 << 20, 8 << 10, 9]);
});
