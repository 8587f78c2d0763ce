/** How a text is written in YAML. */
export type Style = 'plain' | 'single' | 'double' | 'literal';

/** The style that Go's yaml.v2 gives to a text: the plainest in which it would be read as the same text. */
export function styleOf(text: string): Style {
  const isBlankBeforeBreak = / [\n\u2028\u2029]/.test(text);
  const isSpecial = UNPRINTABLE.test(text) || isBlankBeforeBreak;
  if (text.includes('\n')) return isSpecial || text.endsWith(' ') ? 'double' : 'literal';
  if (isOtherThanText(text)) return 'double';
  const isSingle = !isSpecial && !/[\u2028\u2029] /.test(text);
  const isPlain = isSingle && !/^ | $/.test(text) && !BREAK.test(text) && !looksLikeSyntax(text);
  return isPlain ? 'plain' : isSingle ? 'single' : 'double';
}

/** What can be read as it stands; neither tabs nor other controls nor what is beyond the basic plane. */
export const UNPRINTABLE = /[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
export const BREAK = /[\n\u2028\u2029]/;

function looksLikeSyntax(text: string): boolean {
  return (
    /^(?:---|\.\.\.)/.test(text) ||
    /^[#,[\]{}&*!|>'"%@`]/.test(text) ||
    /^[?-](?: |$)/.test(text) ||
    /:(?: |$)/.test(text) ||
    / #/.test(text)
  );
}

const WORDS = new Set([
  ...['y', 'yes', 'true', 'on', 'n', 'no', 'false', 'off', 'null', '.inf', '+.inf', '-.inf'].flatMap(word => [
    word,
    word.toUpperCase(),
    word.replace(/[a-z]/, first => first.toUpperCase()),
  ]),
  '',
  '~',
  '.nan',
  '.NaN',
  '.NAN',
]);

/** Whether it would be read as a number, a truth, a time or nothing if it stood there without quotes. */
function isOtherThanText(text: string): boolean {
  if (WORDS.has(text)) return true;
  if (text.startsWith('.')) return isFloat(text);
  if (!/^[-+0-9]/.test(text)) return false;
  const digits = text.replaceAll('_', '');
  return isTime(text) || isInteger(digits) || isFloat(digits) || isBase60(text);
}

function isFloat(text: string): boolean {
  return /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/.test(text) && Number.isFinite(Number(text));
}

function isInteger(text: string): boolean {
  if (/^0b[-+][01]+$/.test(text)) return true;
  const [, sign = '', number = ''] =
    /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)$/.exec(text) ?? [];
  if (number === '') return false;
  const value = BigInt(/^0[0-7]+$/.test(number) ? `0o${number}` : number);
  return sign === '-' ? value <= 2n ** 63n : sign === '+' ? value < 2n ** 63n : value < 2n ** 64n;
}

function isBase60(text: string): boolean {
  return /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/.test(text);
}

function isTime(text: string): boolean {
  const [date, year, month, day, rest = ''] = /^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(.*)$/s.exec(text) ?? [];
  if (date === undefined) return false;
  const daysInMonth = new Date(Date.UTC(2000 + (Number(year) % 400), Number(month), 0)).getUTCDate();
  if (Number(month) < 1 || Number(month) > 12 || Number(day) < 1 || Number(day) > daysInMonth) return false;
  if (rest === '') return true;
  const [, separator, hour, minute, second, zone = '', zoneHours = 0, zoneMinutes = 0] =
    /^([tT ])([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(Z|[-+]([0-9]{2}):([0-9]{2}))?$/.exec(rest) ?? [];
  if (separator === undefined || (separator === ' ') !== (zone === '')) return false;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return false;
  return Number(zoneHours) <= 24 && Number(zoneMinutes) <= 60;
}
