import { type FieldError, forbidden, invalid, unsupported } from './field-error.ts';
import { compilePattern } from './regexp/regexp.ts';
import type { JsonObject } from './schema.ts';

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const UNSUPPORTED = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'];

/** Keywords that are wrong wherever they stand, inside `allOf` and its like too. */
export function keywordErrors(schema: JsonObject, path: string): FieldError[] {
  const errors = UNSUPPORTED.filter(keyword => isGiven(schema[keyword])).map(keyword =>
    forbidden(`${path}.${keyword}`, `${keyword} is not supported`),
  );
  const { type, items, uniqueItems, pattern } = schema;
  if (type === 'null')
    errors.push(forbidden(`${path}.type`, 'type cannot be set to null, use nullable as an alternative'));
  else if (isGiven(type) && !TYPES.includes(String(type))) errors.push(unsupported(`${path}.type`, type, TYPES));
  if (Array.isArray(items)) errors.push(forbidden(`${path}.items`, 'items must be a schema object and not an array'));
  if (uniqueItems === true) {
    errors.push(
      forbidden(
        `${path}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    );
  }
  if (typeof pattern === 'string' && pattern !== '') errors.push(...patternErrors(pattern, `${path}.pattern`));
  return errors;
}

function patternErrors(pattern: string, path: string): FieldError[] {
  try {
    compilePattern(pattern);
    return [];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const why = `error parsing regexp: ${error.message}`;
    return [invalid(path, pattern, `must be a valid regular expression, but isn't: ${why}`)];
  }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}
