/** Numbers from 0 up to but not including 1: the same seed gives the same ones, and streams of other names are other ones. */
export type Random = () => number;

export function seededRandom(seed: string): Random {
  let [a, b] = hashOf(seed);
  // xorshift128, on two words mixed from the text: not for secrets.
  let [c, d] = [a ^ 0x9e3779b9, b ^ 0x243f6a88];
  return () => {
    const t = a ^ (a << 11);
    [a, b, c] = [b, c, d];
    d = (d ^ (d >>> 19) ^ (t ^ (t >>> 8))) >>> 0;
    return d / 0x1_0000_0000;
  };
}

/** A whole number below this. */
export function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

export function pick<T>(random: Random, of: readonly T[]): T {
  return of[below(random, of.length)] as T;
}

function hashOf(text: string): [number, number] {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    a = Math.imul(a ^ code, 0x9e3779b1);
    b = Math.imul(b ^ code, 0x5f356495);
  }
  return [(a ^ (b >>> 15)) >>> 0, (b ^ (a >>> 13)) >>> 0];
}
