import { bool, bytes, int32, int64, list, map, mapList, oneOf, ref, str, strings, vocabulary } from '../dsl.ts';
import { FieldSelectorRequirement, LabelSelectorRequirement, metadata, time } from './meta.ts';

/** Questions to the server about who somebody is and what they may do, and requests for tokens and certificates. */

const authentication = vocabulary('io.k8s.api.authentication.v1', 'authentication.k8s.io', 'v1');
const authorization = vocabulary('io.k8s.api.authorization.v1', 'authorization.k8s.io', 'v1');
const certificates = vocabulary('io.k8s.api.certificates.v1', 'certificates.k8s.io', 'v1');

const extra = map({ type: 'array', items: { type: 'string' } }, 'Further facts about the user.');

const UserInfo = authentication.object('UserInfo', 'Who somebody is.', {
  extra,
  groups: strings('Groups of the user.'),
  uid: str('Identity of the user in time.'),
  username: str('Name of the user.'),
});

const TokenReviewSpec = authentication.object('TokenReviewSpec', 'The token in question.', {
  audiences: strings('The token must be for one of these; default is the API server.'),
  token: str('The token.'),
});

const TokenReviewStatus = authentication.object('TokenReviewStatus', 'The answer.', {
  audiences: strings('Those of the asked audiences that the token is for.'),
  authenticated: bool('The token is good.'),
  error: str('Why the token could not be checked.'),
  user: ref(UserInfo, 'Whose token it is.'),
});

export const TokenReview = authentication.kind(
  'TokenReview',
  'Asks whose token this is.',
  {
    metadata,
    spec: ref(TokenReviewSpec, 'The token in question.'),
    status: ref(TokenReviewStatus, 'The answer.'),
  },
  { required: ['spec'] },
);

const BoundObjectReference = authentication.object('BoundObjectReference', 'The object a token lives and dies with.', {
  apiVersion: str('API version of the object.'),
  kind: str('`Pod`, `Secret` or `Node`.'),
  name: str('Name of the object.'),
  uid: str('UID of the object.'),
});

/** The server gives no token for less than ten minutes, and none that outlives 2^32 seconds. */
const EXPIRATION = { default: 3600, minimum: 600, maximum: 2 ** 32 };

const TokenRequestSpec = authentication.object(
  'TokenRequestSpec',
  'The token that is wanted.',
  {
    audiences: strings('Whom the token is for.'),
    boundObjectRef: ref(BoundObjectReference, 'The object the token lives and dies with.'),
    expirationSeconds: int64('Lifetime of the token in seconds.', EXPIRATION),
  },
  { zero: ['audiences'] },
);

const TokenRequestStatus = authentication.object(
  'TokenRequestStatus',
  'The token.',
  { expirationTimestamp: time('When it expires.'), token: str('The token.') },
  { zero: ['expirationTimestamp', 'token'] },
);

export const TokenRequest = authentication.kind(
  'TokenRequest',
  'Asks for a token of a service account.',
  { metadata, spec: ref(TokenRequestSpec, 'What is wanted.'), status: ref(TokenRequestStatus, 'The token.') },
  { zero: ['spec'] },
);

export const SelfSubjectReview = authentication.kind('SelfSubjectReview', 'Asks who I am.', {
  metadata,
  status: ref(
    authentication.object('SelfSubjectReviewStatus', 'The answer.', { userInfo: ref(UserInfo, 'Who you are.') }),
    'The answer.',
  ),
});

const selectorAttributes = (name: string, of: string, requirement: typeof LabelSelectorRequirement) =>
  authorization.object(name, `A limit of the action by ${of}.`, {
    rawSelector: str('The selector as in a query; not with `requirements`.'),
    requirements: list(requirement, 'The selector in parts; not with `rawSelector`.'),
  });

const ResourceAttributes = authorization.object('ResourceAttributes', 'An action on a resource.', {
  fieldSelector: ref(
    selectorAttributes('FieldSelectorAttributes', 'fields', FieldSelectorRequirement),
    'Limit by fields.',
  ),
  group: str('API group; `*` is all.'),
  labelSelector: ref(
    selectorAttributes('LabelSelectorAttributes', 'labels', LabelSelectorRequirement),
    'Limit by labels.',
  ),
  name: str('Name of the object; empty is all.'),
  namespace: str('Namespace; empty is all, or none for cluster-scoped resources.'),
  resource: str('Resource; `*` is all.'),
  subresource: str('Subresource; empty is none.'),
  verb: str('Verb; `*` is all.'),
  version: str('API version; `*` is all.'),
});

const NonResourceAttributes = authorization.object('NonResourceAttributes', 'An action on a path.', {
  path: str('The path.'),
  verb: str('The HTTP verb, in lower case.'),
});

const ACTION_FIELDS = {
  nonResourceAttributes: ref(NonResourceAttributes, 'An action on a path; not with `resourceAttributes`.'),
  resourceAttributes: ref(ResourceAttributes, 'An action on a resource; not with `nonResourceAttributes`.'),
};

const SubjectAccessReviewSpec = authorization.object('SubjectAccessReviewSpec', 'Who wants to do what.', {
  ...ACTION_FIELDS,
  extra,
  groups: strings('Groups of the user.'),
  uid: str('UID of the user.'),
  user: str('Name of the user.'),
});

const SubjectAccessReviewStatus = authorization.object(
  'SubjectAccessReviewStatus',
  'The answer.',
  {
    allowed: bool('The action is allowed.'),
    denied: bool('The action is forbidden explicitly.'),
    evaluationError: str('What went wrong on the way to the answer.'),
    reason: str('Why.'),
  },
  { zero: ['allowed'] },
);

const reviewFields = (spec: typeof SubjectAccessReviewSpec) => ({
  metadata,
  spec: ref(spec, 'The question.'),
  status: ref(SubjectAccessReviewStatus, 'The answer.'),
});

export const SubjectAccessReview = authorization.kind(
  'SubjectAccessReview',
  'Asks whether somebody may do something.',
  reviewFields(SubjectAccessReviewSpec),
  { required: ['spec'] },
);

export const LocalSubjectAccessReview = authorization.kind(
  'LocalSubjectAccessReview',
  'Asks whether somebody may do something in one namespace.',
  reviewFields(SubjectAccessReviewSpec),
  { required: ['spec'] },
);

export const SelfSubjectAccessReview = authorization.kind(
  'SelfSubjectAccessReview',
  'Asks whether I may do something.',
  reviewFields(authorization.object('SelfSubjectAccessReviewSpec', 'What I want to do.', ACTION_FIELDS)),
  { required: ['spec'] },
);

const ResourceRule = authorization.object(
  'ResourceRule',
  'Actions on resources that are allowed.',
  {
    apiGroups: strings('API groups; `*` is all.'),
    resourceNames: strings('Names of objects; none means all.'),
    resources: strings('Resources; `*` is all.'),
    verbs: strings('Verbs; `*` is all.'),
  },
  { zero: ['verbs'] },
);

const NonResourceRule = authorization.object(
  'NonResourceRule',
  'Actions on paths that are allowed.',
  { nonResourceURLs: strings('Paths; a final `*` matches the rest.'), verbs: strings('Verbs; `*` is all.') },
  { zero: ['verbs'] },
);

export const SelfSubjectRulesReview = authorization.kind(
  'SelfSubjectRulesReview',
  'Asks for everything I may do in a namespace.',
  {
    metadata,
    spec: ref(
      authorization.object('SelfSubjectRulesReviewSpec', 'Where.', { namespace: str('The namespace.') }),
      'Where.',
    ),
    status: ref(
      authorization.object(
        'SubjectRulesReviewStatus',
        'The answer.',
        {
          evaluationError: str('What went wrong on the way to the answer.'),
          incomplete: bool('There may be more.'),
          nonResourceRules: list(NonResourceRule, 'Actions on paths.'),
          resourceRules: list(ResourceRule, 'Actions on resources.'),
        },
        { zero: ['incomplete', 'nonResourceRules', 'resourceRules'] },
      ),
      'The answer.',
    ),
  },
  { required: ['spec'] },
);

const KEY_USAGES = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
];

const CertificateSigningRequestSpec = certificates.object(
  'CertificateSigningRequestSpec',
  'The certificate that is wanted, and who wants it. Cannot be changed.',
  {
    expirationSeconds: int32('Wanted lifetime; the signer may give less or more.', { minimum: 600 }),
    extra,
    groups: strings('Groups of the requester. Filled in by the server.'),
    request: { ...bytes('PKCS#10 request in PEM, in base64.'), 'x-kubernetes-list-type': 'atomic' },
    signerName: str('Signer that is asked, such as `kubernetes.io/kube-apiserver-client`.'),
    uid: str('UID of the requester. Filled in by the server.'),
    usages: list({ type: 'string', enum: KEY_USAGES }, 'Key usages that are wanted.'),
    username: str('Name of the requester. Filled in by the server.'),
  },
  { required: ['request', 'signerName'] },
);

const CertificateSigningRequestCondition = certificates.object(
  'CertificateSigningRequestCondition',
  'A decision about a request.',
  {
    lastTransitionTime: time('When `status` last changed.'),
    lastUpdateTime: time('When it was last updated.'),
    message: str('Why, for people.'),
    reason: str('Why, in one word for programs.'),
    status: oneOf(['False', 'True', 'Unknown'], '`True` for `Approved` and `Denied`.'),
    type: str('`Approved`, `Denied` or `Failed`.'),
  },
  { required: ['status', 'type'] },
);

const CertificateSigningRequestStatus = certificates.object(
  'CertificateSigningRequestStatus',
  'What became of a request.',
  {
    certificate: { ...bytes('The certificate chain in PEM, in base64.'), 'x-kubernetes-list-type': 'atomic' },
    conditions: mapList(['type'], CertificateSigningRequestCondition, 'Decisions about the request.'),
  },
);

export const CertificateSigningRequest = certificates.kind(
  'CertificateSigningRequest',
  'Asks a signer for a certificate.',
  {
    metadata,
    spec: ref(CertificateSigningRequestSpec, 'The certificate that is wanted. Cannot be changed.'),
    status: ref(CertificateSigningRequestStatus, 'What became of the request.'),
  },
  { required: ['spec'] },
);
