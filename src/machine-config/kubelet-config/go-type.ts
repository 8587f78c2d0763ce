import { KUBELET_TYPES } from './kubelet-types.ts';

/** A Go type as far as reading and writing JSON needs it. */
export type GoType =
  | { readonly kind: 'string' | 'bool' | 'float64'; readonly name: string }
  | { readonly kind: 'integer'; readonly name: string; readonly least: bigint; readonly most: bigint }
  | { readonly kind: 'pointer' | 'slice' | 'map'; readonly name: string; readonly of: GoType }
  | { readonly kind: 'struct'; readonly name: string; readonly fields: ReadonlyMap<string, GoField> }
  /** One that reads itself. */
  | { readonly kind: 'self'; readonly name: string };

export interface GoField {
  readonly name: string;
  readonly type: GoType;
  /** Left out when written, where it says nothing. */
  readonly omitEmpty: boolean;
}

const INTEGERS: Readonly<Record<string, readonly [least: bigint, most: bigint]>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
};

const known = new Map<string, GoType>();

/** The type of this name or expression: `int32`, `[]v1.Taint`, `map[string]string`, `*v1.Duration`. */
export function goType(text: string): GoType {
  const type = known.get(text) ?? typeOf(text, text);
  known.set(text, type);
  return type;
}

function typeOf(text: string, name: string): GoType {
  if (text === 'string' || text === 'bool' || text === 'float64' || text === 'self') return { kind: text, name };
  const [least, most] = (Object.hasOwn(INTEGERS, text) && INTEGERS[text]) || [];
  if (least !== undefined && most !== undefined) return { kind: 'integer', name, least, most };
  if (text.startsWith('*')) return { kind: 'pointer', name, of: goType(text.slice(1)) };
  if (text.startsWith('[]')) return { kind: 'slice', name, of: goType(text.slice(2)) };
  const [, element] = /^map\[[^\]]+\](.+)$/.exec(text) ?? [];
  if (element !== undefined) return { kind: 'map', name, of: goType(element) };
  const definition = Object.hasOwn(KUBELET_TYPES, text) ? KUBELET_TYPES[text] : undefined;
  if (definition === undefined) throw new Error(`the kubelet's configuration has no type ${text}`);
  if (typeof definition === 'string') return typeOf(definition, name);
  const fields = Object.entries(definition).map(([field, tag]): [string, GoField] => {
    const [type = '', option] = tag.split(',');
    return [field, { name: field, type: goType(type), omitEmpty: option === 'omitempty' }];
  });
  return { kind: 'struct', name, fields: new Map(fields) };
}
