/** JSON that does not fit a type; the message is that of Go's encoding/json. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

/** The innermost struct that is being read, and the names of the fields on the way. */
export interface Where {
  readonly struct: string;
  readonly path: readonly string[];
}

export type Mismatch = (found: string, type: string) => DecodeError;

export function mismatch(where: Where | undefined): Mismatch {
  const place = where === undefined ? 'value' : `struct field ${where.struct}.${where.path.join('.')}`;
  return (found, type) => new DecodeError(`json: cannot unmarshal ${found} into Go ${place} of type ${type}`);
}

/** What Go calls a value of JSON. */
export function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}
