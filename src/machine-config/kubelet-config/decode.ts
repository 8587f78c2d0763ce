import { DecodeError, kindOf, mismatch, type Where } from './decode-error.ts';
import { type GoField, type GoType, goType } from './go-type.ts';
import { ownJson } from './own-json.ts';

/** The fields that are set, by their names. A field that is no pointer and has its type's zero value is not. */
export type KubeletConfiguration = Record<string, unknown>;

export const KUBELET_CONFIGURATION = goType('v1beta1.KubeletConfiguration');

/**
 * Reads a kubelet's configuration by its types, as the kubelet and machine-config-operator do. Throws `DecodeError`: the first that a
 * type which reads itself has, else the first of all, which is the one that Go tells.
 */
export function decodeKubeletConfiguration(value: unknown): KubeletConfiguration {
  const problems: DecodeError[] = [];
  const result = decoded(KUBELET_CONFIGURATION, value, undefined, { where: undefined, problems });
  if (problems[0] !== undefined) throw problems[0];
  return result as KubeletConfiguration;
}

interface Reading {
  readonly where: Where | undefined;
  /** What is told in the end. */
  readonly problems: DecodeError[];
}

/** `before` is what another spelling of the same field said. */
function decoded(type: GoType, value: unknown, before: unknown, reading: Reading): unknown {
  const mismatched = mismatch(reading.where);
  if (type.kind === 'self') return ownJson(type.name).read(value, mismatched);
  if (type.kind === 'pointer') return value === null ? undefined : decoded(type.of, value, before, reading);
  if (value === null) return type.kind === 'slice' || type.kind === 'map' ? undefined : before;
  const refused = (problem: DecodeError) => {
    reading.problems.push(problem);
    return before;
  };
  if (kindOf(value) !== JSON_KINDS[type.kind]) return refused(mismatched(kindOf(value), type.name));
  switch (type.kind) {
    case 'struct':
      return fieldsOf(type.name, type.fields, value as Record<string, unknown>, before, reading);
    case 'map': {
      const entries = Object.entries(value as object).map(([key, each]) => [key, element(type.of, each, reading)]);
      return { ...(before as object | undefined), ...Object.fromEntries(entries) };
    }
    case 'slice':
      return (value as unknown[]).map(each => element(type.of, each, reading));
    case 'integer': {
      const number = value as number;
      if (!Number.isInteger(number) || BigInt(number) < type.least || BigInt(number) > type.most)
        return refused(mismatched(`number ${number}`, type.name));
      if (!Number.isSafeInteger(number)) return refused(new DecodeError(`the number ${number} cannot be kept exactly`));
      return number;
    }
    default:
      return value;
  }
}

const JSON_KINDS = {
  struct: 'object',
  map: 'object',
  slice: 'array',
  integer: 'number',
  float64: 'number',
  bool: 'bool',
  string: 'string',
} as const;

function fieldsOf(
  typeName: string,
  fields: ReadonlyMap<string, GoField>,
  value: Record<string, unknown>,
  before: unknown,
  { where, problems }: Reading,
): KubeletConfiguration {
  const struct = typeName.slice(typeName.lastIndexOf('.') + 1);
  const result: KubeletConfiguration = { ...(before as KubeletConfiguration | undefined) };
  for (const [key, each] of Object.entries(value)) {
    const field = fields.get(key) ?? fieldIgnoringCase(fields, key);
    if (field === undefined) continue;
    const inside = { struct, path: [...(where?.path ?? []), field.name] };
    const read = decoded(field.type, each, result[field.name], { where: inside, problems });
    if (read === undefined || read === zeroOf(field.type)) delete result[field.name];
    else result[field.name] = read;
  }
  return result;
}

/** Go takes a field by any spelling that differs in case only. */
function fieldIgnoringCase(fields: ReadonlyMap<string, GoField>, key: string): GoField | undefined {
  const folded = (name: string) => name.toLowerCase().replaceAll('ſ', 's');
  const wanted = folded(key);
  return fields.values().find(({ name }) => folded(name) === wanted);
}

/** In lists and mappings nothing is a value too. */
function element(type: GoType, value: unknown, reading: Reading): unknown {
  return decoded(type, value, undefined, reading) ?? zeroOf(type) ?? (type.kind === 'struct' ? {} : null);
}

/** What a value is when nothing was said; undefined where that is no value. */
export function zeroOf(type: GoType): unknown {
  if (type.kind === 'self') return ownJson(type.name).zero;
  if (type.kind === 'string') return '';
  if (type.kind === 'bool') return false;
  return type.kind === 'integer' || type.kind === 'float64' ? 0 : undefined;
}
