import { Budget, BudgetSpent } from '../budget.ts';
import type { FieldError, FieldErrorReason } from '../field-error.ts';
import { entryOf, fieldOf, isObject, sameJson } from '../json.ts';
import { canonicalJson } from '../list-rules.ts';
import type { Schema, ValidationRule } from '../schema.ts';
import { evaluate, MAX_RULE_STEPS, unknownFunctions } from './evaluate.ts';
import { type Expression, parseExpression } from './parse.ts';
import { EvaluationError, Optional, toValue, type Value } from './value.ts';

/** The faults that `x-kubernetes-validations` find. Rules that use functions we do not have are not applied. */
export function ruleErrors(schema: Schema, value: unknown, old: unknown): FieldError[] {
  const errors: FieldError[] = [];
  try {
    check(schema, value, old, { path: '', budget: new Budget(MAX_STEPS) }, errors);
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    errors.push(error.fault);
  }
  return errors;
}

/** Ends the rules of an object: one of them has taken more steps than it may. */
class Stopped extends Error {
  readonly fault: FieldError;
  constructor(fault: FieldError) {
    super(fault.detail);
    this.fault = fault;
  }
}

/** Steps that all rules over one object may take, as on the real server. */
const MAX_STEPS = 10_000_000;

/** What is wrong with the text of a rule; `undefined` when it can be read, whether or not we can apply it. */
export function ruleFault(rule: string): string | undefined {
  try {
    parseExpression(rule);
    return undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return `compilation failed: ERROR: <input>: Syntax error: ${error.message}`;
    throw error;
  }
}

/** The rules in a schema that are not applied, and the functions they use that we do not have. */
export function unappliedRules(schema: Schema): { rule: string; functions: string[] }[] {
  const { properties, items, additionalProperties } = schema;
  const below = [
    ...Object.values(properties ?? {}),
    ...(items === undefined ? [] : [items]),
    ...(typeof additionalProperties === 'object' ? [additionalProperties] : []),
  ];
  const here = (schema['x-kubernetes-validations'] ?? [])
    .map(({ rule }) => ({ rule, functions: [...new Set(missingFunctions(rule))] }))
    .filter(({ functions }) => functions.length > 0);
  return [...here, ...below.flatMap(unappliedRules)];
}

function missingFunctions(rule: string): string[] {
  try {
    return unknownFunctions(parseExpression(rule));
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

/** Where a value is, and what its rules may still cost. */
interface Place {
  readonly path: string;
  readonly budget: Budget;
}

function check(schema: Schema, value: unknown, old: unknown, place: Place, errors: FieldError[]): void {
  if (value === undefined || value === null || !hasRules(schema)) return;
  if (old !== undefined && sameJson(value, old)) return;
  const { path, budget } = place;
  const rules = schema['x-kubernetes-validations'];
  for (const rule of rules ?? []) errors.push(...applied(rule, schema, value, old, place));
  if (Array.isArray(value)) {
    checkElements(schema, value as unknown[], old, place, errors);
  } else if (isObject(value)) {
    const before = isObject(old) ? old : {};
    for (const [field, child] of Object.entries(value)) {
      const { additionalProperties } = schema;
      const known =
        entryOf(schema.properties, field) ??
        (typeof additionalProperties === 'object' ? additionalProperties : undefined);
      if (known !== undefined)
        check(known, child, fieldOf(before, field), { path: path === '' ? field : `${path}.${field}`, budget }, errors);
    }
  }
}

/** Only elements with keys can be told apart in the old list. */
function checkElements(
  schema: Schema,
  list: readonly unknown[],
  old: unknown,
  { path, budget }: Place,
  errors: FieldError[],
): void {
  const { items } = schema;
  if (items === undefined) return;
  const keys = schema['x-kubernetes-list-type'] === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : [];
  const identity = (element: unknown) =>
    canonicalJson(keys.map(key => (isObject(element) ? (fieldOf(element, key) ?? null) : null)));
  const before = new Map(
    keys.length > 0 && Array.isArray(old) ? old.map(element => [identity(element), element as unknown]) : [],
  );
  list.forEach((element, index) => {
    check(items, element, before.get(identity(element)), { path: `${path}[${index}]`, budget }, errors);
  });
}

const WITH_RULES = new WeakMap<Schema, boolean>();

/** Whether there are rules in a schema or below; found once. */
function hasRules(schema: Schema): boolean {
  let known = WITH_RULES.get(schema);
  if (known === undefined) {
    const { properties, items, additionalProperties } = schema;
    known =
      (schema['x-kubernetes-validations']?.length ?? 0) > 0 ||
      (items !== undefined && hasRules(items)) ||
      (typeof additionalProperties === 'object' && hasRules(additionalProperties)) ||
      (schema.builtin === undefined && Object.values(properties ?? {}).some(hasRules));
    WITH_RULES.set(schema, known);
  }
  return known;
}

interface Compiled {
  readonly rule: Expression;
  readonly message: Expression | undefined;
  readonly usesOld: boolean;
}

const COMPILED = new WeakMap<ValidationRule, Compiled | 'not applicable'>();

function compiled(rule: ValidationRule): Compiled | 'not applicable' {
  let known = COMPILED.get(rule);
  if (known === undefined) {
    known = compile(rule);
    COMPILED.set(rule, known);
  }
  return known;
}

function compile({ rule, messageExpression }: ValidationRule): Compiled | 'not applicable' {
  try {
    const expression = parseExpression(rule);
    if (unknownFunctions(expression).length > 0) return 'not applicable';
    const message = messageExpression === undefined ? undefined : parseExpression(messageExpression);
    return { rule: expression, message, usesOld: /\boldSelf\b/.test(rule) };
  } catch (error) {
    if (error instanceof SyntaxError) return 'not applicable';
    throw error;
  }
}

function applied(
  rule: ValidationRule,
  schema: Schema,
  value: unknown,
  old: unknown,
  { path, budget }: Place,
): FieldError[] {
  const expressions = compiled(rule);
  if (expressions === 'not applicable') return [];
  // A rule about a transition has nothing to say when there is none.
  const optionalOld = rule.optionalOldSelf === true;
  if (expressions.usesOld && old === undefined && !optionalOld) return [];
  const scope = new Map<string, Value>([['self', toValue(schema, value)]]);
  if (expressions.usesOld) {
    const before = old === undefined ? undefined : toValue(schema, old);
    scope.set('oldSelf', optionalOld ? new Optional(before) : (before ?? null));
  }
  try {
    if (evaluate(expressions.rule, scope, new Budget(MAX_RULE_STEPS, budget)) === true) return [];
  } catch (error) {
    if (error instanceof BudgetSpent) {
      const what = 'no further validation rules will be run due to call cost exceeds limit for rule';
      throw new Stopped(fault(rule, schema, path, `'${error.message}': ${what}: ${rule.message ?? rule.rule}`));
    }
    if (!(error instanceof EvaluationError)) throw error;
    return [fault(rule, schema, path, `${error.message} evaluating rule: ${rule.message ?? rule.rule}`)];
  }
  return [fault(rule, schema, path, messageOf(rule, expressions.message, scope, budget))];
}

function messageOf(
  rule: ValidationRule,
  expression: Expression | undefined,
  scope: ReadonlyMap<string, Value>,
  budget: Budget,
): string {
  const plain = rule.message ?? `failed rule: ${rule.rule.trim()}`;
  if (expression === undefined) return plain;
  try {
    const text = evaluate(expression, scope, new Budget(MAX_RULE_STEPS, budget));
    return typeof text === 'string' && text.trim() !== '' && !/[\r\n]/.test(text) ? text : plain;
  } catch (error) {
    if (error instanceof EvaluationError || error instanceof BudgetSpent) return plain;
    throw error;
  }
}

function fault(rule: ValidationRule, schema: Schema, path: string, detail: string): FieldError {
  const reason = (rule.reason ?? 'FieldValueInvalid') as FieldErrorReason;
  const place = rule.fieldPath === undefined ? path : `${path}${rule.fieldPath}`.replace(/^\./, '');
  const shown = reason === 'FieldValueInvalid' || reason === 'FieldValueDuplicate';
  return { path: place, reason, detail, ...(shown ? { badValue: schema.type ?? '' } : {}) };
}
