import { list, ref, str, strings, vocabulary } from '../dsl.ts';
import { type FieldError, unsupported } from '../field-error.ts';
import { withField } from '../json.ts';
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
  { required: ['verbs'] },
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

export const Role = kind('Role', 'What is allowed, in one namespace.', { metadata, rules });

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
});

export const ClusterRoleBinding = kind(
  'ClusterRoleBinding',
  'Grants a cluster role in the whole cluster.',
  BINDING_FIELDS,
  {
    required: ['roleRef'],
  },
);

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
