/** States in a piece: memory grows by so much at a time, and nothing is ever copied. */
const PIECE_BITS = 16;
const PIECE = 1 << PIECE_BITS;
const FIRST_SLOTS = 1 << 16;
/** Fuller than this a table is slow. */
const MOST_FILLED = 0.6;

/** All states that were seen, word for word, with an index for each: no two states are ever taken for one. */
export class StateTable {
  readonly #width: number;
  readonly #mostStates: number;
  readonly #pieces: Int32Array[] = [];
  /** Index + 1 of a state; 0: free. */
  #slots = new Int32Array(FIRST_SLOTS);
  size = 0;

  constructor(width: number, mostStates: number) {
    this.#width = width;
    this.#mostStates = mostStates;
  }

  get isFull(): boolean {
    return this.size >= this.#mostStates;
  }

  /** The index of a state that is new; -1: it was seen before. */
  add(state: Int32Array): number {
    const slot = this.#slotOf(state);
    if (this.#slots[slot] !== 0) return -1;
    const index = this.size++;
    this.#slots[slot] = index + 1;
    const at = index & (PIECE - 1);
    if (at === 0) this.#pieces.push(new Int32Array(PIECE * this.#width));
    (this.#pieces[index >> PIECE_BITS] as Int32Array).set(state, at * this.#width);
    if (this.size > this.#slots.length * MOST_FILLED) this.#grow();
    return index;
  }

  /** -1: it was never seen. */
  indexOf(state: Int32Array): number {
    return (this.#slots[this.#slotOf(state)] as number) - 1;
  }

  read(index: number, into: Int32Array): Int32Array {
    const piece = this.#pieces[index >> PIECE_BITS] as Int32Array;
    const from = (index & (PIECE - 1)) * this.#width;
    for (let word = 0; word < this.#width; word++) into[word] = piece[from + word] as number;
    return into;
  }

  /** A number beside each state, 0 at first. */
  column(): Column {
    return new Column();
  }

  /** Where a state is, or would be. */
  #slotOf(state: Int32Array): number {
    const mask = this.#slots.length - 1;
    for (let slot = hashOf(state) & mask; ; slot = (slot + 1) & mask) {
      const index = (this.#slots[slot] as number) - 1;
      if (index < 0 || this.#isAt(index, state)) return slot;
    }
  }

  #isAt(index: number, state: Int32Array): boolean {
    const piece = this.#pieces[index >> PIECE_BITS] as Int32Array;
    const from = (index & (PIECE - 1)) * this.#width;
    for (let word = 0; word < this.#width; word++) if (piece[from + word] !== state[word]) return false;
    return true;
  }

  #grow(): void {
    this.#slots = new Int32Array(this.#slots.length * 2);
    const mask = this.#slots.length - 1;
    const state = new Int32Array(this.#width);
    for (let index = 0; index < this.size; index++) {
      let slot = hashOf(this.read(index, state)) & mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
      this.#slots[slot] = index + 1;
    }
  }
}

/** One number for each state. */
export class Column {
  readonly #pieces: Int32Array[] = [];

  get(index: number): number {
    return this.#pieces[index >> PIECE_BITS]?.[index & (PIECE - 1)] ?? 0;
  }

  set(index: number, value: number): void {
    const piece = index >> PIECE_BITS;
    while (this.#pieces.length <= piece) this.#pieces.push(new Int32Array(PIECE));
    (this.#pieces[piece] as Int32Array)[index & (PIECE - 1)] = value;
  }
}

function hashOf(state: Int32Array): number {
  let hash = 0x811c9dc5 | 0;
  for (let word = 0; word < state.length; word++) {
    hash = Math.imul(hash ^ (state[word] as number), 0x85ebca6b);
    hash ^= hash >>> 15;
  }
  hash = Math.imul(hash, 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
