import { decide } from '../../hand-over/decide.ts';
import { comeBack, NODE_STEPS, refusalIn, worksOn } from './nodes.ts';
import { endPass, OperatorSteps } from './operator.ts';
import { HAPPENINGS, NODE_HAPPENINGS, removeOldTrust, request } from './people.ts';
import { NOTHING_TOLD, questionOf, whyDue } from './question.ts';
import type { Rules } from './rules.ts';
import type { Model } from './search.ts';
import { NONE, type Node, pack, STEP, unpack, type World, widthOf, worldAtRest } from './world.ts';

export interface FamilyOptions {
  readonly nodes: number;
  /** How often an operator is killed in the middle of a pass. */
  readonly crashes: number;
  /** How often a bundle that is on its way to a node never arrives. */
  readonly losses: number;
  /** How many other things happen: what people do, and what becomes of nodes, leaders and time. */
  readonly happenings: number;
  readonly rules: Rules;
}

/** A signer family on a few nodes, from the request for another signer on. */
export class FamilyModel implements Model {
  readonly width: number;
  readonly nodes: number;
  readonly #options: FamilyOptions;
  readonly #operator: OperatorSteps;
  readonly #world: World;
  readonly #next: Int32Array;

  constructor(options: FamilyOptions) {
    this.#options = options;
    this.#operator = new OperatorSteps(options.rules);
    this.#world = worldAtRest(options.nodes, options);
    this.nodes = options.nodes;
    this.width = widthOf(options.nodes);
    this.#next = new Int32Array(this.width);
  }

  initial(into: Int32Array): void {
    pack(worldAtRest(this.#options.nodes, this.#options), into);
  }

  successors(state: Int32Array, found: (next: Int32Array) => void): void {
    this.each(state, world => found(pack(world, this.#next)));
  }

  /** Everything that can happen next, with the world after it, which is valid until the next one; of a node its place. */
  each(state: Int32Array, happens: (world: World, who: string | number, what: string) => void): void {
    const { rules } = this.#options;
    const world = this.#world;
    unpack(state, world);
    // What cannot happen changes nothing.
    const attempt = (who: string | number, act: () => string | undefined) => {
      const what = act();
      if (what === undefined) return;
      happens(world, who, what);
      unpack(state, world);
    };
    attempt('', () => request(world));
    for (const index of [0, 1] as const) {
      attempt(OPERATORS[index], () => (this.#mayStep(world, index) ? this.#operator.step(world, index) : undefined));
      attempt(OPERATORS[index], () => crash(world, index));
    }
    for (const place of world.nodes.keys()) {
      const node = world.nodes[place] as Node;
      const isSame = isSameAsBefore(state, place);
      for (const step of NODE_STEPS) attempt(place, () => (!isSame && worksOn(node) ? step(node, world) : undefined));
      attempt(place, () => (!isSame && node.isAway ? comeBack(node, world) : undefined));
      attempt(place, () => (isSame ? undefined : lose(node, world)));
      for (const happening of NODE_HAPPENINGS)
        attempt(place, () => (isSame ? undefined : costing(world, () => happening(node, world, rules))));
    }
    for (const happening of HAPPENINGS) attempt('', () => costing(world, () => happening(world, rules)));
    attempt('', () => removeOldTrust(world, rules));
  }

  wrongWith(state: Int32Array): string | undefined {
    return refusalIn(unpack(state, this.#world));
  }

  onward(state: Int32Array, into: Int32Array): boolean {
    const world = unpack(state, this.#world);
    const isMoved = this.#stepOnward(world);
    pack(world, into);
    return isMoved;
  }

  isEnd(state: Int32Array): boolean {
    const world = unpack(state, this.#world);
    const { operators, next, signer, leaf, nodes } = world;
    if (operators.some(({ step }) => step !== STEP.idle)) return false;
    if (next !== NONE || leaf !== signer || whyDue(world) !== undefined) return false;
    if (!nodes.every(node => !node.isThere || (!node.isAway && node.shown === signer && !node.isBehind))) return false;
    const told = { ...NOTHING_TOLD, lookedFor: signer };
    const { phase } = decide(questionOf(world, told));
    return phase === 'Steady' || phase === 'Retiring';
  }

  #mayStep({ operators, isLedByOther }: World, index: 0 | 1): boolean {
    return operators[index].step !== STEP.idle || isLedByOther === (index === 1);
  }

  /** Passes that have begun end; nodes do what is theirs; then the leader begins the next pass. */
  #stepOnward(world: World): boolean {
    for (const index of [0, 1] as const)
      if (world.operators[index].step !== STEP.idle) return this.#operator.step(world, index) !== undefined;
    for (const node of world.nodes) {
      if (!node.isThere) continue;
      if (node.isAway) return comeBack(node, world) !== undefined;
      for (const step of NODE_STEPS) if (step(node, world) !== undefined) return true;
    }
    return this.#operator.step(world, world.isLedByOther ? 1 : 0) !== undefined;
  }
}

const OPERATORS = ['the operator', 'the other operator'] as const;

function costing(world: World, happening: () => string | undefined): string | undefined {
  if (world.happenings === 0) return undefined;
  const what = happening();
  if (what !== undefined) world.happenings--;
  return what;
}

function crash(world: World, index: 0 | 1): string | undefined {
  if (world.crashes === 0 || world.operators[index].step === STEP.idle) return undefined;
  world.crashes--;
  endPass(world, index);
  return 'is killed';
}

function lose(node: Node, world: World): string | undefined {
  if (world.losses === 0 || node.onItsWay === 0) return undefined;
  world.losses--;
  node.onItsWay = 0;
  return 'never gets what was sent';
}

/** Nodes are in the order of their words: what happens to one of several that are alike stands for the others. */
function isSameAsBefore(state: Int32Array, place: number): boolean {
  const at = widthOf(place);
  return place > 0 && state[at] === state[at - 1];
}
