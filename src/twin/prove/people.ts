import { setUpAnew } from './nodes.ts';
import { markStale } from './operator.ts';
import { isRetiring } from './question.ts';
import type { Rules } from './rules.ts';
import { GENERATIONS, type Generation, has, NONE, type Node, STEP, setOf, type World } from './world.ts';

/** What a person does to the family, or what happens to all of it; undefined: not now. */
export type Happening = (world: World, rules: Rules) => string | undefined;
/** The same to one node. */
export type NodeHappening = (node: Node, world: World, rules: Rules) => string | undefined;

/** What begins it all; done once, and for nothing. */
export function request(world: World): string | undefined {
  if (world.made > 1 || world.isDue || world.signer !== 0) return undefined;
  return askForAnother(world);
}

function askForAnother(world: World): string {
  if (world.isTakenBack) world.isDueAgain = true;
  world.isDue = true;
  markStale(world, undefined, 'isSignerStale');
  return 'a person asks for another signer';
}

/** Each of these costs one of the happenings that a run allows for. */
export const HAPPENINGS: readonly Happening[] = [
  // In any phase (HO-5).
  world => {
    const isAsked = world.isDue && (!world.isTakenBack || world.isDueAgain);
    return isAsked || world.made === 1 || world.made === GENERATIONS ? undefined : askForAnother(world);
  },
  // HO-6.
  world => {
    if (world.next === NONE || world.isTakenBack || world.next === world.signer) return undefined;
    world.isTakenBack = true;
    markStale(world, undefined, 'isNextStale');
    return 'a person takes the hand-over back';
  },
  world => {
    if (world.previous === NONE || world.previous === world.signer || world.isTurnedRound || world.isTakenBack)
      return undefined;
    world.isTurnedRound = true;
    markStale(world, undefined, 'isSignerStale');
    return 'a person turns the hand-over round';
  },
  world => {
    if (world.leaf === NONE || world.made === 1) return undefined;
    world.leaf = NONE;
    markStale(world, undefined, 'isLeafStale');
    return 'a person deletes the leaf';
  },
  // HO-7.
  world => {
    if (world.isLate || (world.signer !== 0 && world.leaf !== 0)) return undefined;
    world.isLate = true;
    return 'time passes: CA 0 ends so soon that nobody is waited for any longer';
  },
  world => {
    const [first] = world.operators;
    if (world.isLedByOther || first.step === STEP.idle) return undefined;
    world.isLedByOther = true;
    return 'another operator becomes the leader; the first one does not know yet';
  },
];

export const NODE_HAPPENINGS: readonly NodeHappening[] = [
  (node, world) => {
    if (!node.isThere || node.isWaived || world.made === 1) return undefined;
    node.isWaived = true;
    return 'is waived by a person';
  },
  node => {
    if (!node.isThere || node.isAway) return undefined;
    Object.assign(node, { isAway: true, isWaived: false, onItsWay: 0 });
    return 'goes away';
  },
  (node, { nodes }) => {
    if (!node.isThere || nodes.filter(({ isThere }) => isThere).length === 1) return undefined;
    for (const key of Object.keys(node) as (keyof Node)[]) Object.assign(node, { [key]: NOT_THERE[key] });
    return 'is deleted';
  },
  // Also a node that was deleted: it joins again.
  (node, world, { doReceiptsEnd }) => {
    if (world.made === 1) return undefined;
    const text = node.isThere ? 'is replaced by another machine of its name, with old files' : 'joins with old files';
    setUpAnew(node, world, doReceiptsEnd);
    return text;
  },
];

const NOT_THERE: Node = {
  isThere: false,
  isAway: false,
  isWaived: false,
  isBehind: false,
  isLeft: false,
  owed: 0,
  onItsWay: 0,
  file: 0,
  reloading: 0,
  restarting: 0,
  reported: 0,
  leafFile: NONE,
  shown: NONE,
};

/** `remove-old-trust`: whoever is not waived and shows something of these CAs, or cannot be seen, keeps them (HO-3). */
export function removeOldTrust(world: World, { isLookedBeforeRemoval }: Rules): string | undefined {
  let retiring = 0;
  for (let ca = 0; ca < GENERATIONS; ca++) if (isRetiring(world, ca as Generation)) retiring |= setOf(ca as Generation);
  if (retiring === 0 || has(retiring, world.leaf)) return undefined;
  if (isLookedBeforeRemoval && world.nodes.some(node => isInTheWay(node, retiring, world))) return undefined;
  for (const node of world.nodes)
    if (node.isWaived && (has(retiring, node.shown) || has(retiring, node.leafFile))) node.isLeft = true;
  world.bundle &= ~retiring;
  return 'a person removes old trust';
}

function isInTheWay(node: Node, retiring: number, { noted, signer }: World): boolean {
  const { isThere, isWaived, isAway, shown, leafFile } = node;
  if (!isThere || isWaived) return false;
  return isAway || shown === NONE ? noted !== signer : has(retiring, shown) || has(retiring, leafFile);
}
