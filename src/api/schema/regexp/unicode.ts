import { LAST_CODE_POINT, type Ranges } from './ranges.ts';

/** What JavaScript's engine knows about characters, as sets: classes such as `\p{Greek}`, and letters of both cases. */

/** The members of a general category or script; `undefined` when there is none of that name. */
export function unicodeClass(name: string): Ranges | undefined {
  const known = CLASSES.get(name);
  if (known !== undefined) return known;
  for (const spelled of [name, capitalised(name), name.toUpperCase()]) {
    for (const property of [spelled, `Script=${spelled}`]) {
      const pattern = propertyPattern(property);
      if (pattern === undefined) continue;
      const ranges = membersOf(pattern);
      CLASSES.set(name, ranges);
      return ranges;
    }
  }
  return undefined;
}

/** At most as many as there are spellings of categories and scripts. */
const CLASSES = new Map<string, Ranges>();

/** Names are compared without case, spaces, underscores and hyphens; JavaScript wants `Old_Italic`. */
function capitalised(name: string): string {
  return name
    .split(/[ _-]+/)
    .map(word => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase())
    .join('_');
}

/** Of JavaScript's properties only those that RE2 has. */
function propertyPattern(property: string): RegExp | undefined {
  const isCategory = !property.includes('=') && !['Any', 'ASCII', 'Assigned'].includes(property);
  try {
    return new RegExp(`\\p{${isCategory ? `General_Category=${property}` : property}}+`, 'gu');
  } catch {
    return undefined;
  }
}

const CHUNK = 0x1000;
const SURROGATES = [0xd800, 0xdfff] as const;

function membersOf(run: RegExp): Ranges {
  const ranges: [number, number][] = [];
  for (let start = 0; start <= LAST_CODE_POINT; start += CHUNK) {
    const codes = Array.from({ length: CHUNK }, (_, index) => start + index).filter(
      code => code < SURROGATES[0] || code > SURROGATES[1],
    );
    const text = String.fromCodePoint(...codes);
    const width = start > 0xffff ? 2 : 1;
    for (const { index, 0: match } of text.matchAll(run)) {
      const [low, high] = [codes[index / width] as number, codes[(index + match.length) / width - 1] as number];
      const last = ranges.at(-1);
      if (last !== undefined && last[1] === low - 1) last[1] = high;
      else ranges.push([low, high]);
    }
  }
  return ranges;
}

/** The ranges with the other cases of every letter in them. */
export function withOtherCases(ranges: Ranges): Ranges {
  const { codes, others } = cases();
  const more: (readonly [number, number])[] = [...ranges];
  for (const [low, high] of ranges) {
    for (let at = firstFrom(codes, low); at < codes.length && (codes[at] as number) <= high; at++) {
      for (const code of others.get(codes[at] as number) ?? []) more.push([code, code]);
    }
  }
  return more;
}

interface Cases {
  /** All that have another case, in order. */
  readonly codes: readonly number[];
  readonly others: ReadonlyMap<number, readonly number[]>;
}

let known: Cases | undefined;

/** Letters that differ only in case, such as `K`, `k` and the Kelvin sign; found once. */
function cases(): Cases {
  if (known !== undefined) return known;
  const byFold = new Map<string, number[]>();
  for (const category of ['L', 'Mn', 'Nl', 'So']) {
    for (const [low, high] of unicodeClass(category) ?? []) {
      for (let code = low; code <= high; code++) {
        const fold = folded(code);
        if (fold !== undefined) byFold.set(fold, [...(byFold.get(fold) ?? []), code]);
      }
    }
  }
  const others = new Map(
    [...byFold.values()].filter(({ length }) => length > 1).flatMap(all => all.map(code => [code, all])),
  );
  known = { codes: [...others.keys()].sort((a, b) => a - b), others };
  return known;
}

/** What all cases of a letter have in common. The two Turkish letters have no other case, as in RE2. */
function folded(code: number): string | undefined {
  const char = String.fromCodePoint(code);
  if (char === 'ı' || char === 'İ' || (char.toLowerCase() === char && char.toUpperCase() === char)) return undefined;
  const upper = single(char.toUpperCase()) ?? char;
  return single(upper.toLowerCase()) ?? upper;
}

function single(text: string): string | undefined {
  return Array.from(text).length === 1 ? text : undefined;
}

function firstFrom(codes: readonly number[], low: number): number {
  let [from, to] = [0, codes.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((codes[middle] as number) < low) from = middle + 1;
    else to = middle;
  }
  return from;
}
