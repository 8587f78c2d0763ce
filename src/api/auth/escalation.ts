import { isDeepStrictEqual } from 'node:util';
import type { ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import { KubeError } from '../../kube/error.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { type Authorizer, isAllowed } from './authorize.ts';
import { forbiddenObject } from './forbidden.ts';
import { joinErrors, RBAC_GROUP, type RbacLister, referencedRules, rulesFor } from './rbac.ts';
import { compactRules, formatRule, notCoveredByOne, partCount, quotedList, uncovered } from './rule.ts';
import { isMaster, type User } from './user.ts';

export interface EscalationContext {
  readonly lister: RbacLister;
  /** The whole authorizer of the server, asked for the verbs `escalate` and `bind`. */
  readonly authorizer: Authorizer;
  readonly user: User;
}

const FULL_AUTHORITY: readonly PolicyRule[] = [
  { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
  { nonResourceURLs: ['*'], verbs: ['*'] },
];

/**
 * Refuses (403) to create or update a Role or ClusterRole whose rules go beyond what the user has, unless the user may
 * `escalate` it. An update passes the old object too. Changed labels count: they can pull a role into an aggregated one.
 */
export function checkRoleWrite(context: EscalationContext, role: Role | ClusterRole, old?: Role | ClusterRole): void {
  const namespace = role.metadata?.namespace ?? '';
  const resource = namespace === '' ? 'clusterroles' : 'roles';
  const name = role.metadata?.name ?? '';
  if (old !== undefined && onlyForGarbageCollection(role, old)) return;
  if (isMaster(context.user) || mayDo(context, 'escalate', resource, namespace, name)) return;
  const excess = excessOf(context, namespace, role.rules ?? []);
  if (excess !== undefined) throw forbiddenObject(RBAC_GROUP, resource, name, excess);
  if (!hasAggregation(role) && !(old !== undefined && hasAggregation(old))) return;
  // An aggregation rule can gather anything later on, so it takes everything to set one.
  if (excessOf(context, '', FULL_AUTHORITY) === undefined) return;
  throw forbiddenObject(RBAC_GROUP, resource, name, 'must have cluster-admin privileges to use the aggregationRule');
}

/**
 * Refuses (403) to create or update a binding to a role that allows more than the user may do, unless the user may
 * `bind` that role. An update passes the old object too.
 */
export function checkBindingWrite(
  context: EscalationContext,
  binding: RoleBinding | ClusterRoleBinding,
  old?: RoleBinding | ClusterRoleBinding,
): void {
  if (isMaster(context.user) || (old !== undefined && onlyForGarbageCollection(binding, old))) return;
  const namespace = binding.metadata?.namespace ?? '';
  const role = binding.roleRef;
  const roles = role.kind === 'ClusterRole' ? 'clusterroles' : 'roles';
  if (mayDo(context, 'bind', roles, namespace, role.name)) return;
  const rules = referencedRules(context.lister, role, namespace);
  if (rules === undefined) {
    throw new KubeError(404, 'NotFound', `${roles}.${RBAC_GROUP} ${JSON.stringify(role.name)} not found`, {
      name: role.name,
      group: RBAC_GROUP,
      kind: roles,
    });
  }
  const excess = excessOf(context, namespace, rules);
  if (excess === undefined) return;
  const resource = namespace === '' ? 'clusterrolebindings' : 'rolebindings';
  throw forbiddenObject(RBAC_GROUP, resource, binding.metadata?.name ?? '', excess);
}

function mayDo(
  { authorizer, user }: EscalationContext,
  verb: string,
  resource: string,
  namespace: string,
  name: string,
): boolean {
  const attributes = { user, verb, group: RBAC_GROUP, version: '*', resource, subresource: '', namespace, name };
  return isAllowed(authorizer, attributes);
}

/** What the user would grant without having it, in words; undefined when nothing. */
function excessOf(
  { lister, user }: EscalationContext,
  namespace: string,
  wanted: readonly PolicyRule[],
): string | undefined {
  const owned = rulesFor(lister, user, namespace);
  const doubtful = notCoveredByOne(owned.rules, wanted);
  refuseTooManyParts(doubtful);
  const { missing, isComplete } = gatherMissing(uncovered(owned.rules, doubtful));
  if (missing.length === 0) return undefined;
  const lines = [...new Set(compactRules(missing).map(formatRule))].sort();
  if (!isComplete) lines.push('... and more');
  const who = `user ${JSON.stringify(user.name)} (groups=${quotedList(user.groups)})`;
  const broken = owned.errors.length === 0 ? '' : `; resolution errors: ${joinErrors(owned.errors)}`;
  return `${who} is attempting to grant RBAC permissions not currently held:\n${lines.join('\n')}${broken}`;
}

/** Rules are compared part by part, and a few kilobytes of rules can have more parts than there is time or memory for. */
const MAX_PARTS = 10_000;
const MAX_SHOWN_CHARACTERS = 128 * 1024;

function refuseTooManyParts(rules: readonly PolicyRule[]): void {
  const parts = rules.reduce((sum, rule) => sum + partCount(rule), 0);
  if (parts <= MAX_PARTS) return;
  const what = 'combinations of API group, resource, name and verb';
  throw new KubeError(400, 'BadRequest', `the rules have ${parts} ${what}, at most ${MAX_PARTS} can be compared`);
}

/** As much of what is missing as a message can show. */
function gatherMissing(uncoveredParts: Iterable<PolicyRule>): { missing: PolicyRule[]; isComplete: boolean } {
  const missing: PolicyRule[] = [];
  let characters = 0;
  for (const part of uncoveredParts) {
    if (characters > MAX_SHOWN_CHARACTERS) return { missing, isComplete: false };
    missing.push(part);
    characters += formatRule(part).length;
  }
  return { missing, isComplete: true };
}

function hasAggregation(role: Role | ClusterRole): boolean {
  return 'aggregationRule' in role && (role.aggregationRule?.clusterRoleSelectors?.length ?? 0) > 0;
}

/** Owner references and finalizers change on the way to a deletion, which grants nothing. */
function onlyForGarbageCollection(object: KubeObject, old: KubeObject): boolean {
  return isDeepStrictEqual(apartFromCollection(object), apartFromCollection(old));
}

function apartFromCollection(object: KubeObject): KubeObject {
  const metadata = { ...object.metadata };
  for (const field of ['ownerReferences', 'finalizers', 'managedFields', 'resourceVersion'] as const)
    delete metadata[field];
  return { ...object, metadata };
}
