import { parseGoDuration } from '../../kube/duration.ts';

/** What a program takes on its command line, in the way Go programs do. */
export type FlagKind = 'text' | 'list' | 'integer' | 'integers' | 'duration';

export type FlagTable = Readonly<Record<string, FlagKind>>;

type Value<K extends FlagKind> = K extends 'text'
  ? string
  : K extends 'list'
    ? string[]
    : K extends 'integers'
      ? number[]
      : number;

export type FlagValues<T extends FlagTable> = { -readonly [Name in keyof T]?: Value<T[Name]> };

/** A command line that cannot be understood. */
export class FlagError extends Error {
  override readonly name = 'FlagError';
}

/**
 * Reads `--name=value`, `--name value` and `-name=value`. Lists may be repeated and hold commas. `-v` and its like (`--v`) are
 * accepted everywhere and given back as `v`.
 */
export function parseFlags<T extends FlagTable>(argv: readonly string[], table: T): FlagValues<T> & { v?: number } {
  const values: Record<string, unknown> = {};
  const kinds: FlagTable = { v: 'integer', ...table };
  for (let index = 0; index < argv.length; index++) {
    const match = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(argv[index] as string);
    if (match === null) throw new FlagError(`expected a flag, found ${JSON.stringify(argv[index])}`);
    const name = match[1] as string;
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    if (kind === undefined) throw new FlagError(`unknown flag: --${name}`);
    const text = match[2] ?? argv[++index];
    if (text === undefined) throw new FlagError(`flag needs an argument: --${name}`);
    values[name] = readValue(name, kind, text, values[name]);
  }
  return values as FlagValues<T> & { v?: number };
}

function readValue(name: string, kind: FlagKind, text: string, before: unknown): unknown {
  switch (kind) {
    case 'text':
      return text;
    case 'list':
      return [...((before as string[] | undefined) ?? []), ...text.split(',').filter(part => part !== '')];
    case 'integer':
      return integer(name, text);
    case 'integers': {
      const parts = text.split(',').filter(part => part !== '');
      return [...((before as number[] | undefined) ?? []), ...parts.map(part => integer(name, part.trim()))];
    }
    case 'duration': {
      const duration = parseGoDuration(text);
      if (duration === undefined)
        throw new FlagError(`--${name}: expected a duration such as 120s, found ${JSON.stringify(text)}`);
      return duration;
    }
  }
}

function integer(name: string, text: string): number {
  if (!/^[-+]?\d{1,10}$/.test(text))
    throw new FlagError(`--${name}: expected an integer, found ${JSON.stringify(text)}`);
  return Number(text);
}
