import { isIP, isIPv4, isIPv6 } from 'node:net';
import { parseRfc3339 } from '../../kube/time.ts';

/**
 * The formats of strings that the API server checks in custom resources. Others are accepted and ignored. Names are compared without dashes: `date-time` is `datetime`.
 */
export function fitsFormat(format: string, value: string): boolean {
  const check = FORMATS[format.replaceAll('-', '')];
  return check === undefined || check(value);
}

/** The one format of whole numbers that is narrower than what a number can be here. */
export function fitsIntegerFormat(format: string, value: number): boolean {
  return format !== 'int32' || value === (value | 0);
}

const matching =
  (pattern: RegExp) =>
  (value: string): boolean =>
    pattern.test(value);

const uuid = (version: string, variant: string) =>
  matching(new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, 'i'));

/**
 * Each takes time linear in the value, which may be as long as a request: JavaScript's engine backtracks, so no two
 * repetitions that follow each other may match the same characters.
 */
const FORMATS: Readonly<Record<string, ((value: string) => boolean) | undefined>> = {
  bsonobjectid: matching(/^[0-9a-f]{24}$/i),
  byte: isBase64,
  cidr: isCidr,
  creditcard: value => isCardNumber(value.replaceAll(/\D/g, '')),
  date: value => parseRfc3339(`${value}T00:00:00Z`) !== undefined,
  datetime: value => parseRfc3339(value.replace('t', 'T').replace(/z$/, 'Z')) !== undefined,
  duration: isDuration,
  email: matching(/^[^\s@<>()[\]\\,;:"]+@[^\s@<>()[\]\\,;:"]+$/),
  hexcolor: matching(/^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/),
  hostname: isHostname,
  ipv4: isIPv4,
  ipv6: isIPv6,
  isbn: value => isIsbn10(value) || isIsbn13(value),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  mac: matching(/^(?:[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4})$/i),
  password: () => true,
  rgbcolor: isRgbColor,
  ssn: matching(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/),
  uri: value => value.startsWith('/') || URL.canParse(value),
  uuid: uuid('[0-9a-f]', '[0-9a-f]'),
  uuid3: uuid('3', '[0-9a-f]'),
  uuid4: uuid('4', '[89ab]'),
  uuid5: uuid('5', '[89ab]'),
};

/** Base64 of the standard alphabet with padding; line breaks are allowed, as Go's decoder ignores them. */
export function isBase64(value: string): boolean {
  return base64Fault(value) === undefined;
}

/** Where the text stops being base64. */
export function base64Fault(value: string): number | undefined {
  const text = /[\r\n]/.test(value) ? value.replaceAll(/[\r\n]/g, '') : value;
  const wrong = text.search(/[^A-Za-z0-9+/]/);
  if (wrong < 0) return text.length % 4 === 0 ? undefined : text.length - (text.length % 4);
  const padding = text.length - wrong;
  const padded = text.length % 4 === 0 && padding <= 2 && /^={1,2}$/.test(text.slice(wrong));
  return padded ? undefined : wrong;
}

function isCidr(value: string): boolean {
  const slash = value.indexOf('/');
  const address = value.slice(0, slash);
  const bits = value.slice(slash + 1);
  const family = slash < 0 ? 0 : isIP(address);
  return family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}

function isHostname(value: string): boolean {
  const name = value.endsWith('.') ? value.slice(0, -1) : value;
  return (
    name.length > 0 &&
    name.length <= 255 &&
    name.split('.').every(label => label.length <= 63 && /^[A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?$/.test(label))
  );
}

/** A duration as Go writes it (`1h30m`, `1.5s`) or with its unit spelled out (`2 days`). */
function isDuration(value: string): boolean {
  return (
    /^[-+]?0$/.test(value) ||
    /^[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(value) ||
    /^\d+ ?(?:ns|nanos?(?:econds?)?|us|µs|micros?(?:econds?)?|ms|millis?(?:econds?)?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?|hr|d|days?|w|weeks?|wk)$/i.test(
      value,
    )
  );
}

function isRgbColor(value: string): boolean {
  const match = /^rgb\( ?(\d{1,3}) ?, ?(\d{1,3}) ?, ?(\d{1,3}) ?\)$/.exec(value.replaceAll(/\s+/g, ' '));
  return match !== null && match.slice(1).every(part => Number(part) <= 255);
}

function isCardNumber(digits: string): boolean {
  if (
    !/^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/.test(
      digits,
    )
  ) {
    return false;
  }
  const sum = Array.from(digits)
    .reverse()
    .reduce((total, digit, index) => {
      const value = Number(digit) * (index % 2 === 1 ? 2 : 1);
      return total + (value > 9 ? value - 9 : value);
    }, 0);
  return sum % 10 === 0;
}

function isIsbn10(value: string): boolean {
  const text = value.replaceAll(/[- ]/g, '');
  if (!/^\d{9}[\dX]$/.test(text)) return false;
  const sum = Array.from(text).reduce(
    (total, digit, index) => total + (digit === 'X' ? 10 : Number(digit)) * (10 - index),
    0,
  );
  return sum % 11 === 0;
}

function isIsbn13(value: string): boolean {
  const text = value.replaceAll(/[- ]/g, '');
  if (!/^\d{13}$/.test(text)) return false;
  return (
    Array.from(text).reduce((total, digit, index) => total + Number(digit) * (index % 2 === 0 ? 1 : 3), 0) % 10 === 0
  );
}
