import { askedAbout, isLookWanted } from '../../hand-over/decide.ts';
import { generationOf, isRetiring, NOTHING_TOLD, questionOf, type Told } from './question.ts';
import type { Rules } from './rules.ts';
import {
  type CaSet,
  GENERATIONS,
  type Generation,
  has,
  type MaybeGeneration,
  NONE,
  type Node,
  type Operator,
  STEP,
  setOf,
  type World,
  WRITES,
} from './world.ts';

/**
 * The pass of `syncByReceipts` (../../hand-over/sync.ts) in the steps between which something else can happen: everybody is asked; then
 * objects are read and it is decided; then each write by itself.
 */
export class OperatorSteps {
  readonly #rules: Rules;
  readonly #asked = new Map<number, Asked>();
  readonly #looks = new Map<number, boolean>();
  readonly #decisions = new Map<number, Decided>();

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  /** Does the next step of a pass, or begins one; says what it did. Undefined: it cannot go on. */
  step(world: World, index: 0 | 1): string | undefined {
    const operator = world.operators[index];
    switch (operator.step) {
      case STEP.idle:
        return this.#ask(world, index);
      case STEP.asked:
        return this.#decide(world, index);
      case STEP.write:
        return this.#write(world, index);
      case STEP.promote:
        return this.#promote(world, index);
      case STEP.bundle:
        return this.#bundle(world, index);
      case STEP.clear:
        return this.#clear(world, index);
      case STEP.leaf:
        return this.#leaf(world, index);
    }
  }

  #ask(world: World, index: 0 | 1): string {
    const operator = world.operators[index];
    const { next, current } = this.#askedAbout(world);
    operator.askedNext = next;
    operator.isNextMissing = next !== NONE && isMissing(world, next);
    operator.askedCurrent = current;
    operator.isCurrentMissing = current !== NONE && isMissing(world, current);
    if (this.#isLookWanted(world, operator)) {
      operator.lookedFor = world.signer;
      operator.isOlderShown = isOlderShown(world);
    }
    const asked = next === NONE ? current : next;
    for (const node of world.nodes) {
      const isUnready = asked !== NONE && !hasReceipt(node, asked);
      const isUnseen = operator.lookedFor !== NONE && !isSeenToShowCurrent(world, node);
      node.owed = withBit(node.owed, index, node.isThere && !(node.isWaived && (isUnready || isUnseen)));
    }
    operator.step = STEP.asked;
    if (asked === NONE && operator.lookedFor === NONE) return 'has nobody to ask';
    if (operator.isNextMissing || operator.isCurrentMissing)
      return 'hears that somebody has not loaded what is to sign';
    return operator.isOlderShown ? 'sees that somebody may show an older leaf' : 'hears that everybody is ready';
  }

  #askedAbout(world: World): Asked {
    const key = keyOf(world, NOTHING_TOLD);
    const known = this.#asked.get(key);
    if (known !== undefined) return known;
    const generations = askedAbout(questionOf(world, NOTHING_TOLD)).map(generationOf);
    const { next } = world;
    const asked: Asked = {
      next: generations.find(generation => generation === next) ?? NONE,
      current: generations.find(generation => generation !== next) ?? NONE,
    };
    this.#asked.set(key, asked);
    return asked;
  }

  #isLookWanted(world: World, operator: Told): boolean {
    const key = keyOf(world, operator);
    const known = this.#looks.get(key);
    if (known !== undefined) return known;
    const isWanted = isLookWanted(questionOf(world, operator));
    this.#looks.set(key, isWanted);
    return isWanted;
  }

  #decide(world: World, index: 0 | 1): string {
    const operator = world.operators[index];
    const { write, isFollowed, isBack, text } = this.#decisionOf(world, operator);
    const kind = WRITES[write];
    leaveBehind(world, index);
    forgetAnswers(operator);
    operator.write = write;
    operator.isFollowed = isFollowed;
    operator.current = world.signer;
    operator.next = world.next;
    if (kind === 'begin' || kind === 'begin-again') operator.next = isBack ? world.previous : NONE;
    if (kind !== 'nothing' && (kind !== 'clear' || world.isTakenBack)) {
      operator.step = STEP.write;
      return text;
    }
    operator.step = STEP.bundle;
    if (kind === 'clear') return text;
    // A pair that signed before is in the bundle already, or has left it for good.
    if (world.beside !== world.signer) operator.next = NONE;
    if (world.previous !== NONE && !has(world.bundle, world.previous)) {
      world.previous = NONE;
      markStale(world, index, 'isPreviousStale');
    }
    return text;
  }

  /** The real decision, once for each question. */
  #decisionOf(world: World, operator: Operator): Decided {
    const key = keyOf(world, operator);
    const known = this.#decisions.get(key);
    if (known !== undefined) return known;
    const question = questionOf(world, operator);
    const { write, leaves, because } = this.#rules.decide(question);
    const decided = {
      write: WRITES.indexOf(write),
      isFollowed: leaves === 'follow',
      isBack: question.isTurnedRound,
      text: `decides "${write}": ${because}`,
    };
    this.#decisions.set(key, decided);
    return decided;
  }

  #write(world: World, index: 0 | 1): string | undefined {
    const operator = world.operators[index];
    const { current, next } = operator;
    const isConflict = this.#rules.areWritesOptimistic && operator.isSignerStale;
    switch (WRITES[operator.write]) {
      case 'begin':
      case 'begin-again': {
        // What was not there is created: that fails only where somebody else has one there by now.
        if (WRITES[operator.write] === 'begin' ? world.next !== NONE : operator.isNextStale)
          return lost(world, index, 'next signer');
        if (next === NONE && world.made === GENERATIONS) return undefined;
        const made = next === NONE ? (world.made++ as Generation) : next;
        world.next = made;
        world.isTakenBack = false;
        world.isDueAgain = false;
        world.beside = next === NONE ? current : NONE;
        markStale(world, index, 'isNextStale');
        operator.next = next === NONE ? made : NONE;
        return onToBundle(operator, world.signer, `writes CA ${made} as the next signer`);
      }
      case 'promote':
        if (world.previous === current && !operator.isPreviousStale) return this.#promote(world, index);
        if (operator.isPreviousStale) return lost(world, index, 'previous signer');
        world.previous = current;
        markStale(world, index, 'isPreviousStale');
        operator.step = STEP.promote;
        return `keeps CA ${current} as the previous signer`;
      case 'discard':
      case 'clear': {
        if (isConflict) return lost(world, index, 'signer');
        world.isDue = world.isDueAgain;
        world.isDueAgain = false;
        world.isTurnedRound = false;
        markStale(world, index, 'isSignerStale');
        return onToBundle(operator, world.signer, 'takes the request off the signer');
      }
      case 'retire':
        if (isConflict) return lost(world, index, 'signer');
        world.noted = current;
        markStale(world, index, 'isSignerStale');
        for (const node of world.nodes) if (node.isThere && !isOwed(node, index)) node.isLeft = true;
        operator.next = NONE;
        return onToBundle(operator, world.signer, `notes that everybody shows leaves of CA ${current}`);
      default:
        throw new RangeError(`a signer that is there is never the reason to ${WRITES[operator.write]}`);
    }
  }

  #promote(world: World, index: 0 | 1): string {
    const operator = world.operators[index];
    const next = operator.next as Generation;
    const isOvertaken = operator.isSignerStale || operator.isNextStale;
    if (this.#rules.areWritesOptimistic && isOvertaken) return lost(world, index, 'signer or the next one');
    world.signer = next;
    world.isDue = false;
    world.isTurnedRound = false;
    world.noted = NONE;
    markStale(world, index, 'isSignerStale');
    sign(world, index, next);
    return onToBundle(operator, next, `makes CA ${next} the signer`);
  }

  #bundle(world: World, index: 0 | 1): string {
    const operator = world.operators[index];
    if (this.#rules.areWritesOptimistic && world.signer !== operator.current) return lost(world, index, 'signer');
    const kind = WRITES[operator.write];
    const isCleared = kind === 'promote' || kind === 'discard' || kind === 'clear';
    const before = world.bundle;
    world.bundle |= setOf(operator.current) | (isCleared ? 0 : setOf(operator.next));
    if (kind === 'discard') world.bundle &= ~setOf(operator.next);
    operator.step = isCleared ? STEP.clear : STEP.leaf;
    if (!isCleared) operator.isNextStale = false;
    return world.bundle === before ? 'finds the bundle as it should be' : `writes the bundle: ${caNames(world.bundle)}`;
  }

  #clear(world: World, index: 0 | 1): string {
    const operator = world.operators[index];
    const isGone = operator.isNextStale || world.next === NONE;
    if (!isGone) {
      world.next = NONE;
      world.isTakenBack = false;
      world.isDueAgain = false;
      world.beside = NONE;
      markStale(world, index, 'isNextStale');
    }
    operator.step = STEP.leaf;
    operator.next = NONE;
    operator.isNextStale = false;
    return isGone ? 'has no next signer to clear away' : 'clears the next signer away';
  }

  #leaf(world: World, index: 0 | 1): string {
    const { current, isFollowed, isLeafStale } = world.operators[index];
    const { leaf, bundle } = world;
    const isOvertaken = isLeafStale || world.signer !== current;
    if (isOvertaken && this.#rules.areWritesOptimistic) return lost(world, index, 'signer or the leaf');
    const isNeeded = leaf === NONE || !has(bundle, leaf);
    const isMade = isNeeded || (leaf !== current && isFollowed);
    if (isMade) {
      world.leaf = current;
      sign(world, index, current);
      markStale(world, index, 'isLeafStale');
    }
    endPass(world, index);
    if (!isMade) return 'finds the leaf as it should be';
    return `makes the leaf anew, signed by CA ${current}`;
  }
}

interface Asked {
  readonly next: MaybeGeneration;
  readonly current: MaybeGeneration;
}

interface Decided {
  readonly write: number;
  readonly isFollowed: boolean;
  /** The pair to sign next is the one that signed before. */
  readonly isBack: boolean;
  readonly text: string;
}

/** A node that exists is counted, unless somebody has waived it (HO-7). */
function isMissing({ nodes }: World, generation: MaybeGeneration): boolean {
  for (const node of nodes) if (node.isThere && !node.isWaived && !hasReceipt(node, generation)) return true;
  return false;
}

function isOlderShown(world: World): boolean {
  for (const node of world.nodes) if (node.isThere && !node.isWaived && !isSeenToShowCurrent(world, node)) return true;
  return false;
}

/** One process is asked in a handshake, of the other one the agent of its node reports. */
export function hasReceipt({ isAway, reloading, reported }: Node, generation: MaybeGeneration): boolean {
  return !isAway && has(reloading, generation) && has(reported, generation);
}

/** Who cannot be seen has not been seen to have changed; what is in its file it may show at any moment. */
function isSeenToShowCurrent(world: World, { isAway, shown, leafFile }: Node): boolean {
  return !isAway && shown !== NONE && !isRetiring(world, shown) && !isRetiring(world, leafFile);
}

/** From now on something may be shown that this CA has signed: who was not asked, or not waited for, may refuse it until it has caught up. */
function sign(world: World, index: 0 | 1, generation: MaybeGeneration): void {
  for (const node of world.nodes) {
    const lacksIt = !has(node.reloading & node.restarting, generation);
    if (node.isThere && !isOwed(node, index) && lacksIt) node.isBehind = true;
  }
}

/** Nobody waits for anybody when what is in use ends soon (HO-7). */
function leaveBehind(world: World, index: 0 | 1): void {
  if (!world.isLate || (world.signer !== 0 && world.leaf !== 0)) return;
  const { askedNext, askedCurrent } = world.operators[index];
  const asked = askedNext === NONE ? askedCurrent : askedNext;
  if (asked === NONE) return;
  for (const node of world.nodes) if (!hasReceipt(node, asked)) node.owed = withBit(node.owed, index, false);
}

function isOwed({ owed }: Node, index: 0 | 1): boolean {
  return (owed & (1 << index)) !== 0;
}

function onToBundle(operator: Operator, current: Generation, text: string): string {
  operator.step = STEP.bundle;
  operator.current = current;
  operator.isSignerStale = false;
  operator.isPreviousStale = false;
  return text;
}

function lost(world: World, index: 0 | 1, what: string): string {
  endPass(world, index);
  return `finds that somebody else has written the ${what}, and begins anew`;
}

/** Nothing of a pass is kept. */
export function endPass(world: World, index: 0 | 1): void {
  const operator = world.operators[index];
  forgetAnswers(operator);
  operator.step = STEP.idle;
  operator.write = 0;
  operator.current = NONE;
  operator.next = NONE;
  operator.isFollowed = false;
  operator.isSignerStale = false;
  operator.isPreviousStale = false;
  operator.isNextStale = false;
  operator.isLeafStale = false;
  for (const node of world.nodes) node.owed = withBit(node.owed, index, false);
}

function forgetAnswers(operator: Operator): void {
  operator.askedNext = NONE;
  operator.isNextMissing = false;
  operator.askedCurrent = NONE;
  operator.isCurrentMissing = false;
  operator.lookedFor = NONE;
  operator.isOlderShown = false;
}

/** Whoever has read an object and not written yet will find that it has changed. */
export function markStale(world: World, by: 0 | 1 | undefined, what: Stale): void {
  for (const index of [0, 1] as const) {
    const operator = world.operators[index];
    if (index !== by && operator.step >= STEP.write && operator.step <= LAST_STEP[what]) operator[what] = true;
  }
}

export type Stale = 'isSignerStale' | 'isNextStale' | 'isPreviousStale' | 'isLeafStale';

const LAST_STEP: Readonly<Record<Stale, number>> = {
  isSignerStale: STEP.promote,
  isPreviousStale: STEP.write,
  isNextStale: STEP.clear,
  isLeafStale: STEP.leaf,
};

function withBit(bits: number, index: number, isSet: boolean): number {
  return isSet ? bits | (1 << index) : bits & ~(1 << index);
}

export function caNames(set: CaSet): string {
  return CA_NAMES[set] as string;
}

const CA_NAMES: readonly string[] = Array.from({ length: 1 << GENERATIONS }, (_, set) => {
  const names = ([0, 1, 2] as const).filter(generation => has(set, generation)).map(generation => `CA ${generation}`);
  return names.length === 0 ? 'nothing' : names.join(', ');
});

/** Everything that the decision depends on, in one number. */
function keyOf(w: World, o: Told): number {
  const objects =
    w.signer +
    4 *
      (+w.isDue +
        2 *
          (+w.isTurnedRound +
            2 *
              (w.noted +
                4 *
                  (w.next +
                    4 *
                      (+w.isTakenBack +
                        2 * (w.beside + 4 * (w.previous + 4 * (w.bundle + 8 * (w.leaf + 4 * +w.isLate)))))))));
  const told =
    o.askedNext +
    4 * (+o.isNextMissing + 2 * (o.askedCurrent + 4 * (+o.isCurrentMissing + 2 * (o.lookedFor + 4 * +o.isOlderShown))));
  return objects * 512 + told;
}
