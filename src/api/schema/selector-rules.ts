import { type FieldError, invalid } from './field-error.ts';
import { isObject } from './json.ts';
import type { JsonObject } from './schema.ts';

/** A workload's selector must select something, and must select the pods of its own template. */
export function selectorRule(workload: string): (spec: JsonObject, path: string) => FieldError[] {
  return (spec, path) => selectorErrors(spec, path, workload);
}

function selectorErrors({ selector, template }: JsonObject, path: string, workload: string): FieldError[] {
  if (!isObject(selector)) return [];
  if (isEmptySelector(selector)) {
    return [invalid(`${path}.selector`, selector, `empty selector is invalid for ${workload}`)];
  }
  if (!isObject(template)) return [];
  const metadata = isObject(template['metadata']) ? template['metadata'] : {};
  const labels = isObject(metadata['labels']) ? metadata['labels'] : {};
  if (matches(selector, labels)) return [];
  return [invalid(`${path}.template.metadata.labels`, labels, '`selector` does not match template `labels`')];
}

function isEmptySelector({ matchLabels, matchExpressions }: JsonObject): boolean {
  const labels = isObject(matchLabels) ? Object.keys(matchLabels).length : 0;
  const expressions = Array.isArray(matchExpressions) ? matchExpressions.length : 0;
  return labels + expressions === 0;
}

function matches({ matchLabels, matchExpressions }: JsonObject, labels: JsonObject): boolean {
  const byLabels = Object.entries(isObject(matchLabels) ? matchLabels : {}).every(
    ([key, value]) => Object.hasOwn(labels, key) && labels[key] === value,
  );
  const expressions: unknown[] = Array.isArray(matchExpressions) ? matchExpressions : [];
  return byLabels && expressions.every(expression => !isObject(expression) || holds(expression, labels));
}

function holds({ key, operator, values }: JsonObject, labels: JsonObject): boolean {
  const present = typeof key === 'string' && Object.hasOwn(labels, key);
  const among = present && Array.isArray(values) && values.includes(labels[key]);
  switch (operator) {
    case 'In':
      return among;
    case 'NotIn':
      return !among;
    case 'Exists':
      return present;
    case 'DoesNotExist':
      return !present;
    default:
      return true;
  }
}
