import { isObject, tooDeep } from '../schema/json.ts';

/**
 * Numbers that do not survive being read: integers beyond 2^53 lose digits, those beyond the range of a double become
 * infinite, which JSON has no word for.
 */

/** The first such number in a JSON text, as it is written. `value` is what the text has been parsed to. */
export function inexactInJson(text: string, value: unknown): string | undefined {
  if (!SUSPICIOUS.test(text) || tooDeep(value)) return undefined;
  let found: string | undefined;
  JSON.parse(text, (_field, part: unknown, context?: { source?: string }) => {
    if (typeof part === 'number') found ??= inexact(part, context?.source ?? '');
    return undefined;
  });
  return found;
}

/** Few texts have these; looking at every number of every text would take three times as long as parsing it. */
const SUSPICIOUS = /[:,[\s]-?\d(?:\d{15}|[\d.]*[eE]\+?\d{3})/;

function inexact(number: number, source: string): string | undefined {
  const lost = !Number.isFinite(number) || (!Number.isSafeInteger(number) && /^-?\d+$/.test(source));
  return lost && String(number) !== source ? shortened(source) : undefined;
}

/** The same for a value whose text is not at hand: every number of that size is suspected. */
export function inexactInValue(value: unknown): string | undefined {
  return tooDeep(value) ? undefined : firstOutsized(value);
}

function firstOutsized(value: unknown): string | undefined {
  if (typeof value === 'number') return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? undefined : String(value);
  const parts: readonly unknown[] = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  for (const part of parts) {
    const found = firstOutsized(part);
    if (found !== undefined) return found;
  }
  return undefined;
}

const LONGEST_SHOWN = 40;

function shortened(source: string): string {
  return source.length > LONGEST_SHOWN ? `${source.slice(0, LONGEST_SHOWN)}...` : source;
}
