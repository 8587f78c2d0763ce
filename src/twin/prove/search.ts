import { StateTable } from './state-table.ts';

/** What is searched: states of a fixed number of 32-bit words, and what can happen in them. */
export interface Model {
  /** Words of a state. */
  readonly width: number;
  /** The state that everything begins with. */
  initial(into: Int32Array): void;
  /** Everything that can happen next, in an order that never changes; states that differ in names alone are given as one. */
  successors(state: Int32Array, found: (next: Int32Array) => void): void;
  /** What must never be; undefined: all is well. */
  wrongWith(state: Int32Array): string | undefined;
  /** What happens next when nothing fails any more and everybody does what is theirs; false: nothing is left to do. */
  onward(state: Int32Array, into: Int32Array): boolean;
  /** It has come to its end. */
  isEnd(state: Int32Array): boolean;
}

export interface SearchLimits {
  readonly mostStates: number;
  /** Told now and then. */
  readonly onProgress?: ((states: number, waiting: number) => void) | undefined;
}

export type Verdict =
  /** Every state was seen, and none is wrong. */
  | { readonly kind: 'proved' }
  /** The shortest way to a state that is wrong. */
  | { readonly kind: 'refuted'; readonly wrong: string; readonly path: readonly Int32Array[] }
  /** From this state on it would never end although nothing fails any more. */
  | { readonly kind: 'endless'; readonly path: readonly Int32Array[] }
  /** There are more states than were allowed. */
  | { readonly kind: 'unfinished' };

export interface SearchResult {
  readonly verdict: Verdict;
  readonly states: number;
  /** How many things could happen, over all states. */
  readonly transitions: number;
  /** Things that happen one after the other on the shortest way to the state that is farthest away. */
  readonly depth: number;
}

const PROGRESS_EVERY = 1 << 18;

/** Visits every state that can be reached, nearest first, and then finds out whether it ends from each of them. */
export function search(model: Model, { mostStates, onProgress }: SearchLimits): SearchResult {
  const table = new StateTable(model.width, mostStates);
  const state = new Int32Array(model.width);
  const parents = table.column();
  let at = 0;
  let transitions = 0;
  let depth = 0;
  let depthEndsAt = 1;
  const result = (verdict: Verdict): SearchResult => ({ verdict, states: table.size, transitions, depth });
  const pathTo = (index: number): Int32Array[] => {
    const path: Int32Array[] = [];
    for (let step = index; step >= 0; step = parents.get(step))
      path.push(table.read(step, new Int32Array(model.width)));
    return path.reverse();
  };
  const found = (next: Int32Array) => {
    transitions++;
    const index = table.add(next);
    if (index >= 0) parents.set(index, at);
  };

  model.initial(state);
  parents.set(table.add(state), -1);
  for (; at < table.size; at++) {
    if (at === depthEndsAt) {
      depth++;
      depthEndsAt = table.size;
    }
    table.read(at, state);
    const wrong = model.wrongWith(state);
    if (wrong !== undefined) return result({ kind: 'refuted', wrong, path: pathTo(at) });
    if (table.isFull) return result({ kind: 'unfinished' });
    model.successors(state, found);
    if (at % PROGRESS_EVERY === 0 && at > 0) onProgress?.(table.size, table.size - at);
  }
  const endless = firstEndless(model, table);
  return result(endless === undefined ? { kind: 'proved' } : { kind: 'endless', path: pathTo(endless) });
}

/** Ways from here on: not looked at yet, looked at just now, or known to end. */
const ENDS = -1;
const NEW = 0;

/** Each state has one way onward; it ends, or leads to a state whose way is known, or goes round for ever. */
function firstEndless(model: Model, table: StateTable): number | undefined {
  const marks = table.column();
  const state = new Int32Array(model.width);
  const next = new Int32Array(model.width);
  for (let start = 0; start < table.size; start++) {
    const walk = start + 1;
    let at = start;
    while (marks.get(at) === NEW) {
      marks.set(at, walk);
      table.read(at, state);
      if (model.isEnd(state)) marks.set(at, ENDS);
      else if (!model.onward(state, next)) return start;
      else {
        at = table.indexOf(next);
        if (at < 0) throw new RangeError('a way onward that the search has not seen');
      }
    }
    if (marks.get(at) === walk) return start;
    for (let back = start; marks.get(back) === walk; ) {
      marks.set(back, ENDS);
      table.read(back, state);
      model.onward(state, next);
      back = table.indexOf(next);
    }
  }
  return undefined;
}
