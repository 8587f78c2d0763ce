import type { LabelSelector } from 'kubernetes-types/meta/v1.d.ts';
import { KubeError } from '../../kube/error.ts';
import {
  EVERY_LABEL_SET,
  type LabelOperator,
  type LabelQuery,
  type LabelRequirement,
  labelRequirement,
  NO_LABEL_SET,
} from './label.ts';

const OPERATORS: Readonly<Record<string, LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
};

/**
 * The query of a `LabelSelector` object (`matchLabels`, `matchExpressions`). An absent selector matches nothing, an empty
 * one everything. Throws `KubeError` 400 for an unknown operator or a bad key or value.
 */
export function labelQueryOf(selector: LabelSelector | undefined): LabelQuery {
  if (selector === undefined) return NO_LABEL_SET;
  const requirements: LabelRequirement[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    requirements.push(labelRequirement(key, '=', [value]));
  }
  for (const { key, operator, values } of selector.matchExpressions ?? []) {
    const known = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
    if (known === undefined) {
      throw new KubeError(400, 'BadRequest', `${JSON.stringify(operator)} is not a valid label selector operator`);
    }
    requirements.push(labelRequirement(key, known, values ?? []));
  }
  if (requirements.length === 0) return EVERY_LABEL_SET;
  return requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}
