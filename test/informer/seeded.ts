/** Gives numbers from 0 up to but not including 1. */
export type Random = () => number;

/** A generator of numbers that a seed repeats (mulberry32). */
export function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from 0 up to but not including `end`. */
export function below(random: Random, end: number): number {
  return Math.floor(random() * end);
}

/** Gives all of `kinds` in a random order, then again in another one: every kind comes up equally often. */
export function shuffledForever<T>(random: Random, kinds: readonly T[]): () => T {
  let left: T[] = [];
  return () => {
    if (left.length === 0) left = [...kinds];
    const [drawn] = left.splice(below(random, left.length), 1);
    return drawn as T;
  };
}
