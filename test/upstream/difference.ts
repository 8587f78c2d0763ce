import type { Difference } from './judged.ts';

/** What a function of ours did: a value, a refusal it is meant to give, or a crash. */
export type Attempt<T> =
  | { readonly kind: 'value'; readonly value: T; readonly error?: undefined }
  | { readonly kind: 'refusal' | 'crash'; readonly error: string; readonly value?: undefined };

/** Errors that say something about the input. All others are mistakes of ours. */
const REFUSALS =
  /^(?:Ignition|Render|RegistriesConf|Registries|KubeletConfig|ContainerRuntimeConfig|MaxUnavailable|Selector|ManagedName)Error$/;

export function attempt<T>(work: () => T): Attempt<T> {
  try {
    return { kind: 'value', value: work() };
  } catch (error) {
    const { name, message } = error as Error;
    return { kind: REFUSALS.test(name) ? 'refusal' : 'crash', error: `${name}: ${message}` };
  }
}

/** Nothing where both refuse or both accept; what is accepted by both is left to the caller. */
export function verdicts(mine: Attempt<unknown>, refusal: string | undefined, theirs: unknown): Difference[] {
  if (mine.kind === 'crash') return [{ class: `rotunda crashes: ${plain(mine.error)}`, mine: mine.error, theirs }];
  if (mine.kind === 'refusal' && refusal === undefined)
    return [{ class: `upstream accepts, rotunda refuses: ${plain(mine.error)}`, mine: mine.error, theirs }];
  if (mine.kind === 'value' && refusal !== undefined)
    return [{ class: `rotunda accepts, upstream refuses: ${plain(refusal)}`, mine: mine.value, theirs: refusal }];
  return [];
}

/** The same value with its keys in order. `lenient`: without members that hold nothing. */
export function canonical(value: unknown, lenient = false): unknown {
  if (Array.isArray(value)) return value.map(item => canonical(item, lenient));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value)
    .map(([key, part]) => [key, canonical(part, lenient)] as const)
    .filter(([, part]) => part !== undefined && !(lenient && isEmpty(part)))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries);
}

const isEmpty = (value: unknown): boolean =>
  value === null || (typeof value === 'object' && Object.keys(value).length === 0);

export function same(a: unknown, b: unknown, lenient = false): boolean {
  return JSON.stringify(canonical(a, lenient)) === JSON.stringify(canonical(b, lenient));
}

/** The two values where they are not the same. */
export function unlike(what: string, mine: unknown, theirs: unknown, lenient = false): Difference[] {
  return same(mine, theirs, lenient) ? [] : [{ class: what, mine, theirs }];
}

/** The two values where they are not the same, named after the first place at which they differ. */
export function unlikeAt(what: string, mine: unknown, theirs: unknown, lenient = false): Difference[] {
  const where = () => firstDifference(canonical(mine, lenient), canonical(theirs, lenient));
  return same(mine, theirs, lenient) ? [] : [{ class: `${what} at ${where()}`, mine, theirs }];
}

/** The first place at which two canonical values differ. */
export function firstDifference(a: unknown, b: unknown, path = ''): string {
  if (JSON.stringify(a) === JSON.stringify(b)) return '';
  const areBoth = typeof a === 'object' && typeof b === 'object' && a !== null && b !== null;
  if (!areBoth || Array.isArray(a) !== Array.isArray(b)) return path || '.';
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  for (const key of [...new Set([...Object.keys(left), ...Object.keys(right)])].sort()) {
    const found = firstDifference(left[key], right[key], `${path}.${Array.isArray(a) ? '#' : key}`);
    if (found !== '') return found;
  }
  return `${path} (order)`;
}

/** A text without what differs from input to input. */
export function plain(text: string | undefined): string {
  return (text ?? '')
    .replace(/\n/g, ' ')
    .replace(/"[^"]*"/g, '"…"')
    .replace(/\$\.[\w.]+/g, '$')
    .replace(/\d+/g, '#')
    .replace(/\[#\]/g, '[]')
    .replace(/machineconfig \S+: /, '')
    .slice(0, 160);
}

export const clone = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
