import { MAX_STRICT_ERRORS } from './unknown.ts';

/**
 * Paths of fields that one object of a JSON text has twice: `spec.foo`. `JSON.parse` keeps the last silently. The text
 * must have been parsed without error before. Does not recurse, so depth is no danger.
 */
export function duplicateFields(jsonText: string): string[] {
  const found: string[] = [];
  const levels: Level[] = [];
  const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs;
  let pendingKey: string | undefined;
  for (let match = tokens.exec(jsonText); match !== null; match = tokens.exec(jsonText)) {
    const token = match[0];
    const level = levels.at(-1);
    switch (token) {
      case '{':
        levels.push({ fields: new Set(), step: stepOf(level), index: -1, key: '' });
        pendingKey = undefined;
        break;
      case '[':
        levels.push({ fields: undefined, step: stepOf(level), index: 0, key: '' });
        break;
      case '}':
      case ']':
        levels.pop();
        break;
      case ',':
        if (level?.fields === undefined && level !== undefined) level.index++;
        pendingKey = undefined;
        break;
      case ':':
        if (level?.fields !== undefined && pendingKey !== undefined) {
          level.key = pendingKey;
          if (level.fields.has(pendingKey) && found.length < MAX_STRICT_ERRORS) {
            const path = pathOf(levels, pendingKey);
            if (!found.includes(path)) found.push(path);
          }
          level.fields.add(pendingKey);
        }
        pendingKey = undefined;
        break;
      default:
        if (level?.fields !== undefined) pendingKey = JSON.parse(token) as string;
    }
  }
  return found;
}

interface Level {
  /** Absent for a list. */
  readonly fields: Set<string> | undefined;
  /** How the parent leads here: `.spec` or `[0]`. */
  readonly step: string;
  index: number;
  key: string;
}

function stepOf(parent: Level | undefined): string {
  if (parent === undefined) return '';
  return parent.fields === undefined ? `[${parent.index}]` : `.${parent.key}`;
}

function pathOf(levels: readonly Level[], field: string): string {
  return `${levels.map(level => level.step).join('')}.${field}`.slice(1);
}
