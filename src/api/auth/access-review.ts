import type {
  LocalSubjectAccessReview,
  NonResourceAttributes,
  ResourceAttributes as ReviewedResource,
  SelfSubjectAccessReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
  SubjectAccessReviewSpec,
  SubjectAccessReviewStatus,
} from 'kubernetes-types/authorization/v1.d.ts';
import { KubeError } from '../../kube/error.ts';
import { type FieldError, invalid, invalidObject } from '../schema/field-error.ts';
import type { Attributes } from './attributes.ts';
import type { Authorizer } from './authorize.ts';
import { joinErrors, type RbacLister, rulesFor } from './rbac.ts';
import type { User } from './user.ts';

const GROUP = 'authorization.k8s.io';

/** Answers "may this user do that?" (`kubectl auth can-i --as`). */
export function answerSubjectAccessReview(review: SubjectAccessReview, authorizer: Authorizer): SubjectAccessReview {
  refuseInvalid('SubjectAccessReview', subjectErrors(review.spec));
  return { ...review, status: decide(review.spec, subjectOf(review.spec), authorizer) };
}

/** Answers "may I do that?" (`kubectl auth can-i`). */
export function answerSelfSubjectAccessReview(
  review: SelfSubjectAccessReview,
  user: User,
  authorizer: Authorizer,
): SelfSubjectAccessReview {
  refuseInvalid('SelfSubjectAccessReview', questionErrors(review.spec));
  return { ...review, status: decide(review.spec, user, authorizer) };
}

/** Like SubjectAccessReview, inside the one namespace that the request names. */
export function answerLocalSubjectAccessReview(
  review: LocalSubjectAccessReview,
  namespace: string,
  authorizer: Authorizer,
): LocalSubjectAccessReview {
  const errors = subjectErrors(review.spec);
  const { resourceAttributes, nonResourceAttributes } = review.spec;
  const home = review.metadata?.namespace ?? namespace;
  if (resourceAttributes !== undefined && (resourceAttributes.namespace ?? '') !== home) {
    const field = 'spec.resourceAttributes.namespace';
    errors.push(invalid(field, resourceAttributes.namespace ?? '', 'must match metadata.namespace'));
  }
  if (nonResourceAttributes !== undefined) {
    errors.push(invalid('spec.nonResourceAttributes', nonResourceAttributes, 'disallowed on this kind of request'));
  }
  refuseInvalid('LocalSubjectAccessReview', errors);
  if (home !== namespace) {
    throw new KubeError(400, 'BadRequest', `spec.resourceAttributes.namespace must match namespace: ${namespace}`);
  }
  return { ...review, status: decide(review.spec, subjectOf(review.spec), authorizer) };
}

/** Answers "what may I do in this namespace?" (`kubectl auth can-i --list`). */
export function answerSelfSubjectRulesReview(
  review: SelfSubjectRulesReview,
  user: User,
  lister: RbacLister,
): SelfSubjectRulesReview {
  const namespace = review.spec?.namespace ?? '';
  if (namespace === '') throw new KubeError(400, 'BadRequest', 'no namespace on request');
  const { rules, errors } = rulesFor(lister, user, namespace);
  const resourceRules = rules.filter(rule => (rule.resources?.length ?? 0) > 0);
  const pathRules = rules.filter(rule => (rule.nonResourceURLs?.length ?? 0) > 0);
  return {
    ...review,
    status: {
      resourceRules: resourceRules.map(({ verbs, apiGroups = [], resources = [], resourceNames }) => ({
        verbs,
        apiGroups,
        resources,
        ...(resourceNames === undefined || resourceNames.length === 0 ? {} : { resourceNames }),
      })),
      nonResourceRules: pathRules.map(({ verbs, nonResourceURLs = [] }) => ({ verbs, nonResourceURLs })),
      incomplete: false,
      ...(errors.length === 0 ? {} : { evaluationError: joinErrors(errors) }),
    },
  };
}

interface Question {
  readonly resourceAttributes?: ReviewedResource;
  readonly nonResourceAttributes?: NonResourceAttributes;
}

function decide(question: Question, user: User, authorizer: Authorizer): SubjectAccessReviewStatus {
  const { verdict, reason } = authorizer.authorize(attributesOf(question, user));
  return {
    allowed: verdict === 'allow',
    ...(verdict === 'deny' ? { denied: true } : {}),
    ...(reason === '' ? {} : { reason }),
  };
}

function attributesOf({ resourceAttributes, nonResourceAttributes }: Question, user: User): Attributes {
  if (resourceAttributes === undefined) {
    return { user, verb: nonResourceAttributes?.verb ?? '', path: nonResourceAttributes?.path ?? '' };
  }
  const {
    verb = '',
    group = '',
    version,
    resource = '',
    subresource = '',
    namespace = '',
    name = '',
  } = resourceAttributes;
  return { user, verb, group, version: version || '*', resource, subresource, namespace, name };
}

function subjectOf({ user = '', uid = '', groups = [], extra = {} }: SubjectAccessReviewSpec): User {
  return { name: user, uid, groups, extra };
}

function subjectErrors(spec: SubjectAccessReviewSpec): FieldError[] {
  const errors = questionErrors(spec);
  if ((spec.user ?? '') === '' && (spec.groups?.length ?? 0) === 0) {
    errors.push(invalid('spec.user', '', 'at least one of user or group must be specified'));
  }
  return errors;
}

function questionErrors({ resourceAttributes, nonResourceAttributes }: Question): FieldError[] {
  if ((resourceAttributes === undefined) !== (nonResourceAttributes === undefined)) return [];
  const rule = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
  return [invalid('spec', nonResourceAttributes, rule)];
}

function refuseInvalid(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidObject(GROUP, kind, '', errors);
}
