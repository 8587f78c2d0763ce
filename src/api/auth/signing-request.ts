import { isDeepStrictEqual } from 'node:util';
import type {
  CertificateSigningRequest,
  CertificateSigningRequestCondition,
} from 'kubernetes-types/certificates/v1.d.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { type CertificateRequest, readCertificateRequest } from '../../pki/csr.ts';
import { isPkiError } from '../../pki/error.ts';
import { readCertificates } from '../../pki/pem.ts';
import {
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  required,
  tooLong,
  unsupported,
} from '../schema/field-error.ts';
import { subdomainErrors } from '../select/label-name.ts';
import { type Authorizer, isAllowed } from './authorize.ts';
import { forbiddenObject } from './forbidden.ts';
import { userInfoOf } from './token-review.ts';
import { SYSTEM_MASTERS, type User } from './user.ts';

export const CERTIFICATES_GROUP = 'certificates.k8s.io';
export const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';
const LEGACY_SIGNER = 'kubernetes.io/legacy-unknown';
const RESOURCE = 'certificatesigningrequests';

const USAGES = [
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
const SHORTEST_LIFETIME_SECONDS = 600;
const LONGEST_DOMAIN = 253;
const LONGEST_SIGNER_NAME = LONGEST_DOMAIN + 1 + 63 + 1 + 253;
/** Conditions that mean something to signers: they are `True` or absent, and never go away again. */
const LASTING_CONDITIONS = ['Approved', 'Denied', 'Failed'];
const APPROVAL_CONDITIONS = ['Approved', 'Denied'];

/** A new request as it is stored: the requester is who asks, whatever the object says, and nothing is decided yet. */
export function prepareSigningRequest(request: CertificateSigningRequest, user: User): CertificateSigningRequest {
  const { request: pem, signerName, expirationSeconds, usages } = request.spec;
  const asked = {
    request: pem,
    signerName,
    ...(usages && { usages }),
    ...(expirationSeconds && { expirationSeconds }),
  };
  return { ...request, spec: { ...asked, ...userInfoOf(user) }, status: {} };
}

/** What is wrong with a request, new or changed. */
export function signingRequestErrors({ spec, status }: CertificateSigningRequest): FieldError[] {
  const errors: FieldError[] = [];
  const parsed = readSigningRequest(spec.request);
  if (!parsed.ok) errors.push(invalid('spec.request', spec.request, parsed.why));
  errors.push(...usageErrors(spec.usages ?? []), ...signerNameErrors(spec.signerName));
  if (spec.expirationSeconds !== undefined && spec.expirationSeconds < SHORTEST_LIFETIME_SECONDS) {
    const rule = 'may not specify a duration less than 600 seconds (10 minutes)';
    errors.push(invalid('spec.expirationSeconds', spec.expirationSeconds, rule));
  }
  errors.push(...conditionErrors(status?.conditions ?? []));
  const certificateError = whyNotCertificates(status?.certificate);
  if (certificateError !== undefined)
    errors.push(invalid('status.certificate', '<certificate data>', certificateError));
  return errors;
}

/** Refuses (403) a request that would make its sender a master. */
export function checkRequestedSubject(request: CertificateSigningRequest): void {
  if (request.spec.signerName !== CLIENT_SIGNER) return;
  const parsed = readSigningRequest(request.spec.request);
  if (!parsed.ok || !parsed.request.subject.organizations.includes(SYSTEM_MASTERS)) return;
  const why = `use of ${CLIENT_SIGNER} signer with ${SYSTEM_MASTERS} group is not allowed`;
  throw forbiddenObject(CERTIFICATES_GROUP, RESOURCE, request.metadata?.name ?? '', why);
}

/** Which way an update comes in: each may change another part. */
export type SigningRequestDoor = 'main' | 'approval' | 'status';

/** An update as it is stored: only what its door may change is taken over, and conditions get their times. */
export function prepareSigningRequestUpdate(
  request: CertificateSigningRequest,
  old: CertificateSigningRequest,
  door: SigningRequestDoor,
  now: Date,
): CertificateSigningRequest {
  if (door === 'main') return { ...request, spec: old.spec, ...(old.status && { status: old.status }) };
  const conditions = withTimes(request.status?.conditions ?? [], old.status?.conditions ?? [], now);
  const status = door === 'approval' ? { ...old.status, conditions } : { ...request.status, conditions };
  return { ...request, spec: old.spec, status };
}

/** What is wrong with an update that has been prepared. */
export function signingRequestUpdateErrors(
  request: CertificateSigningRequest,
  old: CertificateSigningRequest,
  door: SigningRequestDoor,
): FieldError[] {
  const errors = signingRequestErrors(request);
  const of = (from: CertificateSigningRequest, type: string) =>
    (from.status?.conditions ?? []).filter(condition => condition.type === type);
  const refuse = (rule: string, type: string) =>
    errors.push(forbidden('status.conditions', `updates may not ${rule} a condition of type ${JSON.stringify(type)}`));
  for (const type of LASTING_CONDITIONS) {
    if (of(request, type).length < of(old, type).length) refuse('remove', type);
    else if (door !== 'approval' && APPROVAL_CONDITIONS.includes(type)) {
      if (of(request, type).length > of(old, type).length) refuse('add', type);
      else if (!isDeepStrictEqual(of(request, type), of(old, type))) refuse('modify', type);
    }
  }
  const [after, before] = [request.status?.certificate ?? '', old.status?.certificate ?? ''];
  if (after !== before && door !== 'status') {
    errors.push(forbidden('status.certificate', 'updates may not set certificate content'));
  } else if (after !== before && before !== '') {
    errors.push(forbidden('status.certificate', 'updates may not modify existing certificate content'));
  }
  return errors;
}

/** Refuses (403) an approval or denial by someone who may not `approve` for the signer. */
export function checkApproval(authorizer: Authorizer, user: User, old: CertificateSigningRequest): void {
  checkSignerVerb(authorizer, user, old, 'approve');
}

/** Refuses (403) a certificate or condition from someone who may not `sign` for the signer. */
export function checkSigning(
  authorizer: Authorizer,
  user: User,
  request: CertificateSigningRequest,
  old: CertificateSigningRequest,
): void {
  const part = ({ status }: CertificateSigningRequest) => [status?.certificate ?? '', status?.conditions ?? []];
  if (!isDeepStrictEqual(part(request), part(old))) checkSignerVerb(authorizer, user, old, 'sign');
}

/** The PKCS#10 request inside, its signature verified. `text` is the base64 of its PEM. */
export function readSigningRequest(
  text: string,
): { ok: true; request: CertificateRequest } | { ok: false; why: string } {
  try {
    return { ok: true, request: readCertificateRequest(Buffer.from(text ?? '', 'base64').toString('latin1')) };
  } catch (error) {
    return { ok: false, why: error instanceof Error ? error.message : String(error) };
  }
}

function checkSignerVerb(
  authorizer: Authorizer,
  user: User,
  old: CertificateSigningRequest,
  verb: 'approve' | 'sign',
): void {
  const { signerName } = old.spec;
  const everySigner = `${signerName.split('/')[0]}/*`;
  const question = {
    user,
    verb,
    group: CERTIFICATES_GROUP,
    version: '*',
    resource: 'signers',
    subresource: '',
    namespace: '',
  };
  const mayDo = (name: string) => isAllowed(authorizer, { ...question, name });
  if (mayDo(signerName) || mayDo(everySigner)) return;
  const why = `user not permitted to ${verb} requests with signerName ${JSON.stringify(signerName)}`;
  throw forbiddenObject(CERTIFICATES_GROUP, RESOURCE, old.metadata?.name ?? '', why);
}

function usageErrors(usages: readonly string[]): FieldError[] {
  if (usages.length === 0) return [required('spec.usages')];
  return usages.flatMap((usage, index) => {
    const path = `spec.usages[${index}]`;
    if (!USAGES.includes(usage)) return [unsupported(path, usage, USAGES)];
    return usages.indexOf(usage) < index ? [duplicate(path, usage)] : [];
  });
}

function signerNameErrors(name: string | undefined): FieldError[] {
  const path = 'spec.signerName';
  if (name === undefined || name === '') return [required(path)];
  if (name === LEGACY_SIGNER) return [invalid(path, name, 'the legacy signerName is not allowed via this API version')];
  const [domain, rest, ...more] = name.split('/');
  if (domain === undefined || rest === undefined || more.length > 0) {
    return [invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")];
  }
  const errors: FieldError[] = [];
  const check = (part: string) => {
    const [error] = subdomainErrors(part);
    if (error !== undefined) errors.push(invalid(path, part, `validating label ${JSON.stringify(part)}: ${error}`));
  };
  check(domain);
  if (!domain.includes('.')) {
    errors.push(invalid(path, domain, 'should be a domain with at least two segments separated by dots'));
  }
  check(rest);
  if (name.length > LONGEST_SIGNER_NAME) errors.push(tooLong(path, LONGEST_SIGNER_NAME));
  return errors;
}

function conditionErrors(conditions: readonly CertificateSigningRequestCondition[]): FieldError[] {
  const errors: FieldError[] = [];
  const types = conditions.map(condition => condition.type);
  conditions.forEach(({ type, status }, index) => {
    const path = `status.conditions[${index}]`;
    const allowed = LASTING_CONDITIONS.includes(type) ? ['True'] : ['False', 'True', 'Unknown'];
    if (!type) errors.push(required(`${path}.type`));
    if (!status) errors.push(required(`${path}.status`));
    else if (!allowed.includes(status)) errors.push(unsupported(`${path}.status`, status, allowed));
    if (types.indexOf(type) < index) errors.push(duplicate(`${path}.type`, type));
  });
  if (APPROVAL_CONDITIONS.every(type => types.includes(type))) {
    errors.push(invalid('status.conditions', 'Denied', 'Approved and Denied conditions are mutually exclusive'));
  }
  return errors;
}

function whyNotCertificates(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    const [bad] = readCertificates(Buffer.from(text, 'base64').toString('latin1')).skipped;
    return bad === undefined ? undefined : `only CERTIFICATE PEM blocks are allowed, found ${JSON.stringify(bad.type)}`;
  } catch (error) {
    if (isPkiError(error, 'NO_CERTIFICATES')) return 'must contain at least one CERTIFICATE PEM block';
    return error instanceof Error ? error.message : String(error);
  }
}

function withTimes(
  conditions: readonly CertificateSigningRequestCondition[],
  old: readonly CertificateSigningRequestCondition[],
  now: Date,
): CertificateSigningRequestCondition[] {
  const stamp = formatRfc3339(now);
  return conditions.map(condition => {
    const before = old.find(({ type, status }) => type === condition.type && status === condition.status);
    return {
      ...condition,
      lastUpdateTime: condition.lastUpdateTime ?? stamp,
      lastTransitionTime: condition.lastTransitionTime ?? before?.lastTransitionTime ?? stamp,
    };
  });
}
