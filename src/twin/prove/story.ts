import type { FamilyModel } from './family.ts';
import { pack } from './world.ts';

/** What happened, one line for whatever one of them did in a row. */
export interface Story {
  readonly lines: readonly string[];
  /** The names of the nodes by their places in the last state. */
  readonly names: readonly string[];
}

/** Tells a path as a story: nodes are moved about between its states, and keep their names in it. */
export function storyOf(model: FamilyModel, path: readonly Int32Array[]): Story {
  let names = Array.from({ length: model.nodes }, (_, place) => `n${place + 1}`);
  const steps: Step[] = [];
  for (let at = 1; at < path.length; at++) {
    const step = stepBetween(model, path[at - 1] as Int32Array, path[at] as Int32Array);
    const who = typeof step.who === 'number' ? (names[step.who] as string) : step.who;
    steps.push({ who, what: step.what, isOfNode: who !== step.who });
    names = step.order.map(place => names[place] as string);
  }
  return { lines: folded(sideBySide(steps)), names };
}

/** A text about places with the names of who stands there. */
export function withNames(text: string, names: readonly string[]): string {
  return text.replaceAll(/\{(\d)\}/g, (_, place) => names[Number(place)] ?? '?');
}

function stepBetween(model: FamilyModel, before: Int32Array, after: Int32Array) {
  const words = new Int32Array(model.width);
  const order: number[] = [];
  let found: { readonly who: string | number; readonly what: string; readonly order: readonly number[] } | undefined;
  model.each(before, (world, who, what) => {
    if (found !== undefined) return;
    pack(world, words, order);
    if (words.every((word, at) => word === after[at])) found = { who, what, order: [...order] };
  });
  if (found === undefined) throw new RangeError('a path with a step that cannot happen');
  return found;
}

interface Step {
  readonly who: string;
  readonly what: string;
  readonly isOfNode: boolean;
}

/** What two nodes do side by side can be told one after the other: neither depends on the other one. */
function sideBySide(steps: readonly Step[]): Step[] {
  const told: Step[] = [];
  let together: Step[] = [];
  const tell = () => {
    told.push(...[...Map.groupBy(together, ({ who }) => who).values()].flat());
    together = [];
  };
  for (const step of steps) {
    if (step.isOfNode) together.push(step);
    else {
      tell();
      told.push(step);
    }
  }
  tell();
  return told;
}

function folded(steps: readonly Step[]): string[] {
  const lines: { who: string; text: string }[] = [];
  for (const { who, what } of steps) {
    if (CHANGES_NOTHING.test(what)) continue;
    const last = lines.at(-1);
    const isSameLine = last !== undefined && last.who === who && who !== '' && !BEGINS_A_PASS.test(what);
    if (isSameLine) last.text += `; ${what}`;
    else lines.push({ who, text: who === '' ? what : `${who} ${what}` });
  }
  return lines.map(({ text }) => text);
}

const BEGINS_A_PASS = /^(?:has nobody to ask|hears|sees)/;
const CHANGES_NOTHING = /^finds the (?:bundle|leaf) as it should be/;
