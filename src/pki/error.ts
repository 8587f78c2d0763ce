/** Stable codes of everything that can go wrong with keys and certificates. Callers branch on these, never on texts. */
export type PkiErrorCode =
  | 'PEM_INVALID'
  | 'DER_INVALID'
  | 'CERTIFICATE_INVALID'
  | 'NO_CERTIFICATES'
  | 'CERT_MISSING'
  | 'KEY_MISSING'
  | 'KEY_INVALID'
  | 'KEY_UNSUPPORTED'
  | 'KEY_MISMATCH'
  | 'NOT_A_CA'
  | 'SIGNER_EXPIRED'
  | 'OUTLIVES_SIGNER'
  | 'NO_HOSTNAMES'
  | 'HOSTNAME_INVALID'
  | 'SUBJECT_INVALID'
  | 'VALIDITY_INVALID'
  | 'TEMPLATE_INVALID'
  | 'HOOK_FAILED'
  | 'REQUEST_INVALID'
  | 'SIGNATURE_INVALID'
  | 'BUNDLE_EMPTY'
  | 'BUSY'
  | 'TOO_LARGE';

/** The only error this folder throws on bad input. The message never contains key material. */
export class PkiError extends Error {
  override readonly name = 'PkiError';
  readonly code: PkiErrorCode;

  constructor(code: PkiErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Tells a `PkiError`, optionally of one code, from any other thrown value. */
export function isPkiError(error: unknown, code?: PkiErrorCode): error is PkiError {
  return error instanceof PkiError && (code === undefined || error.code === code);
}
