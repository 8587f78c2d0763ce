import type { Random } from './random.ts';

/** The programs of upstream that can be asked; the README says what they read and print. */
export type Program = 'mcodiff' | 'lgdiff' | 'kasodiff' | 'ceodiff';

/** What upstream said to one input: a value, or why there is none. */
export interface Answer {
  readonly out?: unknown;
  readonly err?: string | undefined;
}

/** One disagreement. Those of a class have the same cause, as far as a text can tell. */
export interface Difference {
  readonly class: string;
  readonly mine: unknown;
  readonly theirs: unknown;
}

/** A function of ours, and how upstream is asked about the same. */
export interface Judged<Input = unknown> {
  /** Names the recording too. */
  readonly name: string;
  readonly program: Program;
  readonly op: string;
  /** `at` is the moment at which upstream is or was asked: it has no other clock than that of the machine. */
  readonly generate: (random: Random, at: Date) => Input | Promise<Input>;
  /** What upstream is asked: the input itself unless told otherwise. `folder` belongs to this input alone. */
  readonly question?: (input: Input, folder: string) => unknown;
  /** What of the answer is worth keeping. */
  readonly keep?: (answer: Answer) => Answer;
  readonly compare: (
    input: Input,
    answer: Answer,
    context: { readonly folder: string; readonly at: Date },
  ) => Difference[] | Promise<Difference[]>;
}

/** Hides the type of the inputs, so that functions can stand in one list. */
export function judged<Input>(functionOfOurs: Judged<Input>): Judged {
  return functionOfOurs as unknown as Judged;
}
