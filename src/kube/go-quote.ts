/** A text in quotes as Go's `%q` writes it: what cannot be seen is written as a number. */
export function goQuote(text: string): string {
  return `"${Array.from(text.toWellFormed(), escaped).join('')}"`;
}

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};
/** What Go calls printable: of all spaces only the ordinary one. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

function escaped(character: string): string {
  const short = SHORT[character];
  if (short !== undefined) return short;
  if (PRINTABLE.test(character)) return character;
  const code = character.codePointAt(0) as number;
  const hex = (digits: number) => code.toString(16).padStart(digits, '0');
  if (code < 0x20 || code === 0x7f) return `\\x${hex(2)}`;
  return code < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`;
}
