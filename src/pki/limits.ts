/** Upper bounds of everything that comes in. Past one of them a function throws `PkiError` with code `TOO_LARGE`. */

/** A ConfigMap or Secret holds 1 MiB at most; this leaves room for bundles read from files. */
export const MAX_PEM_CHARACTERS = 4 * 1024 * 1024;

export const MAX_CERTIFICATE_BYTES = 64 * 1024;

export const MAX_BUNDLE_CERTIFICATES = 10_000;

export const MAX_EXTENSIONS = 100;

/** Skipped PEM blocks that are named one by one; a warning need not list more. */
export const MAX_SKIPPED_REPORTED = 100;

export const MAX_HOSTNAMES = 1000;

/** The longest name DNS can carry (RFC 1035). */
export const MAX_HOSTNAME_CHARACTERS = 253;

export const MAX_GROUPS = 1000;

/** Far above X.520's 64, which the certificates of a cluster exceed (spec 10, 5.1). */
export const MAX_SUBJECT_VALUE_CHARACTERS = 1024;

/** Larger RSA keys only serve to make the reader slow; Go refuses them in TLS as well. */
export const MAX_RSA_BITS = 8192;

export const MAX_CHAIN_LENGTH = 10;

/** Signatures checked in search of one chain, the same bound as Go's. */
export const MAX_CHAIN_SIGNATURE_CHECKS = 100;

/** Key generations that may wait for their turn. */
export const MAX_WAITING_GENERATIONS = 10_000;
