import { KubeError } from '../../kube/error.ts';
import type { KubeObject } from '../../kube/resource.ts';
import type { SelectableFields } from './selectable.ts';

export interface FieldRequirement {
  readonly path: string;
  readonly operator: '=' | '!=';
  readonly value: string;
  readonly read: (object: KubeObject) => string;
}

/** All requirements must hold. */
export type FieldQuery = readonly FieldRequirement[];

/**
 * Reads a field selector: `path=value`, `path==value`, `path!=value`, joined by commas; `\`, `,` and `=` in a value are
 * escaped by a backslash. Throws `KubeError` 400 for anything else and for a field the kind cannot be selected by.
 */
export function parseFieldSelector(text: string, selectable: SelectableFields): FieldQuery {
  const requirements: FieldRequirement[] = [];
  for (const term of splitTerms(text)) {
    if (term === '') continue;
    const match = /^(.*?)(!=|==|=)(.*)$/s.exec(term);
    if (match === null) throw refuse(`invalid selector: '${text}'; can't understand '${term}'`);
    const [, path, operator, escaped] = match as unknown as [string, string, string, string];
    const value = unescapeValue(escaped);
    const read = selectable.read.get(path);
    if (read === undefined) throw refuse(selectable.refuse(path));
    requirements.push({ path, operator: operator === '!=' ? '!=' : '=', value, read });
  }
  return requirements;
}

/** Whether an object satisfies every requirement. A field that is absent reads as the empty string. */
export function matchesFields(query: FieldQuery, object: KubeObject): boolean {
  for (const { operator, value, read } of query) {
    if ((read(object) === value) !== (operator === '=')) return false;
  }
  return true;
}

/** The one value of a field that the query allows, if it says so: lets a list go straight to a key. */
export function exactField(query: FieldQuery, path: string): string | undefined {
  return query.find(requirement => requirement.path === path && requirement.operator === '=')?.value;
}

/**
 * The one name a field selector asks for, the empty text where it asks for none: who may read an object may list and watch it by
 * name. What cannot be read is refused later, by whoever reads it.
 */
export function selectedName(fieldSelector: string | undefined): string {
  for (const term of splitTerms(fieldSelector ?? '')) {
    const escaped = /^metadata\.name==?([^=].*)$/s.exec(term)?.[1];
    if (escaped !== undefined && !/[\\=]/.test(escaped)) return escaped;
  }
  return '';
}

/** Splits at commas that no backslash escapes; the escapes stay. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let term = '';
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] as string;
    if (character === ',') {
      terms.push(term);
      term = '';
    } else if (character === '\\') {
      term += text.slice(at, at + 2);
      at += 1;
    } else {
      term += character;
    }
  }
  return [...terms, term];
}

function unescapeValue(text: string): string {
  let value = '';
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] as string;
    if (character === '\\') {
      const escaped = text.slice(at, at + 2);
      if (!/^\\[\\,=]$/.test(escaped)) throw refuse(`invalid field selector: invalid escape sequence: ${escaped}`);
      value += escaped[1];
      at += 1;
    } else if (character === '=') {
      // The real API prints the character as its code point; 61 is `=`.
      throw refuse('invalid field selector: unescaped character in value: 61');
    } else {
      value += character;
    }
  }
  return value;
}

function refuse(message: string): KubeError {
  return new KubeError(400, 'BadRequest', message);
}
