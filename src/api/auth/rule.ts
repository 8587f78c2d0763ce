import type { PolicyRule } from 'kubernetes-types/rbac/v1.d.ts';
import { type Attributes, isPathRequest, resourceAndSubresource } from './attributes.ts';

const ALL = '*';

/** Whether one RBAC rule allows what a request wants to do. */
export function ruleAllows(rule: PolicyRule, attributes: Attributes): boolean {
  if (!includes(rule.verbs, attributes.verb)) return false;
  if (isPathRequest(attributes)) return (rule.nonResourceURLs ?? []).some(owned => pathCovers(owned, attributes.path));
  return (
    includes(rule.apiGroups, attributes.group) &&
    (rule.resources ?? []).some(owned => resourceCovers(owned, resourceAndSubresource(attributes))) &&
    (isEmpty(rule.resourceNames) || (rule.resourceNames ?? []).includes(attributes.name))
  );
}

/** The parts of `wanted` that no rule of `owned` covers, each with one verb, resource and name. */
export function uncovered(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  return wanted.flatMap(singleRules).filter(single => !owned.some(rule => covers(rule, single)));
}

/** Joins rules that differ only in the verb; for messages. */
export function compactRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const byResource = new Map<string, PolicyRule>();
  const rest: PolicyRule[] = [];
  for (const rule of rules) {
    const simple =
      rule.apiGroups?.length === 1 && rule.resources?.length === 1 && (rule.resourceNames?.length ?? 0) <= 1;
    if (!simple) {
      rest.push(rule);
      continue;
    }
    const key = JSON.stringify([rule.apiGroups, rule.resources, rule.resourceNames ?? []]);
    const known = byResource.get(key);
    byResource.set(key, known === undefined ? rule : { ...known, verbs: [...known.verbs, ...rule.verbs] });
  }
  return [...rest, ...byResource.values()];
}

/** `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`: how escalation messages show a rule. */
export function formatRule(rule: PolicyRule): string {
  const parts = [
    ['APIGroups', rule.apiGroups],
    ['Resources', rule.resources],
    ['NonResourceURLs', rule.nonResourceURLs],
    ['ResourceNames', rule.resourceNames],
    ['Verbs', rule.verbs],
  ] as const;
  const shown = parts.flatMap(([name, values]) => (isEmpty(values) ? [] : [`${name}:${quotedList(values ?? [])}`]));
  return `{${shown.join(', ')}}`;
}

/** `["a" "b"]`, as Go prints a list of quoted strings. */
export function quotedList(values: readonly string[]): string {
  return `[${values.map(value => JSON.stringify(value)).join(' ')}]`;
}

function singleRules(rule: PolicyRule): PolicyRule[] {
  const singles: PolicyRule[] = [];
  const names = isEmpty(rule.resourceNames) ? [undefined] : (rule.resourceNames ?? []);
  for (const group of rule.apiGroups ?? []) {
    for (const resource of rule.resources ?? []) {
      for (const verb of rule.verbs) {
        for (const name of names) {
          const single = { apiGroups: [group], resources: [resource], verbs: [verb] };
          singles.push(name === undefined ? single : { ...single, resourceNames: [name] });
        }
      }
    }
  }
  for (const url of rule.nonResourceURLs ?? []) {
    for (const verb of rule.verbs) singles.push({ nonResourceURLs: [url], verbs: [verb] });
  }
  return singles;
}

/** `single` has one verb and either one resource with at most one name, or one URL. */
function covers(owned: PolicyRule, single: PolicyRule): boolean {
  const every = (wanted: readonly string[] | undefined, isCovered: (value: string) => boolean) =>
    (wanted ?? []).every(isCovered);
  const namesCovered =
    isEmpty(owned.resourceNames) ||
    (!isEmpty(single.resourceNames) && every(single.resourceNames, name => (owned.resourceNames ?? []).includes(name)));
  return (
    every(single.verbs, verb => includes(owned.verbs, verb)) &&
    every(single.apiGroups, group => includes(owned.apiGroups, group)) &&
    every(single.resources, resource => (owned.resources ?? []).some(mine => resourceCovers(mine, resource))) &&
    every(single.nonResourceURLs, url => (owned.nonResourceURLs ?? []).some(mine => pathCovers(mine, url))) &&
    namesCovered
  );
}

/** `*` covers all, a name itself, a subresource with a star before it that subresource of every resource. */
function resourceCovers(owned: string, wanted: string): boolean {
  if (owned === ALL || owned === wanted) return true;
  const slash = wanted.indexOf('/');
  return slash >= 0 && owned === `*${wanted.slice(slash)}`;
}

/** A star is a wildcard only at the end. */
function pathCovers(owned: string, wanted: string): boolean {
  return owned === wanted || (owned.endsWith(ALL) && wanted.startsWith(owned.replace(/\*+$/, '')));
}

function includes(values: readonly string[] | undefined, wanted: string): boolean {
  return values !== undefined && (values.includes(ALL) || values.includes(wanted));
}

function isEmpty(values: readonly string[] | undefined): boolean {
  return values === undefined || values.length === 0;
}
