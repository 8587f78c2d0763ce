import { list, ref, str, strings, vocabulary } from '../dsl.ts';
import { type FieldError, invalid, required, unsupported } from '../field-error.ts';
import { isObject, withField } from '../json.ts';
import type { JsonObject } from '../schema.ts';
import { LabelSelector, metadata } from './meta.ts';

/** Who may do what: rbac.authorization.k8s.io. */

const GROUP = 'rbac.authorization.k8s.io';
const { object, kind } = vocabulary('io.k8s.api.rbac.v1', GROUP, 'v1');

const PolicyRule = object(
  'PolicyRule',
  'Allows verbs on resources or on paths.',
  {
    apiGroups: strings('API groups; empty string is the core group, `*` is all.'),
    nonResourceURLs: strings('Paths that are no resources; a final `*` matches the rest. Cluster roles only.'),
    resourceNames: strings('Names of objects; none means all.'),
    resources: strings('Resources, such as `pods` or `pods/log`; `*` is all.'),
    verbs: strings('Verbs, such as `get` or `watch`; `*` is all.'),
  },
  { required: ['verbs'], check: ruleErrors },
);

const RoleRef = object(
  'RoleRef',
  'Points at a role.',
  {
    apiGroup: str('API group of the role.', { default: GROUP }),
    kind: str('`Role` or `ClusterRole`.'),
    name: str('Name of the role.'),
  },
  { required: ['kind', 'name'], zero: ['apiGroup'], atomic: true },
);

const Subject = object(
  'Subject',
  'A user, a group or a service account.',
  {
    apiGroup: str('API group of the subject; empty for service accounts.'),
    kind: str('`User`, `Group` or `ServiceAccount`.'),
    name: str('Name of the subject.'),
    namespace: str('Namespace of a service account.'),
  },
  { required: ['kind', 'name'], atomic: true, complete: completeSubject, check: subjectErrors },
);

const rules = list(PolicyRule, 'What is allowed.');
const BINDING_FIELDS = {
  metadata,
  roleRef: ref(RoleRef, 'The role that is granted. Cannot be changed.'),
  subjects: list(Subject, 'To whom it is granted.'),
};

export const Role = kind(
  'Role',
  'What is allowed, in one namespace.',
  { metadata, rules },
  { check: namespacedRuleErrors },
);

export const ClusterRole = kind('ClusterRole', 'What is allowed, in the whole cluster or wherever it is bound.', {
  aggregationRule: ref(
    object('AggregationRule', 'Collects the rules of other cluster roles.', {
      clusterRoleSelectors: list(LabelSelector, 'Which ones; one of the selectors must match.'),
    }),
    'Where the rules are collected from; `rules` is then kept by a controller.',
  ),
  metadata,
  rules,
});

export const RoleBinding = kind('RoleBinding', 'Grants a role in one namespace.', BINDING_FIELDS, {
  required: ['roleRef'],
  check: ({ roleRef }) => roleRefErrors(roleRef, ['Role', 'ClusterRole']),
});

export const ClusterRoleBinding = kind(
  'ClusterRoleBinding',
  'Grants a cluster role in the whole cluster.',
  BINDING_FIELDS,
  {
    required: ['roleRef'],
    check: ({ roleRef, subjects }) => [...roleRefErrors(roleRef, ['ClusterRole']), ...homelessSubjects(subjects)],
  },
);

/** A rule is about resources or about paths, and names some of them. */
function ruleErrors(rule: JsonObject, path: string): FieldError[] {
  const has = (field: string) => Array.isArray(rule[field]) && rule[field].length > 0;
  if (has('nonResourceURLs')) {
    const both = has('apiGroups') || has('resources') || has('resourceNames');
    const detail = 'rules cannot apply to both regular resources and non-resource URLs';
    return both ? [invalid(`${path}.nonResourceURLs`, rule['nonResourceURLs'], detail)] : [];
  }
  return [
    ...(has('apiGroups') ? [] : [required(`${path}.apiGroups`, 'resource rules must supply at least one api group')]),
    ...(has('resources') ? [] : [required(`${path}.resources`, 'resource rules must supply at least one resource')]),
  ];
}

function namespacedRuleErrors(role: JsonObject): FieldError[] {
  const given: readonly unknown[] = Array.isArray(role['rules']) ? role['rules'] : [];
  return given.flatMap((rule, index) => {
    const urls = isObject(rule) ? rule['nonResourceURLs'] : undefined;
    if (!Array.isArray(urls) || urls.length === 0) return [];
    const detail = 'namespaced rules cannot apply to non-resource URLs';
    return [invalid(`rules[${index}].nonResourceURLs`, urls, detail)];
  });
}

function roleRefErrors(roleRef: unknown, kinds: readonly string[]): FieldError[] {
  if (!isObject(roleRef)) return [];
  const { apiGroup, kind: given } = roleRef;
  return [
    ...(apiGroup === GROUP ? [] : [unsupported('roleRef.apiGroup', apiGroup ?? '', [GROUP])]),
    ...(typeof given !== 'string' || given === '' || kinds.includes(given)
      ? []
      : [unsupported('roleRef.kind', given, kinds)]),
  ];
}

/** In a RoleBinding, a service account without a namespace is one of its own. */
function homelessSubjects(subjects: unknown): FieldError[] {
  const given: readonly unknown[] = Array.isArray(subjects) ? subjects : [];
  return given.flatMap((subject, index) =>
    isObject(subject) && subject['kind'] === 'ServiceAccount' && (subject['namespace'] ?? '') === ''
      ? [required(`subjects[${index}].namespace`)]
      : [],
  );
}

function completeSubject(subject: JsonObject): JsonObject {
  const { kind, apiGroup } = subject;
  return apiGroup === undefined && (kind === 'User' || kind === 'Group')
    ? withField(subject, 'apiGroup', GROUP)
    : subject;
}

const SUBJECT_GROUPS: Readonly<Record<string, string>> = { User: GROUP, Group: GROUP, ServiceAccount: '' };

function subjectErrors(subject: JsonObject, path: string): FieldError[] {
  const { kind, apiGroup = '' } = subject;
  if (typeof kind !== 'string' || kind === '') return [];
  if (!Object.hasOwn(SUBJECT_GROUPS, kind))
    return [unsupported(`${path}.kind`, kind, ['ServiceAccount', 'User', 'Group'])];
  const expected = SUBJECT_GROUPS[kind];
  return apiGroup === expected ? [] : [unsupported(`${path}.apiGroup`, apiGroup, [expected])];
}
