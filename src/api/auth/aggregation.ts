import type { LabelSelector } from 'kubernetes-types/meta/v1.d.ts';
import type { ClusterRole, PolicyRule } from 'kubernetes-types/rbac/v1.d.ts';
import { type LabelQuery, matchesLabels, NO_LABEL_SET } from '../select/label.ts';
import { labelQueryOf } from '../select/label-object.ts';

/**
 * The ClusterRoles whose stored rules are not those their aggregation rule asks for, with the right rules in place. Roles
 * that aggregate aggregated roles (view into edit into admin) come out right in one go. Run it after every write of a
 * ClusterRole and store what it returns; RBAC itself reads stored rules only, as everybody else does.
 */
export function staleAggregates(roles: readonly ClusterRole[]): ClusterRole[] {
  const current = new Map(roles.map(role => [role.metadata?.name ?? '', role]));
  const aggregated = [...current.values()].filter(role => role.aggregationRule !== undefined);
  // Each round carries rules one step further; a chain cannot be longer than the number of aggregated roles.
  for (let round = 0; round < aggregated.length; round += 1) {
    let changed = false;
    for (const { metadata } of aggregated) {
      const name = metadata?.name ?? '';
      const role = current.get(name) as ClusterRole;
      const rules = aggregatedRules(role, [...current.values()]);
      if (sameRules(rules, role.rules ?? [])) continue;
      current.set(name, { ...role, rules });
      changed = true;
    }
    if (!changed) break;
  }
  return roles.flatMap(role => {
    const next = current.get(role.metadata?.name ?? '') as ClusterRole;
    return next === role ? [] : [next];
  });
}

/** The union of the rules of all roles that a role's selectors match, without repetitions, in the order of their names. */
export function aggregatedRules(role: ClusterRole, roles: readonly ClusterRole[]): PolicyRule[] {
  const others = roles
    .filter(other => other.metadata?.name !== role.metadata?.name)
    .sort((a, b) => ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1));
  const rules = new Map<string, PolicyRule>();
  for (const selector of role.aggregationRule?.clusterRoleSelectors ?? []) {
    const query = queryOrNothing(selector);
    for (const other of others) {
      if (!matchesLabels(query, other.metadata?.labels)) continue;
      for (const rule of other.rules ?? []) {
        const id = ruleId(rule);
        if (!rules.has(id)) rules.set(id, rule);
      }
    }
  }
  return [...rules.values()];
}

/** A selector that cannot be read gathers nothing; one bad role must not stop the others. */
function queryOrNothing(selector: LabelSelector): LabelQuery {
  try {
    return labelQueryOf(selector);
  } catch {
    return NO_LABEL_SET;
  }
}

function sameRules(a: readonly PolicyRule[], b: readonly PolicyRule[]): boolean {
  return a.length === b.length && a.every((rule, index) => ruleId(rule) === ruleId(b[index] as PolicyRule));
}

function ruleId(rule: PolicyRule): string {
  const lists = [rule.apiGroups, rule.resources, rule.resourceNames, rule.nonResourceURLs, rule.verbs];
  return JSON.stringify(lists.map(list => list ?? []));
}
