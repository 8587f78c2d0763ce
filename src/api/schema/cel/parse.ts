import { type Token, tokensOf } from './lex.ts';

/** An expression as a tree. */
export type Expression =
  | { readonly is: 'literal'; readonly value: bigint | number | string | boolean | null }
  | { readonly is: 'name'; readonly name: string }
  | { readonly is: 'list'; readonly elements: readonly Expression[] }
  | { readonly is: 'map'; readonly entries: readonly (readonly [Expression, Expression])[] }
  | { readonly is: 'field'; readonly of: Expression; readonly field: string; readonly optional: boolean }
  | { readonly is: 'index'; readonly of: Expression; readonly index: Expression; readonly optional: boolean }
  | {
      readonly is: 'call';
      readonly on: Expression | undefined;
      readonly name: string;
      readonly args: readonly Expression[];
    }
  | { readonly is: 'unary'; readonly operator: '!' | '-'; readonly of: Expression }
  | { readonly is: 'binary'; readonly operator: Operator; readonly left: Expression; readonly right: Expression }
  | { readonly is: 'choice'; readonly condition: Expression; readonly yes: Expression; readonly no: Expression };

export type Operator = '||' | '&&' | '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | '+' | '-' | '*' | '/' | '%';

/** Operators by how tightly they bind, the loosest first. */
const LEVELS: readonly (readonly Operator[])[] = [
  ['||'],
  ['&&'],
  ['==', '!=', '<', '<=', '>', '>=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
];

/** As on the real server; also for operators one after the other, which are a tree as deep as they are many. */
const MAX_NESTING = 250;

const KEYWORDS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
]);

/** Reads an expression of the Common Expression Language; throws `SyntaxError` saying where it goes wrong. */
export function parseExpression(source: string): Expression {
  const parser = new Parser(tokensOf(source));
  return parser.whole();
}

/** Operators of one level from left to right; many of `||` or `&&`, where the order does not matter, as a flat tree. */
function joined(operands: readonly Expression[], between: readonly Operator[]): Expression {
  const [operator] = between;
  if (operator === '||' || operator === '&&') return balanced(operator, operands);
  if (between.length > MAX_NESTING) throw new SyntaxError('expression nests too deeply');
  return operands.reduce((left, right, index) => ({
    is: 'binary',
    operator: between[index - 1] as Operator,
    left,
    right,
  }));
}

function balanced(operator: '||' | '&&', operands: readonly Expression[]): Expression {
  if (operands.length === 1) return operands[0] as Expression;
  const middle = operands.length >> 1;
  const [left, right] = [operands.slice(0, middle), operands.slice(middle)];
  return { is: 'binary', operator, left: balanced(operator, left), right: balanced(operator, right) };
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): Expression {
    const expression = this.#expression();
    if (this.#token().kind !== 'end') throw this.#unexpected();
    return expression;
  }

  #expression(): Expression {
    if (++this.#depth > MAX_NESTING) throw new SyntaxError('expression nests too deeply');
    const condition = this.#binary(0);
    let result = condition;
    if (this.#accept('?')) {
      const yes = this.#binary(0);
      this.#expect(':');
      result = { is: 'choice', condition, yes, no: this.#expression() };
    }
    this.#depth--;
    return result;
  }

  #binary(level: number): Expression {
    const operators = LEVELS[level];
    if (operators === undefined) return this.#unary();
    const operands = [this.#binary(level + 1)];
    const between: Operator[] = [];
    for (;;) {
      const token = this.#token();
      const operator = operators.find(known => known === token.value && token.kind !== 'string');
      if (operator === undefined) return joined(operands, between);
      this.#at++;
      between.push(operator);
      operands.push(this.#binary(level + 1));
    }
  }

  #unary(): Expression {
    for (const operator of ['!', '-'] as const) {
      if (!this.#accept(operator)) continue;
      if (++this.#depth > MAX_NESTING) throw new SyntaxError('expression nests too deeply');
      const of = this.#unary();
      this.#depth--;
      if (operator === '-' && of.is === 'literal' && (typeof of.value === 'bigint' || typeof of.value === 'number')) {
        return { is: 'literal', value: -of.value };
      }
      return { is: 'unary', operator, of };
    }
    return this.#member();
  }

  #member(): Expression {
    let expression = this.#primary();
    for (let depth = 0; ; depth++) {
      if (depth > MAX_NESTING) throw new SyntaxError('expression nests too deeply');
      if (this.#accept('.')) {
        const optional = this.#accept('?');
        const name = this.#name();
        expression =
          !optional && this.#accept('(')
            ? { is: 'call', on: expression, name, args: this.#list(')') }
            : { is: 'field', of: expression, field: unescapedField(name), optional };
      } else if (this.#accept('[')) {
        const optional = this.#accept('?');
        const index = this.#expression();
        this.#expect(']');
        expression = { is: 'index', of: expression, index, optional };
      } else {
        return expression;
      }
    }
  }

  #primary(): Expression {
    const token = this.#token();
    this.#at++;
    switch (token.kind) {
      case 'int':
      case 'double':
      case 'string':
        return { is: 'literal', value: token.value };
      case 'name': {
        if (KEYWORDS.has(token.value)) return { is: 'literal', value: KEYWORDS.get(token.value) ?? null };
        if (this.#accept('(')) return { is: 'call', on: undefined, name: token.value, args: this.#list(')') };
        return { is: 'name', name: token.value };
      }
      case 'sign':
        if (token.value === '(') {
          const inner = this.#expression();
          this.#expect(')');
          return inner;
        }
        if (token.value === '[') return { is: 'list', elements: this.#list(']') };
        if (token.value === '{') return { is: 'map', entries: this.#entries() };
    }
    this.#at--;
    throw this.#unexpected();
  }

  #list(end: string): Expression[] {
    const elements: Expression[] = [];
    while (!this.#accept(end)) {
      elements.push(this.#expression());
      if (this.#accept(',')) continue;
      this.#expect(end);
      break;
    }
    return elements;
  }

  #entries(): [Expression, Expression][] {
    const entries: [Expression, Expression][] = [];
    while (!this.#accept('}')) {
      const key = this.#expression();
      this.#expect(':');
      entries.push([key, this.#expression()]);
      if (this.#accept(',')) continue;
      this.#expect('}');
      break;
    }
    return entries;
  }

  #name(): string {
    const token = this.#token();
    if (token.kind !== 'name') throw this.#unexpected();
    this.#at++;
    return token.value;
  }

  #token(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', value: '', at: 0 };
  }

  #accept(sign: string): boolean {
    const token = this.#token();
    if (token.kind !== 'sign' || token.value !== sign) return false;
    this.#at++;
    return true;
  }

  #expect(sign: string): void {
    if (!this.#accept(sign)) throw this.#unexpected();
  }

  #unexpected(): SyntaxError {
    const { kind, value, at } = this.#token();
    return new SyntaxError(`mismatched input '${kind === 'end' ? '<EOF>' : String(value)}' at position ${at}`);
  }
}

const FIELD_ESCAPES: readonly (readonly [escape: string, text: string])[] = [
  ['__underscores__', '__'],
  ['__dot__', '.'],
  ['__dash__', '-'],
  ['__slash__', '/'],
];

/** Fields whose names are no identifiers, or are words of the language, are written with escapes: `a__dash__b`, `__in__`. */
function unescapedField(name: string): string {
  const keyword = /^__([a-z]+)__$/.exec(name)?.[1];
  if (keyword !== undefined && !FIELD_ESCAPES.some(([escape]) => escape === name)) return keyword;
  return FIELD_ESCAPES.reduce((text, [escape, plain]) => text.replaceAll(escape, plain), name);
}
