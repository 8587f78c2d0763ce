/** A set of code points, as inclusive ranges. */
export type Ranges = readonly (readonly [low: number, high: number])[];

export const LAST_CODE_POINT = 0x10ffff;

const DIGIT: Ranges = [[48, 57]];
const UPPER: Ranges = [[65, 90]];
const LOWER: Ranges = [[97, 122]];
const ALPHA: Ranges = [...UPPER, ...LOWER];
const WORD: Ranges = [...DIGIT, ...UPPER, [95, 95], ...LOWER];
const SPACE: Ranges = [
  [9, 10],
  [12, 13],
  [32, 32],
];

/** `\d` and its like; ASCII only, as in RE2. */
export const CLASSES: Readonly<Record<string, Ranges | undefined>> = {
  d: DIGIT,
  D: negated(DIGIT),
  w: WORD,
  W: negated(WORD),
  s: SPACE,
  S: negated(SPACE),
};

/** `[:alpha:]` and its like. */
export const POSIX_CLASSES: Readonly<Record<string, Ranges | undefined>> = {
  alnum: [...DIGIT, ...ALPHA],
  alpha: ALPHA,
  ascii: [[0, 127]],
  blank: [
    [9, 9],
    [32, 32],
  ],
  cntrl: [
    [0, 31],
    [127, 127],
  ],
  digit: DIGIT,
  graph: [[33, 126]],
  lower: LOWER,
  print: [[32, 126]],
  punct: [
    [33, 47],
    [58, 64],
    [91, 96],
    [123, 126],
  ],
  space: [
    [9, 13],
    [32, 32],
  ],
  upper: UPPER,
  word: WORD,
  xdigit: [...DIGIT, [65, 70], [97, 102]],
};

/** Whether a code point is in ranges that are in order. */
export function contains(ranges: Ranges, code: number): boolean {
  let [from, to] = [0, ranges.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const [low, high] = ranges[middle] as readonly [number, number];
    if (code < low) to = middle;
    else if (code > high) from = middle + 1;
    else return true;
  }
  return false;
}

/** The same set in order, without overlaps. */
export function ordered(ranges: Ranges): Ranges {
  const result: [number, number][] = [];
  for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last !== undefined && low <= last[1] + 1) last[1] = Math.max(last[1], high);
    else result.push([low, high]);
  }
  return result;
}

/** Every code point that is not in the ranges. */
export function negated(ranges: Ranges): Ranges {
  const result: [number, number][] = [];
  let next = 0;
  for (const [low, high] of ordered(ranges)) {
    if (low > next) result.push([next, low - 1]);
    next = high + 1;
  }
  if (next <= LAST_CODE_POINT) result.push([next, LAST_CODE_POINT]);
  return result;
}
