import { type FieldError, forbidden, unsupported } from './field-error.ts';
import type { JsonObject } from './schema.ts';

const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const UNSUPPORTED = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'];

/** Keywords that are wrong wherever they stand, inside `allOf` and its like too. */
export function keywordErrors(schema: JsonObject, path: string): FieldError[] {
  const errors = UNSUPPORTED.filter(keyword => isGiven(schema[keyword])).map(keyword =>
    forbidden(`${path}.${keyword}`, `${keyword} is not supported`),
  );
  const { type, items, uniqueItems } = schema;
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
  return errors;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}
