import type { BoundObjectReference, TokenRequest } from 'kubernetes-types/authentication/v1.d.ts';
import type { ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { Clock } from '../../kube/clock.ts';
import { hours, minutes, seconds } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { type FieldError, invalid, invalidObject } from '../schema/field-error.ts';
import type { TokenBinding, TokenIssuer, TokenSubjects } from './service-account.ts';

const DEFAULT_LIFETIME_SECONDS = hours(1) / seconds(1);
const SHORTEST_LIFETIME_SECONDS = minutes(10) / seconds(1);
const LONGEST_LIFETIME_SECONDS = 2 ** 32;

export interface TokenRequestContext {
  readonly account: ServiceAccount;
  readonly issuer: TokenIssuer;
  readonly subjects: TokenSubjects;
  /** For requests that name no audience. */
  readonly apiAudiences: readonly string[];
  readonly clock: Clock;
  /** Longer requests are cut to this. */
  readonly maxLifetimeMs?: number | undefined;
}

/** Answers `POST .../serviceaccounts/<name>/token`: the request with the token in its status. */
export function answerTokenRequest(request: TokenRequest, context: TokenRequestContext): TokenRequest {
  const { account, apiAudiences, clock, maxLifetimeMs = Number.POSITIVE_INFINITY } = context;
  const { name = '', namespace = '', uid } = account.metadata ?? {};
  const spec = request.spec ?? { audiences: [] };
  checkTarget(request, account);
  const audiences = spec.audiences === undefined || spec.audiences.length === 0 ? [...apiAudiences] : spec.audiences;
  const requested = spec.expirationSeconds ?? DEFAULT_LIFETIME_SECONDS;
  const errors = lifetimeErrors(requested);
  if (errors.length > 0) throw invalidObject('authentication.k8s.io', 'TokenRequest', '', errors);
  const binding =
    spec.boundObjectRef === undefined ? {} : bindingTo(spec.boundObjectRef, name, namespace, context.subjects);
  const expirationSeconds = Math.min(requested, Math.floor(maxLifetimeMs / seconds(1)));
  const now = clock.now();
  const token = context.issuer.issue(account, audiences, seconds(expirationSeconds), binding);
  return {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: {
      ...request.metadata,
      name,
      namespace,
      ...(uid === undefined ? {} : { uid }),
      creationTimestamp: formatRfc3339(now),
    },
    spec: { ...spec, audiences, expirationSeconds },
    status: { token, expirationTimestamp: formatRfc3339(new Date(now.getTime() + seconds(expirationSeconds))) },
  };
}

function checkTarget({ metadata }: TokenRequest, account: ServiceAccount): void {
  const { name = '', namespace = '', uid } = account.metadata ?? {};
  const errors: FieldError[] = [];
  if (metadata?.name && metadata.name !== name) {
    errors.push(invalid('metadata.name', metadata.name, 'must match the service account name if specified'));
  }
  if (metadata?.namespace && metadata.namespace !== namespace) {
    errors.push(
      invalid('metadata.namespace', metadata.namespace, 'must match the service account namespace if specified'),
    );
  }
  if (errors.length > 0) throw invalidObject('authentication.k8s.io', 'TokenRequest', name, errors);
  if (metadata?.uid && metadata.uid !== uid) {
    const why = `the UID in the token request (${metadata.uid}) does not match the UID of the service account (${uid ?? ''})`;
    throw conflict('TokenRequest.authentication.k8s.io', name, why);
  }
}

function lifetimeErrors(lifetime: number): FieldError[] {
  const field = 'spec.expirationSeconds';
  if (!Number.isInteger(lifetime)) return [invalid(field, lifetime, 'must be a whole number of seconds')];
  if (lifetime < SHORTEST_LIFETIME_SECONDS) {
    return [invalid(field, lifetime, 'may not specify a duration less than 10 minutes')];
  }
  if (lifetime > LONGEST_LIFETIME_SECONDS) {
    return [invalid(field, lifetime, 'may not specify a duration larger than 2^32 seconds')];
  }
  return [];
}

function bindingTo(
  reference: BoundObjectReference,
  account: string,
  namespace: string,
  subjects: TokenSubjects,
): TokenBinding {
  const { kind = '', apiVersion = '', name = '', uid } = reference;
  if (apiVersion !== 'v1' && apiVersion !== '')
    throw badRequest(`cannot bind token to object of type ${apiVersion}, Kind=${kind}`);
  switch (kind) {
    case 'Pod': {
      const pod = found(subjects.pod(namespace, name), 'pods', kind, name, uid);
      if (pod.spec?.serviceAccountName !== account) {
        const quoted = JSON.stringify(account);
        throw badRequest(
          `cannot bind token for serviceaccount ${quoted} to pod running with different serviceaccount name.`,
        );
      }
      const nodeName = pod.spec?.nodeName ?? '';
      const node = nodeName === '' ? undefined : (subjects.node(nodeName) ?? { metadata: { name: nodeName } });
      return { pod, node };
    }
    case 'Secret':
      return { secret: found(subjects.secret(namespace, name), 'secrets', kind, name, uid) };
    case 'Node':
      return { node: found(subjects.node(name), 'nodes', kind, name, uid) };
    default:
      throw badRequest(`cannot bind token to object of type /v1, Kind=${kind}`);
  }
}

function found<T extends KubeObject>(
  object: T | undefined,
  plural: string,
  kind: string,
  name: string,
  uid?: string,
): T {
  if (object === undefined) {
    throw new KubeError(404, 'NotFound', `${plural} ${JSON.stringify(name)} not found`, { name, kind: plural });
  }
  if (uid !== undefined && uid !== '' && uid !== object.metadata?.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw conflict(kind, name, why);
  }
  return object;
}

function conflict(resource: string, name: string, why: string): KubeError {
  const message = `Operation cannot be fulfilled on ${resource} ${JSON.stringify(name)}: ${why}`;
  return new KubeError(409, 'Conflict', message, { name, kind: resource });
}

function badRequest(message: string): KubeError {
  return new KubeError(400, 'BadRequest', message);
}
