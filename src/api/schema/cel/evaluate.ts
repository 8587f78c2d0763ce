import { Budget } from '../budget.ts';
import { callFunction, callMethod, isKnownFunction, isKnownMethod } from './functions.ts';
import { namedFormat } from './library.ts';
import type { Expression, Operator } from './parse.ts';
import {
  compareValues,
  EvaluationError,
  isList,
  isMap,
  Moment,
  Optional,
  Span,
  sameValue,
  type Value,
} from './value.ts';

/** Steps that one rule may take, as on the real server. */
export const MAX_RULE_STEPS = 1_000_000;

/** What names stand for. */
export type Scope = ReadonlyMap<string, Value>;

/** The value of an expression; throws `EvaluationError` when it has none, `BudgetSpent` when it takes too long. */
export function evaluate(expression: Expression, scope: Scope, budget = new Budget(MAX_RULE_STEPS)): Value {
  return new Evaluation(budget).value(expression, scope);
}

/** Functions and macros in an expression that we do not have. */
export function unknownFunctions(expression: Expression): string[] {
  switch (expression.is) {
    case 'call': {
      const { on, name, args } = expression;
      const known =
        on === undefined
          ? name === 'has' || isKnownFunction(name)
          : isMacro(name) || isKnownMethod(name) || isNamespaced(on, name);
      return [
        ...(known ? [] : [name]),
        ...(on === undefined ? [] : unknownFunctions(on)),
        ...args.flatMap(unknownFunctions),
      ];
    }
    case 'list':
      return expression.elements.flatMap(unknownFunctions);
    case 'map':
      return expression.entries.flat().flatMap(unknownFunctions);
    case 'field':
    case 'unary':
      return unknownFunctions(expression.of);
    case 'index':
      return [...unknownFunctions(expression.of), ...unknownFunctions(expression.index)];
    case 'binary':
      return [...unknownFunctions(expression.left), ...unknownFunctions(expression.right)];
    case 'choice':
      return [expression.condition, expression.yes, expression.no].flatMap(unknownFunctions);
    default:
      return [];
  }
}

/** `optional.of(x)` and `format.dns1123Label()` look like methods of something. */
function isNamespaced(on: Expression, name: string): boolean {
  if (on.is !== 'name') return false;
  return (
    (on.name === 'optional' && (name === 'of' || name === 'none')) ||
    (on.name === 'format' && namedFormat(name) !== undefined)
  );
}

const MACROS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'existsOne', 'map', 'filter']);

function isMacro(name: string): boolean {
  return MACROS.has(name);
}

class Evaluation {
  readonly #budget: Budget;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  value(expression: Expression, scope: Scope): Value {
    this.#budget.spend(1);
    switch (expression.is) {
      case 'literal':
        return expression.value;
      case 'name': {
        const value = scope.get(expression.name);
        if (value === undefined) throw new EvaluationError(`undeclared reference to '${expression.name}'`);
        return value;
      }
      case 'list':
        return expression.elements.map(element => this.value(element, scope));
      case 'map':
        return new Map(
          expression.entries.map(([key, value]) => [keyOf(this.value(key, scope)), this.value(value, scope)]),
        );
      case 'field':
        return this.#field(expression, scope);
      case 'index':
        return this.#index(expression, scope);
      case 'unary':
        return this.#unary(expression, scope);
      case 'binary':
        return this.#binary(expression, scope);
      case 'choice':
        return this.value(isTrue(this.value(expression.condition, scope)) ? expression.yes : expression.no, scope);
      case 'call':
        return this.#call(expression, scope);
    }
  }

  #field({ of, field, optional }: Expression & { is: 'field' }, scope: Scope): Value {
    const object = this.value(of, scope);
    if (object instanceof Optional) {
      return object.value === undefined ? object : new Optional(fieldOf(object.value, field));
    }
    const found = fieldOf(object, field);
    if (optional) return new Optional(found);
    if (found === undefined) throw new EvaluationError(`no such key: ${field}`);
    return found;
  }

  #index({ of, index, optional }: Expression & { is: 'index' }, scope: Scope): Value {
    const object = this.value(of, scope);
    const at = this.value(index, scope);
    const inside = object instanceof Optional ? object.value : object;
    const found = inside === undefined ? undefined : elementOf(inside, at);
    if (optional || object instanceof Optional) return new Optional(found);
    if (found !== undefined) return found;
    const shown = typeof at === 'object' ? 'of an unsupported type' : String(at);
    throw new EvaluationError(isMap(object) ? `no such key: ${shown}` : `index out of bounds: ${shown}`);
  }

  #unary({ operator, of }: Expression & { is: 'unary' }, scope: Scope): Value {
    const value = this.value(of, scope);
    if (operator === '!') return !isTrue(value);
    if (typeof value === 'bigint' || typeof value === 'number') return -value;
    throw new EvaluationError('no such overload');
  }

  #binary({ operator, left, right }: Expression & { is: 'binary' }, scope: Scope): Value {
    if (operator === '||' || operator === '&&') return this.#logical(operator, left, right, scope);
    const [a, b] = [this.value(left, scope), this.value(right, scope)];
    return this.#paid([a, b], () => combined(operator, a, b));
  }

  /** Either side may decide, in any order: `true || error` and `error || true` are both true. */
  #logical(operator: '||' | '&&', left: Expression, right: Expression, scope: Scope): boolean {
    const decides = operator === '||';
    let failure: EvaluationError | undefined;
    try {
      if (isTrue(this.value(left, scope)) === decides) return decides;
    } catch (error) {
      if (!(error instanceof EvaluationError)) throw error;
      failure = error;
    }
    if (isTrue(this.value(right, scope)) === decides) return decides;
    if (failure !== undefined) throw failure;
    return !decides;
  }

  #call(call: Expression & { is: 'call' }, scope: Scope): Value {
    const { on, name, args } = call;
    if (on === undefined) {
      if (name === 'has') return this.#has(args[0], scope);
      return this.#paid(this.#values(args, scope), values => callFunction(name, values, this.#budget));
    }
    if (isMacro(name) && args[0]?.is === 'name' && args.length >= 2) return this.#macro(call, on, scope);
    if (isNamespaced(on, name)) {
      const [argument] = args;
      return namedFormat(name) ?? new Optional(argument && this.value(argument, scope));
    }
    return this.#paid(this.#values([on, ...args], scope), ([receiver = null, ...values]) =>
      callMethod(receiver, name, values, this.#budget),
    );
  }

  #values(expressions: readonly Expression[], scope: Scope): Value[] {
    return expressions.map(expression => this.value(expression, scope));
  }

  /** What walks values pays for them, and for what it makes of them. */
  #paid(values: readonly Value[], call: (values: readonly Value[]) => Value): Value {
    this.#budget.spend(values.reduce<number>((sum, value) => sum + weightOf(value), 0));
    const result = call(values);
    this.#budget.spend(weightOf(result));
    return result;
  }

  #has(argument: Expression | undefined, scope: Scope): boolean {
    if (argument?.is !== 'field') throw new EvaluationError('invalid argument to has() macro');
    const object = this.value(argument.of, scope);
    return fieldOf(object instanceof Optional ? (object.value ?? null) : object, argument.field) !== undefined;
  }

  #macro({ name, args }: Expression & { is: 'call' }, on: Expression, scope: Scope): Value {
    const range = this.value(on, scope);
    const names = args.slice(0, -1).flatMap(arg => (arg.is === 'name' ? [arg.name] : []));
    const [variable = '', second] = names;
    const body = args.at(-1) as Expression;
    const rounds = roundsOf(range, second !== undefined);
    const within = ([first, value]: readonly [Value, Value]): Scope => {
      const inner = new Map(scope).set(variable, first);
      return second === undefined ? inner : inner.set(second, value);
    };
    switch (name) {
      case 'all':
        return this.#decided(rounds, false, round => isTrue(this.value(body, within(round))));
      case 'exists':
        return this.#decided(rounds, true, round => isTrue(this.value(body, within(round))));
      case 'exists_one':
      case 'existsOne':
        return rounds.filter(round => isTrue(this.value(body, within(round)))).length === 1;
      case 'filter':
        return rounds.filter(round => isTrue(this.value(body, within(round)))).map(([first]) => first);
      default: {
        const condition = args.length === 3 && args[1]?.is !== 'name' ? args[1] : undefined;
        const chosen =
          condition === undefined ? rounds : rounds.filter(round => isTrue(this.value(condition, within(round))));
        return chosen.map(round => this.value(body, within(round)));
      }
    }
  }

  /** Like `||` and `&&` over many: an error counts only when nothing decides. */
  #decided(rounds: Rounds, decides: boolean, test: (round: readonly [Value, Value]) => boolean): boolean {
    let failure: EvaluationError | undefined;
    for (const round of rounds) {
      try {
        if (test(round) === decides) return decides;
      } catch (error) {
        if (!(error instanceof EvaluationError)) throw error;
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
    return !decides;
  }
}

type Rounds = readonly (readonly [first: Value, second: Value])[];

/** What a macro goes through: elements or keys; with two variables index and element, or key and value. */
function roundsOf(range: Value, two: boolean): Rounds {
  if (isList(range)) return range.map((element, index) => (two ? [BigInt(index), element] : [element, element]));
  if (isMap(range)) return [...range];
  throw new EvaluationError('no such overload');
}

/** Ten characters weigh as much as one element. */
function weightOf(value: Value): number {
  if (typeof value === 'string') return value.length / 10;
  if (!isList(value) && !isMap(value)) return 0;
  let weight = WEIGHTS.get(value);
  if (weight === undefined) {
    weight = 0;
    for (const element of value.values()) weight += 1 + weightOf(element);
    WEIGHTS.set(value, weight);
  }
  return weight;
}

/** Weighed once: the same list is looked at again and again. */
const WEIGHTS = new WeakMap<object, number>();

function fieldOf(object: Value, field: string): Value | undefined {
  if (isMap(object)) return object.get(field);
  throw new EvaluationError('no such overload');
}

function elementOf(object: Value, at: Value): Value | undefined {
  if (isMap(object)) return object.get(keyOf(at));
  if (isList(object) && typeof at === 'bigint') return at < 0n ? undefined : object[Number(at)];
  throw new EvaluationError('no such overload');
}

function keyOf(value: Value): string | bigint | boolean {
  if (typeof value === 'string' || typeof value === 'bigint' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value);
  throw new EvaluationError('unsupported key type');
}

function isTrue(value: Value): boolean {
  if (typeof value === 'boolean') return value;
  throw new EvaluationError('no such overload');
}

function combined(operator: Operator, left: Value, right: Value): Value {
  switch (operator) {
    case '==':
      return sameValue(left, right);
    case '!=':
      return !sameValue(left, right);
    case '<':
      return compareValues(left, right) < 0;
    case '<=':
      return compareValues(left, right) <= 0;
    case '>':
      return compareValues(left, right) > 0;
    case '>=':
      return compareValues(left, right) >= 0;
    case 'in':
      if (isList(right)) return right.some(element => sameValue(element, left));
      if (isMap(right)) return right.has(keyOf(left));
      throw new EvaluationError('no such overload');
    default:
      return calculated(operator, left, right);
  }
}

const SMALLEST_INT = -(2n ** 63n);
const LARGEST_INT = 2n ** 63n - 1n;

function calculated(operator: Operator, left: Value, right: Value): Value {
  if (typeof left === 'bigint' && typeof right === 'bigint') return whole(operator, left, right);
  if (typeof left === 'number' && typeof right === 'number') return real(operator, left, right);
  if (operator === '+') {
    if (typeof left === 'string' && typeof right === 'string') return left + right;
    if (isList(left) && isList(right)) return [...left, ...right];
    if (left instanceof Moment && right instanceof Span) return new Moment(left.nanos + right.nanos);
    if (left instanceof Span && right instanceof Moment) return new Moment(left.nanos + right.nanos);
    if (left instanceof Span && right instanceof Span) return new Span(left.nanos + right.nanos);
  }
  if (operator === '-') {
    if (left instanceof Moment && right instanceof Moment) return new Span(left.nanos - right.nanos);
    if (left instanceof Moment && right instanceof Span) return new Moment(left.nanos - right.nanos);
    if (left instanceof Span && right instanceof Span) return new Span(left.nanos - right.nanos);
  }
  throw new EvaluationError('no such overload');
}

function whole(operator: Operator, left: bigint, right: bigint): bigint {
  if ((operator === '/' || operator === '%') && right === 0n) {
    throw new EvaluationError(operator === '/' ? 'division by zero' : 'modulus by zero');
  }
  const result =
    operator === '+'
      ? left + right
      : operator === '-'
        ? left - right
        : operator === '*'
          ? left * right
          : operator === '/'
            ? left / right
            : left % right;
  if (result < SMALLEST_INT || result > LARGEST_INT) throw new EvaluationError('integer overflow');
  return result;
}

function real(operator: Operator, left: number, right: number): number {
  switch (operator) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
    default:
      throw new EvaluationError('no such overload');
  }
}
