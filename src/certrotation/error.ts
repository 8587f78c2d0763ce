export type CertRotationErrorCode =
  | 'INVALID_CONFIG'
  | 'BUNDLE_UNREADABLE'
  | 'BUNDLE_WOULD_BE_EMPTY'
  | 'BUNDLE_MISSING'
  | 'INVALID_SCALE'
  | 'LOST'
  | 'SET_ASIDE_UNREADABLE'
  | 'INVARIANT';

/** A failure of the rotation library, with a code that callers and tests can rely on. */
export class CertRotationError extends Error {
  override readonly name = 'CertRotationError';
  readonly code: CertRotationErrorCode;

  constructor(code: CertRotationErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
