import type { Status } from 'kubernetes-types/meta/v1.d.ts';

/** A failure the API answered with: its HTTP code, its `Status` reason and its message. */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  readonly code: number;
  readonly reason: string;
  readonly details: Status['details'] | undefined;

  constructor(code: number, reason: string, message: string, details?: Status['details']) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  static fromStatus(status: Status, httpCode: number): KubeError {
    const code = status.code ?? httpCode;
    return new KubeError(
      code,
      status.reason ?? 'Unknown',
      status.message ?? `the server answered ${code}`,
      status.details,
    );
  }
}

/** The API could not be asked, or its answer did not arrive whole: nothing is known about what the server did. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  /** `ECONNREFUSED`, `ECONNRESET`, `UND_ERR_SOCKET`, ... or one of ours: `TIMEOUT`, `ANSWER_TOO_LARGE`, `BAD_ANSWER`, `CLOSED`. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export function isNotFound(error: unknown): error is KubeError {
  return error instanceof KubeError && error.reason === 'NotFound';
}

export function isAlreadyExists(error: unknown): error is KubeError {
  return error instanceof KubeError && error.reason === 'AlreadyExists';
}

/** The object changed since it was read. `AlreadyExists` carries the same HTTP code and is not a conflict. */
export function isConflict(error: unknown): error is KubeError {
  return error instanceof KubeError && error.reason === 'Conflict';
}

/** The resource version asked for has been compacted away; list again. */
export function isGone(error: unknown): error is KubeError {
  return error instanceof KubeError && (error.code === 410 || error.reason === 'Expired' || error.reason === 'Gone');
}

/** The server is not as far as the version asked for: it was restored from a backup, or started anew. */
export function isVersionTooLarge(error: unknown): error is KubeError {
  return (
    error instanceof KubeError &&
    (error.details?.causes ?? []).some(cause => cause.reason === 'ResourceVersionTooLarge')
  );
}

/** Worth trying again unchanged: no answer, a failing server or one that is too busy. Other 4xx answers are final. */
export function isTransient(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof KubeError && (error.code >= 500 || error.code === 429));
}

/** Allowed to nobody who asks so; for a moment also from a server that has only just started and does not know its roles yet. */
export function isForbidden(error: unknown): error is KubeError {
  return error instanceof KubeError && error.code === 403;
}
