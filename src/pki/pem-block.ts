/** One PEM block, or (not `ok`) a stretch of text that looks like one and is not. */
export type PemBlock = Candidate & {
  /** Where it begins, counted from 1. */
  readonly line: number;
};

/**
 * Finds PEM blocks the way Go's encoding/pem does: an END line, and the last BEGIN line before it; blocks start and end on
 * a line of their own; both labels are equal; CRLF, trailing blanks, and blanks in the base64 are fine. Everything else is
 * passed over. Reads the text once, so that hostile text costs no more than its length.
 */
export function* pemBlocks(text: string): Generator<PemBlock> {
  const lineOf = lineCounter(text);
  let start: number | undefined = 0;
  while (start !== undefined) {
    const end = text.indexOf(END, start);
    if (end < 0) return;
    const before = text.slice(start, end);
    const begin = before.lastIndexOf(BEGIN);
    if (begin < 0 || (begin > 0 && before[begin - 1] !== '\n')) {
      yield { ok: false, type: '', line: lineOf(end + 1) };
      start = end + END.length;
      continue;
    }
    const line = lineOf(start + begin);
    const candidate = readCandidate(text, start + begin + BEGIN.length, end);
    yield { ...candidate.block, line };
    start = candidate.next;
  }
}

/** What stands between a BEGIN line, whose label starts at `labelAt`, and the END line after `end`; where to read on, if anywhere. */
function readCandidate(text: string, labelAt: number, end: number): { block: Candidate; next: number | undefined } {
  const afterEnd = end + END.length;
  const typeLine = lineAt(text, labelAt);
  if (!typeLine.text.endsWith(DASHES)) return { block: { ok: false, type: '' }, next: afterEnd };
  const type = typeLine.text.slice(0, -DASHES.length);
  const malformed = { ok: false, type } as const;
  const body = skipHeaders(text, typeLine.next);
  // Header lines to the end of the text or over the END line: nothing after this can be a block.
  if (body === undefined || body > afterEnd) return { block: malformed, next: undefined };
  const hasHeaders = body > typeLine.next;
  if (hasHeaders && body > end) return { block: malformed, next: afterEnd };
  const next = endOfBlock(text, afterEnd, type);
  const bytes = next === undefined ? undefined : decodeBase64(text.slice(body, end));
  if (!bytes) return { block: malformed, next: afterEnd };
  return { block: { ok: true, type, hasHeaders, bytes }, next };
}

type Candidate =
  | { readonly ok: true; readonly type: string; readonly hasHeaders: boolean; readonly bytes: Buffer }
  | { readonly ok: false; readonly type: string };

/** Encodes one block: base64 in lines of 64 characters, no header, no blank line (spec 10, P-1). */
export function encodePem(type: string, der: Buffer): string {
  const base64 = der.toString('base64');
  let lines = '';
  for (let at = 0; at < base64.length; at += LINE) lines += `${base64.slice(at, at + LINE)}\n`;
  return `${BEGIN}${type}${DASHES}\n${lines}-----END ${type}${DASHES}\n`;
}

const BEGIN = '-----BEGIN ';
const END = '\n-----END ';
const DASHES = '-----';
const LINE = 64;

/** The line at `from` without its end and trailing blanks, and where the next one starts. */
function lineAt(text: string, from: number): { text: string; next: number } {
  const newline = text.indexOf('\n', from);
  if (newline < 0) return { text: withoutTrailingBlanks(text.slice(from)), next: text.length };
  const end = newline > from && text[newline - 1] === '\r' ? newline - 1 : newline;
  return { text: withoutTrailingBlanks(text.slice(from, end)), next: newline + 1 };
}

function withoutTrailingBlanks(line: string): string {
  let end = line.length;
  while (end > 0 && (line[end - 1] === ' ' || line[end - 1] === '\t')) end--;
  return line.slice(0, end);
}

/** Where the first line without a colon starts, undefined if there is none. */
function skipHeaders(text: string, from: number): number | undefined {
  let at = from;
  while (at < text.length) {
    const line = lineAt(text, at);
    if (!line.text.includes(':')) return at;
    at = line.next;
  }
  return undefined;
}

/** Where the line after the END line starts, undefined unless that line ends in the same label and nothing else. */
function endOfBlock(text: string, afterEnd: number, type: string): number | undefined {
  const label = `${type}${DASHES}`;
  if (!text.startsWith(label, afterEnd)) return undefined;
  const rest = lineAt(text, afterEnd + label.length);
  return rest.text === '' ? rest.next : undefined;
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Strict base64 between blanks and line ends; `Buffer.from` alone would take anything. */
function decodeBase64(text: string): Buffer | undefined {
  const digits = text.replaceAll(/[ \t\r\n]/g, '');
  return digits.length % 4 === 0 && BASE64.test(digits) ? Buffer.from(digits, 'base64') : undefined;
}

/** Numbers lines from 1; to be asked with ascending positions only, so that it counts every line end once. */
function lineCounter(text: string): (position: number) => number {
  let line = 1;
  let at = 0;
  return position => {
    for (let newline = text.indexOf('\n', at); newline >= 0 && newline < position; newline = text.indexOf('\n', at)) {
      line++;
      at = newline + 1;
    }
    return line;
  };
}
