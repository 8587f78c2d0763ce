import { seeded } from '../informer/seeded.ts';

/** Choices that a text repeats. */
export interface Random {
  /** A whole number from 0 up to but not including `end`. */
  int(end: number): number;
  chance(probability: number): boolean;
  pick<T>(choices: readonly T[]): T;
  /** Up to `most` of something. */
  list<T>(most: number, make: (index: number) => T): T[];
  /** Exactly so many. */
  times<T>(count: number, make: (index: number) => T): T[];
  /** Each with the same probability. */
  some<T>(choices: readonly T[], probability?: number): T[];
  shuffle<T>(choices: readonly T[]): T[];
}

export function random(text: string): Random {
  const next = seeded(hash(text));
  const int = (end: number) => Math.floor(next() * end);
  const chance = (probability: number) => next() < probability;
  const times = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, i) => make(i));
  return {
    int,
    chance,
    times,
    pick: <T>(choices: readonly T[]) => choices[int(choices.length)] as T,
    list: (most, make) => times(int(most + 1), make),
    some: (choices, probability = 0.5) => choices.filter(() => chance(probability)),
    shuffle: choices =>
      choices
        .map(choice => [next(), choice] as const)
        .sort(([a], [b]) => a - b)
        .map(([, choice]) => choice),
  };
}

/** FNV-1a, with its bits mixed once more: neighbouring texts begin far from each other. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (const byte of Buffer.from(text)) state = Math.imul(state ^ byte, 0x01000193);
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  return (state ^ (state >>> 13)) >>> 0;
}

/** The first of each name. */
export function distinct<T>(items: readonly T[], nameOf: (item: T) => unknown): T[] {
  return items.filter((item, i) => items.findIndex(other => nameOf(other) === nameOf(item)) === i);
}
