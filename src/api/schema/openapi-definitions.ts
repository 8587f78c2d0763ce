import { KEYWORDS } from './keywords.ts';
import type { Schema } from './schema.ts';

/** The two versions of OpenAPI differ in where definitions live and in how a field may add to a type it refers to. */
export type Dialect = 'v2' | 'v3';

const PREFIX: Readonly<Record<Dialect, string>> = { v2: '#/definitions/', v3: '#/components/schemas/' };

/** Schemas as they are published: types by name, each once, the rest in place. */
export class Definitions {
  readonly #dialect: Dialect;
  readonly #byName = new Map<string, unknown>();

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** All definitions so far, sorted by name. */
  all(): Record<string, unknown> {
    return Object.fromEntries([...this.#byName].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Publishes a schema under a name, its own one if it is a built-in type, and returns a reference to it. */
  refer(schema: Schema, name: string): { $ref: string } {
    const definition = schema.builtin;
    const known = definition?.name ?? name;
    if (!this.#byName.has(known)) {
      this.#byName.set(known, undefined);
      this.#byName.set(known, this.#inline(definition?.schema ?? schema));
    }
    return { $ref: PREFIX[this.#dialect] + known };
  }

  /** A schema at the place where it is used. */
  publish(schema: Schema): unknown {
    if (schema.builtin === undefined) return this.#inline(schema);
    const reference = this.refer(schema, schema.builtin.name);
    const extra = additions(schema, schema.builtin.schema);
    if (Object.keys(extra).length === 0) return reference;
    return this.#dialect === 'v2' ? { ...extra, ...reference } : { ...extra, allOf: [reference] };
  }

  #inline(schema: Schema): unknown {
    const builtin = schema.builtin !== undefined;
    const result: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === 'builtin' || (builtin && UNPUBLISHED.has(keyword))) continue;
      result[keyword] = this.#keyword(keyword, value);
    }
    if (builtin && schema.format === 'quantity') delete result['format'];
    return this.#dialect === 'v2' ? forV2(schema, result) : result;
  }

  #keyword(keyword: string, value: unknown): unknown {
    switch (KEYWORDS[keyword as keyof typeof KEYWORDS]) {
      case 'schema':
        return this.publish(value as Schema);
      case 'schema or boolean':
        return typeof value === 'boolean' ? value : this.publish(value as Schema);
      case 'schemas':
        return (value as readonly Schema[]).map(part => this.publish(part));
      case 'schemas by name':
        return Object.fromEntries(
          Object.entries(value as Record<string, Schema>).map(([name, part]) => [name, this.publish(part)]),
        );
      default:
        return value;
    }
  }
}

/** How we say what Go types do by themselves. */
const UNPUBLISHED: ReadonlySet<string> = new Set([
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-int-or-string',
]);

/** What a field says beyond the type it refers to. */
function additions(use: Schema, type: Schema): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(use).filter(
      ([keyword, value]) =>
        keyword !== 'builtin' && keyword !== 'properties' && type[keyword as keyof Schema] !== value,
    ),
  );
}

/** OpenAPI v2 knows neither alternatives nor null: where they occur, the type is left open. */
function forV2(schema: Schema, published: Record<string, unknown>): Record<string, unknown> {
  const { oneOf, anyOf, allOf: _, not: __, nullable, ...rest } = published;
  if (schema.builtin !== undefined && oneOf !== undefined) return { ...rest, type: 'string' };
  const open = nullable === true || oneOf !== undefined || anyOf !== undefined;
  const preserved = schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (!open && !preserved) return rest;
  const { type: ___, items: ____, properties, ...loose } = rest;
  return preserved || properties === undefined ? loose : { ...loose, properties };
}
