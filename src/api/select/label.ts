import { KubeError } from '../../kube/error.ts';
import { labelValueErrors, qualifiedNameErrors } from './label-name.ts';

export type LabelOperator = 'in' | 'notin' | '=' | '==' | '!=' | 'exists' | '!' | 'gt' | 'lt';

export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Sorted and without duplicates. */
  readonly values: readonly string[];
}

/** All requirements must hold. */
export type LabelQuery = readonly LabelRequirement[];

export const EVERY_LABEL_SET: LabelQuery = [];
/** A value out of no values: no object has that. */
export const NO_LABEL_SET: LabelQuery = [{ key: '', operator: 'in', values: [] }];

/**
 * Reads a label selector: `a=b`, `a==b`, `a!=b`, `a in (b, c)`, `a notin (b)`, `a`, `!a`, `a>1`, `a<1`, joined by commas.
 * Throws `KubeError` 400 for anything else.
 */
export function parseLabelSelector(text: string): LabelQuery {
  const tokens = new Tokens(text);
  const query: LabelRequirement[] = [];
  for (;;) {
    if (tokens.next === END) break;
    if (tokens.next !== '!' && !isWord(tokens.next)) {
      throw refuse(`found '${tokens.next}', expected: !, identifier, or 'end of string'`);
    }
    query.push(parseRequirement(tokens));
    const separator = tokens.take();
    if (separator === END) break;
    if (separator !== ',') throw refuse(`found '${separator}', expected: ',' or 'end of string'`);
    if (tokens.next !== '!' && !isWord(tokens.next))
      throw refuse(`found '${tokens.next}', expected: identifier after ','`);
  }
  return query.sort((a, b) => compare(a.key, b.key));
}

/** Whether a set of labels satisfies every requirement. */
export function matchesLabels(query: LabelQuery, labels: Readonly<Record<string, string>> | undefined): boolean {
  for (const requirement of query) {
    if (!matchesRequirement(requirement, valueOf(labels, requirement.key))) return false;
  }
  return true;
}

/** Writes a query in selector syntax; `parseLabelSelector` reads it back to the same query. */
export function formatLabelQuery(query: LabelQuery): string {
  return query.map(formatRequirement).join(',');
}

/** Checks key, operator and values together. Throws `KubeError` 400 naming everything that is wrong. */
export function labelRequirement(key: string, operator: LabelOperator, values: readonly string[]): LabelRequirement {
  const errors = requirementErrors(key, operator, values);
  if (errors.length > 0) throw refuse(errors.length === 1 ? (errors[0] as string) : `[${errors.join(', ')}]`);
  return { key, operator, values: [...new Set(values)].sort(compare) };
}

function requirementErrors(key: string, operator: LabelOperator, values: readonly string[]): string[] {
  const errors: string[] = [];
  const keyErrors = qualifiedNameErrors(key);
  if (keyErrors.length > 0) errors.push(invalid('key', key, keyErrors.join('; ')));
  const valuesText = `[${values.map(value => JSON.stringify(value)).join(',')}]`;
  const wrongCount = (rule: string) => errors.push(`values: Invalid value: ${valuesText}: ${rule}`);
  switch (operator) {
    case 'in':
    case 'notin':
      if (values.length === 0) wrongCount("for 'in', 'notin' operators, values set can't be empty");
      break;
    case '=':
    case '==':
    case '!=':
      if (values.length !== 1) wrongCount('exact-match compatibility requires one single value');
      break;
    case 'exists':
    case '!':
      if (values.length > 0) wrongCount('values set must be empty for exists and does not exist');
      break;
    case 'gt':
    case 'lt':
      if (values.length !== 1) wrongCount("for 'Gt', 'Lt' operators, exactly one value is required");
      values.forEach((value, index) => {
        if (integerOf(value) !== undefined) return;
        errors.push(invalid(`values[${index}]`, value, "for 'Gt', 'Lt' operators, the value must be an integer"));
      });
  }
  values.forEach((value, index) => {
    const valueErrors = labelValueErrors(value);
    if (valueErrors.length > 0) errors.push(invalid(`values[${index}][${key}]`, value, valueErrors.join('; ')));
  });
  return errors;
}

function matchesRequirement({ operator, values }: LabelRequirement, value: string | undefined): boolean {
  switch (operator) {
    case 'in':
    case '=':
    case '==':
      return value !== undefined && values.includes(value);
    case 'notin':
    case '!=':
      return value === undefined || !values.includes(value);
    case 'exists':
      return value !== undefined;
    case '!':
      return value === undefined;
    default: {
      const [found, wanted] = [integerOf(value), integerOf(values[0])];
      if (found === undefined || wanted === undefined) return false;
      return operator === 'gt' ? found > wanted : found < wanted;
    }
  }
}

function formatRequirement({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'exists':
      return key;
    case '!':
      return `!${key}`;
    case 'in':
    case 'notin':
      return `${key} ${operator} (${values.join(',')})`;
    case 'gt':
      return `${key}>${values[0]}`;
    case 'lt':
      return `${key}<${values[0]}`;
    default:
      return `${key}${operator}${values[0]}`;
  }
}

/** Labels come from JSON: only own properties count, so that `constructor` is not a label of every object. */
function valueOf(labels: Readonly<Record<string, string>> | undefined, key: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}

const END = '';
const SYMBOLS = new Set(['!=', '==', '=', '!', '(', ')', ',', '<', '>', END]);
const OPERATORS: Readonly<Record<string, LabelOperator>> = {
  in: 'in',
  notin: 'notin',
  '=': '=',
  '==': '==',
  '!=': '!=',
  '>': 'gt',
  '<': 'lt',
};

class Tokens {
  readonly #tokens: readonly string[];
  #position = 0;

  constructor(text: string) {
    this.#tokens = text.match(/!=|==|[=!(),<>]|[^ \t\r\n=!(),<>]+/g) ?? [];
  }

  get next(): string {
    return this.#tokens[this.#position] ?? END;
  }

  take(): string {
    const token = this.next;
    this.#position += 1;
    return token;
  }
}

function isWord(token: string): boolean {
  return !SYMBOLS.has(token);
}

function parseRequirement(tokens: Tokens): LabelRequirement {
  try {
    const negated = tokens.next === '!';
    if (negated) tokens.take();
    const key = parseKey(tokens);
    if (negated) return labelRequirement(key, '!', []);
    if (tokens.next === END || tokens.next === ',') return labelRequirement(key, 'exists', []);
    const operator = parseOperator(tokens);
    const values = operator === 'in' || operator === 'notin' ? parseValues(tokens) : [parseExactValue(tokens)];
    return labelRequirement(key, operator, values);
  } catch (error) {
    throw error instanceof KubeError ? refuse(`unable to parse requirement: ${error.message}`) : error;
  }
}

function parseKey(tokens: Tokens): string {
  const key = tokens.take();
  if (!isWord(key)) throw refuse(`found '${key}', expected: identifier`);
  const errors = qualifiedNameErrors(key);
  // A selector in a URL has no field path, and that is what the real API prints for it.
  if (errors.length > 0) throw refuse(invalid('<nil>', key, errors.join('; ')));
  return key;
}

function parseOperator(tokens: Tokens): LabelOperator {
  const token = tokens.take();
  const operator = Object.hasOwn(OPERATORS, token) ? OPERATORS[token] : undefined;
  if (operator === undefined) throw refuse(`found '${token}', expected: in, notin, =, ==, !=, gt, lt`);
  return operator;
}

/** `(a, b)`; an empty place between commas or parentheses is the empty string. */
function parseValues(tokens: Tokens): string[] {
  const opening = tokens.take();
  if (opening !== '(') throw refuse(`found '${opening}' expected: '('`);
  const values: string[] = [];
  for (;;) {
    const isFilled = isWord(tokens.next);
    values.push(isFilled ? tokens.take() : '');
    const separator = tokens.take();
    if (separator === ')') return values;
    if (separator === ',') continue;
    const expected = isFilled ? "',' or ')'" : values.length === 1 ? "',', ')' or identifier" : "',', or identifier";
    throw refuse(`found '${separator}', expected: ${expected}`);
  }
}

function parseExactValue(tokens: Tokens): string {
  if (tokens.next === END || tokens.next === ',') return '';
  const value = tokens.take();
  if (!isWord(value)) throw refuse(`found '${value}', expected: identifier`);
  return value;
}

/** What Go's strconv.ParseInt accepts for 64 bits. */
function integerOf(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?\d{1,30}$/.test(text)) return undefined;
  const integer = BigInt(text.replace(/^\+/, ''));
  return BigInt.asIntN(64, integer) === integer ? integer : undefined;
}

function invalid(path: string, value: string, rule: string): string {
  return `${path}: Invalid value: ${JSON.stringify(value)}: ${rule}`;
}

function refuse(message: string): KubeError {
  return new KubeError(400, 'BadRequest', message);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
