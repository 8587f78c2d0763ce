import type { Status, StatusCause, StatusDetails } from 'kubernetes-types/meta/v1.d.ts';
import { KubeError } from '../kube/error.ts';

/** The resource an error speaks of: `secrets`, `deployments.apps`. */
export interface ResourceName {
  readonly group: string;
  readonly plural: string;
}

export function notFound(resource: ResourceName, name: string): KubeError {
  return new KubeError(404, 'NotFound', `${qualified(resource)} ${quote(name)} not found`, about(resource, name));
}

/** No such path: neither a resource nor anything else is served there. */
export function noSuchPath(): KubeError {
  return new KubeError(404, 'NotFound', 'the server could not find the requested resource', {});
}

export function alreadyExists(resource: ResourceName, name: string): KubeError {
  return new KubeError(
    409,
    'AlreadyExists',
    `${qualified(resource)} ${quote(name)} already exists`,
    about(resource, name),
  );
}

/** Every generated name that was tried is taken. */
export function noFreeName(resource: ResourceName, name: string): KubeError {
  const message = `${qualified(resource)} ${quote(name)} already exists, the server was not able to generate a unique name for the object`;
  return new KubeError(409, 'AlreadyExists', message, { ...about(resource, name), retryAfterSeconds: 1 });
}

export function conflict(resource: ResourceName, name: string, why: string): KubeError {
  const message = `Operation cannot be fulfilled on ${qualified(resource)} ${quote(name)}: ${why}`;
  return new KubeError(409, 'Conflict', message, about(resource, name));
}

export const STALE_OBJECT =
  'the object has been modified; please apply your changes to the latest version and try again';

export function forbidden(resource: ResourceName, name: string, why: string, causes?: StatusCause[]): KubeError {
  const subject = name === '' ? qualified(resource) : `${qualified(resource)} ${quote(name)}`;
  const details = { ...about(resource, name), ...(causes === undefined ? {} : { causes }) };
  return new KubeError(403, 'Forbidden', `${subject} is forbidden: ${why}`, details);
}

export function badRequest(message: string): KubeError {
  return new KubeError(400, 'BadRequest', message);
}

export function unauthorized(): KubeError {
  return new KubeError(401, 'Unauthorized', 'Unauthorized');
}

export function methodNotAllowed(): KubeError {
  return new KubeError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});
}

export function notAcceptable(mediaTypes: readonly string[]): KubeError {
  const message = `only the following media types are accepted: ${mediaTypes.join(', ')}`;
  return new KubeError(406, 'NotAcceptable', message);
}

export function unsupportedMediaType(mediaTypes: readonly string[]): KubeError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${mediaTypes.join(', ')}`;
  return new KubeError(415, 'UnsupportedMediaType', message);
}

/** The resource version asked for is no longer known: list again. */
export function expired(message: string): KubeError {
  return new KubeError(410, 'Expired', message);
}

/** A continue token whose revision is gone. Carries one that goes on from the same place in the collection as it is now. */
export class ExpiredTokenError extends KubeError {
  readonly token: string;

  constructor(token: string) {
    const message =
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.';
    super(410, 'Expired', message);
    this.token = token;
  }
}

/** The resource version asked for lies in the future. */
export function versionTooLarge(wanted: number, current: number): KubeError {
  const message = `Timeout: Too large resource version: ${wanted}, current: ${current}`;
  return new KubeError(504, 'Timeout', message, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
}

export function timedOut(message: string): KubeError {
  return new KubeError(504, 'Timeout', `Timeout: ${message}`, { retryAfterSeconds: 0 });
}

export function entityTooLarge(message: string): KubeError {
  return new KubeError(413, 'RequestEntityTooLarge', `Request entity too large: ${message}`);
}

export function tooManyRequests(message: string, details: StatusDetails): KubeError {
  return new KubeError(429, 'TooManyRequests', message, details);
}

export function internalError(message: string): KubeError {
  return new KubeError(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] });
}

/** The `Status` object a failure is answered with. Anything that is not a `KubeError` is a defect of ours. */
export function statusOf(error: unknown): Status & { code: number } {
  const { code, reason, message, details } = error instanceof KubeError ? error : internalError(messageOf(error));
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: error instanceof ExpiredTokenError ? { continue: error.token } : {},
    status: 'Failure',
    message,
    ...(reason === '' ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    code,
  };
}

/** `deployments.apps`; the plural alone for the core group. */
export function qualified({ group, plural }: ResourceName): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** A string as Go's `%q` prints it; the same as JSON for everything a name can hold. */
export function quote(text: string): string {
  return JSON.stringify(text);
}

function about({ group, plural }: ResourceName, name: string): StatusDetails {
  return { ...(name === '' ? {} : { name }), ...(group === '' ? {} : { group }), kind: plural };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
