import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  RoleRef,
  Subject,
} from 'kubernetes-types/rbac/v1.d.ts';
import { isPathRequest } from './attributes.ts';
import type { Authorizer } from './authorize.ts';
import { ruleAllows } from './rule.ts';
import { serviceAccountUserName, type User } from './user.ts';

/** Reads RBAC objects; the server answers from its store, synchronously. */
export interface RbacLister {
  role(namespace: string, name: string): Role | undefined;
  clusterRole(name: string): ClusterRole | undefined;
  roleBindings(namespace: string): Iterable<RoleBinding>;
  clusterRoleBindings(): Iterable<ClusterRoleBinding>;
}

/** Everything a user may do in a namespace (empty: cluster-wide), and which bindings lead nowhere. */
export interface RulesAnswer {
  readonly rules: readonly PolicyRule[];
  readonly errors: readonly string[];
}

export const RBAC_GROUP = 'rbac.authorization.k8s.io';

/** Allows what the roles bound to the user allow; never denies. */
export function createRbacAuthorizer(lister: RbacLister): Authorizer {
  return {
    authorize(attributes) {
      const namespace = isPathRequest(attributes) ? '' : attributes.namespace;
      const errors: string[] = [];
      for (const grant of grantsOf(lister, attributes.user, namespace)) {
        if (grant.error !== undefined) errors.push(grant.error);
        else if (grant.rules.some(rule => ruleAllows(rule, attributes))) {
          return { verdict: 'allow', reason: `RBAC: allowed by ${grant.source()}` };
        }
      }
      return { verdict: 'no-opinion', reason: errors.length === 0 ? '' : `RBAC: ${joinErrors(errors)}` };
    },
  };
}

/** All rules that apply to a user. Rules only add up, so those found are good even when a binding is broken. */
export function rulesFor(lister: RbacLister, user: User, namespace: string): RulesAnswer {
  const rules: PolicyRule[] = [];
  const errors: string[] = [];
  for (const grant of grantsOf(lister, user, namespace)) {
    if (grant.error === undefined) rules.push(...grant.rules);
    else errors.push(grant.error);
  }
  return { rules, errors };
}

/** The rules of the role a binding names; undefined when there is no such role. */
export function referencedRules(
  lister: RbacLister,
  reference: RoleRef,
  namespace: string,
): readonly PolicyRule[] | undefined {
  if (reference.kind === 'ClusterRole') return rulesOf(lister.clusterRole(reference.name));
  if (reference.kind === 'Role' && namespace !== '') return rulesOf(lister.role(namespace, reference.name));
  return undefined;
}

/** One message as it is; several as `[a, b]` without repetitions. */
export function joinErrors(errors: readonly string[]): string {
  const distinct = [...new Set(errors)];
  return distinct.length === 1 ? (distinct[0] as string) : `[${distinct.join(', ')}]`;
}

interface Grant {
  readonly rules: readonly PolicyRule[];
  readonly error?: string;
  source(): string;
}

function* grantsOf(lister: RbacLister, user: User, namespace: string): Generator<Grant> {
  for (const binding of lister.clusterRoleBindings()) {
    const subject = binding.subjects?.find(candidate => appliesTo(candidate, user, ''));
    if (subject !== undefined) yield grant(lister, binding, subject, '');
  }
  if (namespace === '') return;
  for (const binding of lister.roleBindings(namespace)) {
    const subject = binding.subjects?.find(candidate => appliesTo(candidate, user, namespace));
    if (subject !== undefined) yield grant(lister, binding, subject, namespace);
  }
}

function grant(
  lister: RbacLister,
  binding: ClusterRoleBinding | RoleBinding,
  subject: Subject,
  namespace: string,
): Grant {
  const { kind, name } = binding.roleRef;
  const rules = referencedRules(lister, binding.roleRef, namespace);
  const source = () => describeBinding(binding, subject, namespace);
  if (rules !== undefined) return { rules, source };
  const known = kind === 'ClusterRole' || (kind === 'Role' && namespace !== '');
  const error = known
    ? `${kind.toLowerCase()}.${RBAC_GROUP} ${JSON.stringify(name)} not found`
    : `unsupported role reference kind: ${JSON.stringify(kind)}`;
  return { rules: [], error, source };
}

function appliesTo(subject: Subject, user: User, namespace: string): boolean {
  switch (subject.kind) {
    case 'User':
      return subject.name === user.name;
    case 'Group':
      return user.groups.includes(subject.name);
    case 'ServiceAccount': {
      const home = subject.namespace || namespace;
      return home !== '' && serviceAccountUserName(home, subject.name) === user.name;
    }
    default:
      return false;
  }
}

function describeBinding(binding: ClusterRoleBinding | RoleBinding, subject: Subject, namespace: string): string {
  const name = binding.metadata?.name ?? '';
  const [kind, id] = namespace === '' ? ['ClusterRoleBinding', name] : ['RoleBinding', `${name}/${namespace}`];
  const role = `${binding.roleRef.kind} ${JSON.stringify(binding.roleRef.name)}`;
  return `${kind} ${JSON.stringify(id)} of ${role} to ${describeSubject(subject, namespace)}`;
}

function describeSubject(subject: Subject, namespace: string): string {
  const isServiceAccount = subject.kind === 'ServiceAccount';
  const id = isServiceAccount ? `${subject.name}/${subject.namespace || namespace}` : subject.name;
  return `${subject.kind} ${JSON.stringify(id)}`;
}

function rulesOf(role: Role | ClusterRole | undefined): readonly PolicyRule[] | undefined {
  return role === undefined ? undefined : (role.rules ?? []);
}
