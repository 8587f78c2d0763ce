import { FamilyModel } from './family.ts';
import { type RemovableRule, rulesWithout } from './rules.ts';
import { search, type Verdict } from './search.ts';
import { storyOf, withNames } from './story.ts';

export interface ProofOptions {
  /** From one to three. */
  readonly nodes: number;
  readonly crashes: number;
  readonly losses: number;
  readonly happenings: number;
  readonly without?: RemovableRule | undefined;
  readonly mostStates?: number | undefined;
  readonly onProgress?: ((states: number, waiting: number) => void) | undefined;
}

export interface Proof {
  readonly verdict: Verdict['kind'];
  readonly states: number;
  readonly transitions: number;
  readonly depth: number;
  /** Who refuses whom, where somebody does. */
  readonly refusal: string | undefined;
  /** The shortest way there, or to the state that has no end. */
  readonly story: readonly string[];
}

/** A state takes some 45 bytes: this is as much as four gigabytes hold. */
const MOST_STATES = 80_000_000;

/** Plays a hand-over in every order in which its steps can happen (spec 90): either nobody ever refuses anybody, or here is the shortest way to it. */
export function proveHandOver(options: ProofOptions): Proof {
  const { without, mostStates = MOST_STATES, onProgress } = options;
  const model = new FamilyModel({ ...options, rules: rulesWithout(without) });
  const { verdict, ...counts } = search(model, { mostStates, onProgress });
  if (!('path' in verdict)) return { verdict: verdict.kind, ...counts, refusal: undefined, story: [] };
  const { lines, names } = storyOf(model, verdict.path);
  const refusal = verdict.kind === 'refuted' ? withNames(verdict.wrong, names) : undefined;
  return { verdict: verdict.kind, ...counts, refusal, story: lines };
}
