/** A CA of the family by its number: 0 was there at the beginning. */
export type Generation = 0 | 1 | 2;
/** No CA. */
export const NONE = 3;
export type MaybeGeneration = Generation | typeof NONE;
/** A set of CAs: one bit a generation. */
export type CaSet = number;
export const GENERATIONS = 3;

/** Everything that differs between two moments. */
export interface World extends Objects, Budget {
  /** The second one is there once leadership has changed hands; the first one then ends its pass and begins no other. */
  readonly operators: readonly [Operator, Operator];
  readonly nodes: readonly Node[];
}

/** What stands in the API. */
export interface Objects {
  signer: Generation;
  /** Somebody asked for another signer. */
  isDue: boolean;
  /** Somebody asked again after the hand-over was taken back. */
  isDueAgain: boolean;
  isTurnedRound: boolean;
  /** Of whom everybody was seen to show leaves. */
  noted: MaybeGeneration;
  next: MaybeGeneration;
  isTakenBack: boolean;
  /** The signer that next was made beside. */
  beside: MaybeGeneration;
  previous: MaybeGeneration;
  bundle: CaSet;
  /** Who has signed the leaf. */
  leaf: MaybeGeneration;
  /** How many CAs were made so far. */
  made: number;
}

/** What may still go wrong, and what people may still do. */
export interface Budget {
  crashes: number;
  losses: number;
  happenings: number;
  /** The first CA ends so soon that nobody is waited for any longer (HO-7). */
  isLate: boolean;
  isLedByOther: boolean;
}

/** Where a pass of an operator is. */
export const STEP = { idle: 0, asked: 1, write: 2, promote: 3, bundle: 4, clear: 5, leaf: 6 } as const;
export type Step = (typeof STEP)[keyof typeof STEP];

/** The writes that a pass can be about, as numbers. */
export const WRITES = ['nothing', 'replace', 'begin', 'begin-again', 'promote', 'discard', 'clear', 'retire'] as const;

/** One operator in the middle of a pass: what it was told, and what it has decided. */
export interface Operator {
  step: Step;
  /** The CA about which verifiers were asked because it is to sign next, and whether somebody had no receipt for it. */
  askedNext: MaybeGeneration;
  isNextMissing: boolean;
  askedCurrent: MaybeGeneration;
  isCurrentMissing: boolean;
  /** The signer for which presenters were looked at. */
  lookedFor: MaybeGeneration;
  isOlderShown: boolean;
  /** An index of `WRITES`. */
  write: number;
  current: MaybeGeneration;
  next: MaybeGeneration;
  isFollowed: boolean;
  /** Somebody else wrote these since they were read. */
  isSignerStale: boolean;
  isPreviousStale: boolean;
  isNextStale: boolean;
  isLeafStale: boolean;
}

/** One node: the files on it, two processes that verify, and one that shows the leaf. */
export interface Node {
  isThere: boolean;
  isAway: boolean;
  isWaived: boolean;
  /** It may refuse what was signed without it: nobody waited for it, or it came later (HO-7, HO-8). */
  isBehind: boolean;
  /** What it shows may be refused: its CA was taken away while nobody waited for the node. */
  isLeft: boolean;
  /** By whose last look the node may not refuse what is signed: one bit an operator. */
  owed: number;
  /** The bundle on its way to the node; 0: none is. */
  onItsWay: CaSet;
  /** The bundle on its disk. */
  file: CaSet;
  /** What the process has loaded that reads its file again by itself. */
  reloading: CaSet;
  /** What the process has loaded that reads its file when it starts. */
  restarting: CaSet;
  /** What the agent of the node said last about that one. */
  reported: CaSet;
  leafFile: MaybeGeneration;
  /** What its presenter shows. */
  shown: MaybeGeneration;
}

/** Words before those of the nodes. */
const SHARED_WORDS = 4;

export function widthOf(nodes: number): number {
  return SHARED_WORDS + nodes;
}

/** A world at rest: the first signer, known to everybody, with a leaf that everybody shows. */
export function worldAtRest(nodes: number, budget: Pick<Budget, 'crashes' | 'losses' | 'happenings'>): World {
  const node = (): Node => ({
    isThere: true,
    isAway: false,
    isWaived: false,
    isBehind: false,
    isLeft: false,
    owed: 0,
    onItsWay: 0,
    file: 1,
    reloading: 1,
    restarting: 1,
    reported: 1,
    leafFile: 0,
    shown: 0,
  });
  return {
    signer: 0,
    isDue: false,
    isDueAgain: false,
    isTurnedRound: false,
    noted: 0,
    next: NONE,
    isTakenBack: false,
    beside: NONE,
    previous: NONE,
    bundle: 1,
    leaf: 0,
    made: 1,
    ...budget,
    isLate: false,
    isLedByOther: false,
    operators: [idleOperator(), idleOperator()],
    nodes: Array.from({ length: nodes }, node),
  };
}

export function idleOperator(): Operator {
  return {
    step: STEP.idle,
    askedNext: NONE,
    isNextMissing: false,
    askedCurrent: NONE,
    isCurrentMissing: false,
    lookedFor: NONE,
    isOlderShown: false,
    write: 0,
    current: NONE,
    next: NONE,
    isFollowed: false,
    isSignerStale: false,
    isPreviousStale: false,
    isNextStale: false,
    isLeafStale: false,
  };
}

/**
 * The world in words; nodes in the order of their words, because names tell nothing. Gives for each place the node that stands there when
 * somebody wants to know.
 */
export function pack(world: World, into: Int32Array, order?: number[]): Int32Array {
  into[0] = objectsWord(world);
  into[1] = budgetWord(world);
  into[2] = operatorWord(world.operators[0]);
  into[3] = operatorWord(world.operators[1]);
  const { nodes } = world;
  if (order !== undefined) for (let at = 0; at < nodes.length; at++) order[at] = at;
  for (let index = 0; index < nodes.length; index++) {
    const word = nodeWord(nodes[index] as Node);
    let at = SHARED_WORDS + index;
    for (; at > SHARED_WORDS && (into[at - 1] as number) > word; at--) {
      into[at] = into[at - 1] as number;
      if (order !== undefined) order[at - SHARED_WORDS] = order[at - SHARED_WORDS - 1] as number;
    }
    into[at] = word;
    if (order !== undefined) order[at - SHARED_WORDS] = index;
  }
  return into;
}

export function unpack(words: Int32Array, world: World): World {
  unpackObjects(words[0] as number, world);
  unpackBudget(words[1] as number, world);
  unpackOperator(words[2] as number, world.operators[0]);
  unpackOperator(words[3] as number, world.operators[1]);
  for (let index = 0; index < world.nodes.length; index++)
    unpackNode(words[SHARED_WORDS + index] as number, world.nodes[index] as Node);
  return world;
}

function objectsWord(o: Objects): number {
  return (
    o.signer |
    (+o.isDue << 2) |
    (+o.isDueAgain << 3) |
    (+o.isTurnedRound << 4) |
    (o.noted << 5) |
    (o.next << 7) |
    (+o.isTakenBack << 9) |
    (o.beside << 10) |
    (o.previous << 12) |
    (o.bundle << 14) |
    (o.leaf << 17) |
    (o.made << 19)
  );
}

function unpackObjects(word: number, o: Objects): void {
  o.signer = (word & 3) as Generation;
  o.isDue = (word & 4) !== 0;
  o.isDueAgain = (word & 8) !== 0;
  o.isTurnedRound = (word & 16) !== 0;
  o.noted = generationAt(word, 5);
  o.next = generationAt(word, 7);
  o.isTakenBack = (word & 512) !== 0;
  o.beside = generationAt(word, 10);
  o.previous = generationAt(word, 12);
  o.bundle = (word >> 14) & 7;
  o.leaf = generationAt(word, 17);
  o.made = (word >> 19) & 3;
}

function budgetWord(b: Budget): number {
  return b.crashes | (b.losses << 4) | (b.happenings << 8) | (+b.isLate << 12) | (+b.isLedByOther << 13);
}

function unpackBudget(word: number, b: Budget): void {
  b.crashes = word & 15;
  b.losses = (word >> 4) & 15;
  b.happenings = (word >> 8) & 15;
  b.isLate = (word & 4096) !== 0;
  b.isLedByOther = (word & 8192) !== 0;
}

function operatorWord(o: Operator): number {
  return (
    o.step |
    (o.askedNext << 3) |
    (+o.isNextMissing << 5) |
    (o.askedCurrent << 6) |
    (+o.isCurrentMissing << 8) |
    (o.lookedFor << 9) |
    (+o.isOlderShown << 11) |
    (o.write << 12) |
    (o.current << 15) |
    (o.next << 17) |
    (+o.isFollowed << 19) |
    (+o.isSignerStale << 20) |
    (+o.isNextStale << 21) |
    (+o.isLeafStale << 22) |
    (+o.isPreviousStale << 23)
  );
}

function unpackOperator(word: number, o: Operator): void {
  o.step = (word & 7) as Step;
  o.askedNext = generationAt(word, 3);
  o.isNextMissing = ((word >> 5) & 1) !== 0;
  o.askedCurrent = generationAt(word, 6);
  o.isCurrentMissing = ((word >> 8) & 1) !== 0;
  o.lookedFor = generationAt(word, 9);
  o.isOlderShown = ((word >> 11) & 1) !== 0;
  o.write = (word >> 12) & 7;
  o.current = generationAt(word, 15);
  o.next = generationAt(word, 17);
  o.isFollowed = ((word >> 19) & 1) !== 0;
  o.isSignerStale = ((word >> 20) & 1) !== 0;
  o.isNextStale = ((word >> 21) & 1) !== 0;
  o.isLeafStale = ((word >> 22) & 1) !== 0;
  o.isPreviousStale = ((word >> 23) & 1) !== 0;
}

function nodeWord(n: Node): number {
  return (
    +n.isThere |
    (+n.isAway << 1) |
    (+n.isWaived << 2) |
    (+n.isBehind << 3) |
    (+n.isLeft << 4) |
    (n.owed << 5) |
    (n.onItsWay << 7) |
    (n.file << 10) |
    (n.reloading << 13) |
    (n.restarting << 16) |
    (n.reported << 19) |
    (n.leafFile << 22) |
    (n.shown << 24)
  );
}

function unpackNode(word: number, n: Node): void {
  n.isThere = (word & 1) !== 0;
  n.isAway = (word & 2) !== 0;
  n.isWaived = (word & 4) !== 0;
  n.isBehind = (word & 8) !== 0;
  n.isLeft = (word & 16) !== 0;
  n.owed = (word >> 5) & 3;
  n.onItsWay = (word >> 7) & 7;
  n.file = (word >> 10) & 7;
  n.reloading = (word >> 13) & 7;
  n.restarting = (word >> 16) & 7;
  n.reported = (word >> 19) & 7;
  n.leafFile = generationAt(word, 22);
  n.shown = generationAt(word, 24);
}

function generationAt(word: number, bit: number): MaybeGeneration {
  return ((word >> bit) & 3) as MaybeGeneration;
}

export function has(set: CaSet, generation: MaybeGeneration): boolean {
  return generation !== NONE && (set & (1 << generation)) !== 0;
}

export function setOf(generation: MaybeGeneration): CaSet {
  return generation === NONE ? 0 : 1 << generation;
}
