import type { LabelSelector, LabelSelectorRequirement } from 'kubernetes-types/meta/v1.d.ts';

export type Labels = Readonly<Record<string, string>>;

/** A selector that Kubernetes would refuse. */
export class SelectorError extends Error {
  override readonly name = 'SelectorError';
}

/**
 * Whether a selector selects an object with these labels. A missing or empty selector selects nothing, contrary to
 * Kubernetes' convention (spec 50, ND-2, RN-2, trap 22). Throws `SelectorError` where an expression is malformed.
 */
export function selects(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  if (selector === undefined || isEmptySelector(selector)) return false;
  return (
    Object.entries(selector.matchLabels ?? {}).every(([key, value]) => valueOf(labels, key) === value) &&
    (selector.matchExpressions ?? []).every(expression => holds(expression, valueOf(labels, expression.key)))
  );
}

/** Whether there is a selector and it says nothing. */
export function isEmptySelector(selector: LabelSelector): boolean {
  return Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions ?? []).length === 0;
}

/** Why Kubernetes would refuse the selector, undefined if it would not. */
export function selectorProblem(selector: LabelSelector | undefined): string | undefined {
  for (const { key, operator, values = [] } of selector?.matchExpressions ?? []) {
    const needsValues = operator === 'In' || operator === 'NotIn';
    if (!needsValues && operator !== 'Exists' && operator !== 'DoesNotExist') {
      return `"${operator}" is not a valid label selector operator`;
    }
    if (needsValues !== values.length > 0) {
      return `the expression on ${key} with operator ${operator} ${needsValues ? 'needs values' : 'takes no values'}`;
    }
  }
  return undefined;
}

function holds(expression: LabelSelectorRequirement, value: string | undefined): boolean {
  const problem = selectorProblem({ matchExpressions: [expression] });
  if (problem !== undefined) throw new SelectorError(problem);
  const { operator, values = [] } = expression;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    default:
      return value === undefined;
  }
}

function valueOf(labels: Labels | undefined, key: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}
