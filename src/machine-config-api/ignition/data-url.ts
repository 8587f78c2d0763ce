import { decodeStrictBase64 } from '../base64.ts';

/**
 * Text as a data URL in which every byte is escaped except `A-Z a-z 0-9 - _ . ! ~ * ' ( )` (spec 50, TM-5): what template
 * files and served files become, byte for byte.
 */
export function escapedDataUrl(contents: string | Uint8Array): string {
  const bytes = typeof contents === 'string' ? Buffer.from(contents, 'utf8') : contents;
  let url = 'data:,';
  for (const byte of bytes) url += ESCAPED[byte] as string;
  return url;
}

const ESCAPED: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  return /[A-Za-z0-9\-_.!~*'()]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
});

/** Bytes as a base64 data URL of plain text, as generated configs and the pointer config carry them. */
export function base64DataUrl(contents: string | Uint8Array): string {
  return `data:text/plain;charset=utf-8;base64,${Buffer.from(contents).toString('base64')}`;
}

/** The bytes of a data URL (RFC 2397), undefined for a text that Ignition would not take for one. */
export function decodeDataUrl(url: string): Buffer | undefined {
  const comma = url.startsWith(PREFIX) ? endOfHead(url) : -1;
  if (comma < 0) return undefined;
  const head = url.slice(PREFIX.length, comma);
  const data = url.slice(comma + 1);
  const [, mediaType = '', parameters = '', base64] = HEAD.exec(head) ?? [undefined];
  if (HEAD.exec(head) === null || !isMediaType(mediaType) || !areParameters(parameters)) return undefined;
  if (base64 !== undefined) return BASE64_DATA.test(data) ? decodeStrictBase64(data) : undefined;
  return unescaped(data);
}

const PREFIX = 'data:';
const TOKEN = String.raw`[!#$%&'*+\-.^_\x60{|}~A-Za-z0-9]`;
const HEAD = new RegExp(
  String.raw`^((?:${TOKEN}+\/${TOKEN}*)?)((?:;${TOKEN}+=(?:"(?:[^"\\]|\\[\s\S])*"|${TOKEN}+))*)(;base64)?$`,
);
const MEDIA = /^(?:text|image|audio|video|application|message|multipart|[xX]-)/;
const BASE64_DATA = /^[A-Za-z0-9+/=\n]*$/;
/** Everything a URL may hold: no controls, blanks, delimiters or unwise characters. */
// oxlint-disable-next-line no-control-regex -- controls are what is refused
const URL_TEXT = /^[^\x00-\x20\x7f-\uffff<>#"{}|\\^[\]`]*$/;

/** The first comma that is not inside of a quoted parameter. */
function endOfHead(url: string): number {
  let isQuoted = false;
  for (let at = PREFIX.length; at < url.length; at++) {
    const character = url[at];
    if (character === '\\' && isQuoted) at++;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === ',' && !isQuoted) return at;
  }
  return -1;
}

function isMediaType(type: string): boolean {
  return type === '' || MEDIA.test(type);
}

function areParameters(parameters: string): boolean {
  return !/%(?![0-9A-Fa-f]{2})/.test(parameters);
}

function unescaped(data: string): Buffer | undefined {
  if (!URL_TEXT.test(data)) return undefined;
  if (!data.includes('%')) return Buffer.from(data, 'latin1');
  const bytes = Buffer.alloc(data.length);
  let length = 0;
  for (let at = 0; at < data.length; at++) {
    if (data[at] !== '%') {
      bytes[length++] = data.charCodeAt(at);
      continue;
    }
    const digits = data.slice(at + 1, at + 3);
    if (!/^[0-9A-Fa-f]{2}$/.test(digits)) return undefined;
    bytes[length++] = Number.parseInt(digits, 16);
    at += 2;
  }
  return bytes.subarray(0, length);
}
