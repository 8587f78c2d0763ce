/**
 * What is wrong with the text of a systemd unit, undefined if nothing is. Sections, `Name=value` lines, comments and
 * continued lines, read the way Ignition reads them; names and values are systemd's business.
 */
export function unitProblem(text: string): string | undefined {
  if (text.split(/[\r\n]/).some(line => Buffer.byteLength(line) >= LINE_LIMIT_BYTES))
    return `line too long (max ${LINE_LIMIT_BYTES} bytes)`;
  const cursor = { text, at: 0 };
  let section: string | undefined;
  while (cursor.at < text.length) {
    const character = text[cursor.at] as string;
    if (character === '[') {
      const end = text.indexOf(']', cursor.at);
      if (end < 0) return 'unable to find end of section';
      section = text.slice(cursor.at + 1, end);
      cursor.at = end + 1;
      const garbage = restOfLine(cursor).trim();
      if (garbage !== '') return `found garbage after section name ${section}`;
    } else if (character === '#' || character === ';') {
      skipComment(cursor);
    } else if (section === undefined || /\s/.test(character)) {
      cursor.at++;
    } else {
      const problem = skipOption(cursor);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

/** What systemd reads as one line, its end included (spec 60, 6.5). */
const LINE_LIMIT_BYTES = 2048;

interface Cursor {
  readonly text: string;
  at: number;
}

function skipOption(cursor: Cursor): string | undefined {
  const { text, at } = cursor;
  const name = /^[^=\n\r]*/.exec(text.slice(at))?.[0] ?? '';
  if (text[at + name.length] !== '=') return 'expected an option to have the form Name=value';
  cursor.at = at + name.length + 1;
  for (let line = restOfLine(cursor); line.trim() !== '' && line.endsWith('\\'); line = restOfLine(cursor));
  return undefined;
}

function skipComment(cursor: Cursor): void {
  for (let line = restOfLine(cursor); line.replace(/ $/, '').endsWith('\\'); line = restOfLine(cursor));
}

/** Without its line end; goes past it. */
function restOfLine(cursor: Cursor): string {
  const { text, at } = cursor;
  const newline = text.indexOf('\n', at);
  cursor.at = newline < 0 ? text.length : newline + 1;
  return text.slice(at, newline < 0 ? text.length : newline);
}
