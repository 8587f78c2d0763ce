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

/** The rules of `wanted` that no single rule of `owned` covers; several together still may. */
export function notCoveredByOne(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  return wanted.filter(rule => !owned.some(mine => covers(mine, rule)));
}

/** The parts of `wanted` that no rule of `owned` covers, each with one verb, resource and name. */
export function* uncovered(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): Generator<PolicyRule> {
  for (const rule of wanted) {
    for (const single of singleRules(rule)) if (!owned.some(mine => covers(mine, single))) yield single;
  }
}

/** How many parts with one verb, resource and name a rule has: the lengths of its lists multiply. */
export function partCount({ apiGroups, resources, resourceNames, nonResourceURLs, verbs }: PolicyRule): number {
  const names = Math.max(1, resourceNames?.length ?? 0);
  const onResources = (apiGroups?.length ?? 0) * (resources?.length ?? 0) * names;
  return (onResources + (nonResourceURLs?.length ?? 0)) * verbs.length;
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

function* singleRules(rule: PolicyRule): Generator<PolicyRule> {
  const names = isEmpty(rule.resourceNames) ? [undefined] : (rule.resourceNames ?? []);
  for (const group of rule.apiGroups ?? []) {
    for (const resource of rule.resources ?? []) {
      for (const verb of rule.verbs) {
        for (const name of names) {
          const single = { apiGroups: [group], resources: [resource], verbs: [verb] };
          yield name === undefined ? single : { ...single, resourceNames: [name] };
        }
      }
    }
  }
  for (const url of rule.nonResourceURLs ?? []) {
    for (const verb of rule.verbs) yield { nonResourceURLs: [url], verbs: [verb] };
  }
}

/** Whether one rule allows all that another one does. */
function covers(owned: PolicyRule, wanted: PolicyRule): boolean {
  const every = (values: readonly string[] | undefined, isCovered: (value: string) => boolean) =>
    (values ?? []).every(isCovered);
  const namesCovered =
    isEmpty(owned.resourceNames) ||
    (!isEmpty(wanted.resourceNames) && allIn(owned.resourceNames ?? [], wanted.resourceNames ?? []));
  return (
    every(wanted.verbs, verb => includes(owned.verbs, verb)) &&
    every(wanted.apiGroups, group => includes(owned.apiGroups, group)) &&
    every(wanted.resources, resource => (owned.resources ?? []).some(mine => resourceCovers(mine, resource))) &&
    every(wanted.nonResourceURLs, url => (owned.nonResourceURLs ?? []).some(mine => pathCovers(mine, url))) &&
    namesCovered
  );
}

/** Lists of names can be long, and every one may be in the other's last place. */
function allIn(owned: readonly string[], wanted: readonly string[]): boolean {
  if (wanted.length === 1) return owned.includes(wanted[0] as string);
  const known = new Set(owned);
  return wanted.every(name => known.has(name));
}

/** `*` covers all, a name itself, a subresource with a star before it that subresource of every resource. */
function resourceCovers(owned: string, wanted: string): boolean {
  if (owned === ALL || owned === wanted) return true;
  const slash = wanted.indexOf('/');
  return slash >= 0 && owned === `*${wanted.slice(slash)}`;
}

/** A star is a wildcard only at the end. */
function pathCovers(owned: string, wanted: string): boolean {
  return owned === wanted || (owned.endsWith(ALL) && wanted.startsWith(withoutStarsAtEnd(owned)));
}

/** Not with a regular expression: one that looks for the end of a text tries every run of stars before it. */
function withoutStarsAtEnd(path: string): string {
  let end = path.length;
  while (path[end - 1] === ALL) end--;
  return path.slice(0, end);
}

function includes(values: readonly string[] | undefined, wanted: string): boolean {
  return values !== undefined && (values.includes(ALL) || values.includes(wanted));
}

function isEmpty(values: readonly string[] | undefined): boolean {
  return values === undefined || values.length === 0;
}
