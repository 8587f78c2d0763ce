import { parseRfc3339 } from '../../../kube/time.ts';
import type { Budget } from '../budget.ts';
import { Pattern } from '../regexp/regexp.ts';
import { LIBRARY_FUNCTIONS, LIBRARY_METHODS } from './library.ts';
import {
  compareValues,
  EvaluationError,
  isList,
  isMap,
  Moment,
  NANOS_PER_MS,
  Optional,
  Span,
  sameValue,
  spanOf,
  type Value,
} from './value.ts';

/** The functions of the language and its extensions, those that rules in the wild use. */

export function isKnownFunction(name: string): boolean {
  return name === 'matches' || Object.hasOwn(FUNCTIONS, name);
}

export function isKnownMethod(name: string): boolean {
  return Object.hasOwn(METHODS, name);
}

export function callFunction(name: string, args: readonly Value[], budget: Budget): Value {
  // `matches(text, pattern)` is another way to write a method.
  const [first, ...rest] = args;
  if (name === 'matches' && first !== undefined) return callMethod(first, name, rest, budget);
  const call = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
  const result = args.length === 1 ? call?.(args[0] ?? null) : undefined;
  if (result === undefined) throw new EvaluationError('no such overload');
  return result;
}

export function callMethod(on: Value, name: string, args: readonly Value[], budget: Budget): Value {
  const call = isKnownMethod(name) ? METHODS[name] : undefined;
  const result = call?.(on, args, budget);
  if (result === undefined) throw new EvaluationError('no such overload');
  return result;
}

/** `undefined` where the argument is of a sort that the function does not take. */
const FUNCTIONS: Readonly<Record<string, (value: Value) => Value | undefined>> = {
  ...LIBRARY_FUNCTIONS,
  size: sizeOf,
  string: textOf,
  int: value => {
    if (typeof value === 'bigint') return value;
    if (typeof value === 'number' && Number.isFinite(value)) return BigInt(Math.trunc(value));
    if (value instanceof Moment) return value.nanos / 1_000_000_000n;
    return typeof value === 'string' && /^[+-]?\d{1,19}$/.test(value) ? BigInt(value) : undefined;
  },
  double: value => {
    if (typeof value === 'number') return value;
    if (typeof value === 'bigint') return Number(value);
    return typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value))
      ? Number(value)
      : undefined;
  },
  bool: value => {
    if (typeof value === 'boolean') return value;
    return value === 'true' ? true : value === 'false' ? false : undefined;
  },
  dyn: value => value,
  duration: value => (typeof value === 'string' ? spanOf(value) : value instanceof Span ? value : undefined),
  timestamp: value => {
    if (value instanceof Moment) return value;
    const instant = typeof value === 'string' ? parseRfc3339(value) : undefined;
    return instant === undefined ? undefined : new Moment(instant.nanos);
  },
};

function sizeOf(value: Value): bigint | undefined {
  if (typeof value === 'string') return BigInt(Array.from(value).length);
  if (isList(value)) return BigInt(value.length);
  return isMap(value) ? BigInt(value.size) : undefined;
}

function textOf(value: Value): string | undefined {
  if (value instanceof Moment)
    return new Date(Number(value.nanos / BigInt(NANOS_PER_MS))).toISOString().replace('.000Z', 'Z');
  if (value instanceof Span) return `${Number(value.nanos) / 1e9}s`;
  return value === null || typeof value === 'object' ? undefined : String(value);
}

type Method = (on: Value, args: readonly Value[], budget: Budget) => Value | undefined;

/** A method of strings. */
const ofText =
  (call: (text: string, args: readonly Value[], budget: Budget) => Value | undefined): Method =>
  (on, args, budget) =>
    typeof on === 'string' ? call(on, args, budget) : undefined;

/** A method of strings that takes one string. */
const withText = (call: (text: string, other: string, budget: Budget) => Value): Method =>
  ofText((text, [other], budget) => (typeof other === 'string' ? call(text, other, budget) : undefined));

const ofList =
  (call: (list: readonly Value[], args: readonly Value[]) => Value | undefined): Method =>
  (on, args) =>
    isList(on) ? call(on, args) : undefined;

const METHODS: Readonly<Record<string, Method>> = {
  ...LIBRARY_METHODS,
  size: sizeOf,
  startsWith: withText((text, start) => text.startsWith(start)),
  endsWith: withText((text, end) => text.endsWith(end)),
  contains: withText((text, part) => text.includes(part)),
  matches: withText((text, pattern, budget) => compiled(pattern, budget).test(text, budget)),
  find: withText((text, pattern, budget) => [...compiled(pattern, budget).matches(text, 1, budget)][0] ?? ''),
  findAll: ofText((text, [pattern, most = -1n], budget) => {
    if (typeof pattern !== 'string' || typeof most !== 'bigint') return undefined;
    return [...compiled(pattern, budget).matches(text, most < 0n ? Infinity : Number(most), budget)];
  }),
  lowerAscii: ofText(text => text.replaceAll(/[A-Z]/g, letter => letter.toLowerCase())),
  upperAscii: ofText(text => text.replaceAll(/[a-z]/g, letter => letter.toUpperCase())),
  trim: ofText(text => text.trim()),
  charAt: ofText((text, [at]) => (typeof at === 'bigint' ? (Array.from(text)[Number(at)] ?? '') : undefined)),
  split: ofText((text, [separator, limit]) => {
    if (typeof separator !== 'string') return undefined;
    const parts = text.split(separator);
    if (typeof limit !== 'bigint' || limit < 0n || parts.length <= Number(limit)) return parts;
    const kept = parts.slice(0, Math.max(0, Number(limit) - 1));
    return limit === 0n ? [] : [...kept, parts.slice(kept.length).join(separator)];
  }),
  replace: ofText((text, [from, to, most = -1n], budget) => {
    if (typeof from !== 'string' || typeof to !== 'string' || typeof most !== 'bigint') return undefined;
    // Between characters, not between the halves of one.
    const parts = from === '' ? ['', ...Array.from(text), ''] : text.split(from);
    const times = most < 0n ? parts.length - 1 : Math.min(Number(most), parts.length - 1);
    budget.spend((times * to.length) / 10);
    return (
      parts.slice(0, times + 1).join(to) +
      parts
        .slice(times + 1)
        .map(part => from + part)
        .join('')
    );
  }),
  substring: ofText((text, [from, to]) => {
    const characters = Array.from(text);
    if (typeof from !== 'bigint') return undefined;
    const end = typeof to === 'bigint' ? Number(to) : characters.length;
    if (from < 0n || Number(from) > end || end > characters.length) throw new EvaluationError('index out of range');
    return characters.slice(Number(from), end).join('');
  }),
  join: ofList((list, [separator = '']) => {
    if (typeof separator !== 'string' || !list.every(element => typeof element === 'string')) return undefined;
    return list.join(separator);
  }),
  indexOf: (on, args) => indexIn(on, args, false),
  lastIndexOf: (on, args) => indexIn(on, args, true),
  isSorted: ofList(list =>
    list.every((element, index) => index === 0 || compareValues(list[index - 1] ?? null, element) <= 0),
  ),
  sum: ofList(list => {
    if (list.length === 0) return 0n;
    if (list.every(element => typeof element === 'bigint')) return list.reduce((sum, element) => sum + element, 0n);
    return list.every(element => typeof element === 'number')
      ? list.reduce((sum, element) => sum + element, 0)
      : undefined;
  }),
  min: ofList(list => extreme(list, -1)),
  max: ofList(list => extreme(list, 1)),
  hasValue: on => (on instanceof Optional ? on.value !== undefined : undefined),
  value: on => {
    if (!(on instanceof Optional)) return undefined;
    if (on.value === undefined) throw new EvaluationError('optional.none() dereference');
    return on.value;
  },
  orValue: (on, [other]) => (on instanceof Optional ? (on.value ?? other) : undefined),
  or: (on, [other]) => (on instanceof Optional ? (on.value === undefined ? other : on) : undefined),
};

const MAX_COMPILED = 100;
const COMPILED = new Map<string, Pattern>();

/** Rules use few patterns again and again. */
function compiled(source: string, budget: Budget): Pattern {
  const known = COMPILED.get(source);
  if (known !== undefined) return known;
  const pattern = readPattern(source, budget);
  if (COMPILED.size >= MAX_COMPILED) COMPILED.clear();
  COMPILED.set(source, pattern);
  return pattern;
}

function readPattern(source: string, budget: Budget): Pattern {
  try {
    return new Pattern(source, budget);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new EvaluationError(`error parsing regexp: ${error.message}`);
  }
}

function indexIn(on: Value, [sought]: readonly Value[], last: boolean): bigint | undefined {
  if (sought === undefined) return undefined;
  if (isList(on)) {
    const same = (element: Value) => sameValue(element, sought);
    return BigInt(last ? on.findLastIndex(same) : on.findIndex(same));
  }
  if (typeof on !== 'string' || typeof sought !== 'string') return undefined;
  const units = last ? on.lastIndexOf(sought) : on.indexOf(sought);
  return units < 0 ? -1n : BigInt(Array.from(on.slice(0, units)).length);
}

function extreme(list: readonly Value[], sign: 1 | -1): Value {
  const [first, ...rest] = list;
  if (first === undefined) throw new EvaluationError('min/max called on empty list');
  return rest.reduce((best, element) => (compareValues(element, best) * sign > 0 ? element : best), first);
}
