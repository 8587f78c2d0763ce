import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

export type JwtAlgorithm = 'RS256' | 'ES256';
export type Claims = Readonly<Record<string, unknown>>;

/** A private key and the id that its tokens carry. */
export interface SigningKey {
  readonly key: KeyObject;
  readonly id: string;
  readonly algorithm: JwtAlgorithm;
}

/** A public key that tokens are accepted from. */
export interface VerificationKey {
  readonly key: KeyObject;
  readonly id: string;
  readonly algorithm: JwtAlgorithm;
}

export type JwtAnswer =
  | { readonly ok: true; readonly claims: Claims }
  /** `why` is safe to log: it never holds any part of the token. */
  | { readonly ok: false; readonly why: string };

/** Longer than any token we issue; nobody makes us decode more. */
export const MAX_TOKEN_LENGTH = 16 * 1024;
const MIN_RSA_BITS = 2048;

/** Wraps an RSA or P-256 private key for signing. Throws `TypeError` for any other key. */
export function signingKey(key: KeyObject): SigningKey {
  const publicKey = createPublicKey(key);
  return { key, id: keyId(publicKey), algorithm: algorithmFor(publicKey) };
}

/** Wraps an RSA or P-256 public key (or the public half of a private one). Throws `TypeError` for any other key. */
export function verificationKey(key: KeyObject): VerificationKey {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return { key: publicKey, id: keyId(publicKey), algorithm: algorithmFor(publicKey) };
}

/** A compact JSON Web Signature over the claims. */
export function signJwt(claims: Claims, { key, id, algorithm }: SigningKey): string {
  const signed = `${encode(JSON.stringify({ alg: algorithm, kid: id }))}.${encode(JSON.stringify(claims))}`;
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

/**
 * Checks the signature only: which issuer, audience and time are right is for the caller. The key named by `kid` is
 * tried, and all keys when none has that name. The algorithm is the key's, never the token's choice.
 */
export function verifyJwt(token: string, keys: readonly VerificationKey[]): JwtAnswer {
  const parts = splitJwt(token);
  if (parts === undefined) return { ok: false, why: 'not a JSON Web Token' };
  const { header, claims, signed, signature } = parts;
  if ('crit' in header) return { ok: false, why: 'token has critical header fields, none of which is known' };
  const named = keys.filter(candidate => candidate.id === header.kid);
  const usable = (named.length > 0 ? named : keys).filter(candidate => candidate.algorithm === header.alg);
  if (usable.length === 0) return { ok: false, why: 'no key for the algorithm of the token' };
  const data = Buffer.from(signed);
  const holds = usable.some(({ key }) => verify('sha256', data, { key, dsaEncoding: 'ieee-p1363' }, signature));
  return holds ? { ok: true, claims } : { ok: false, why: 'the signature does not hold for any key' };
}

/** The claims without any check, to find out whose token it is. Undefined when it is not a JSON Web Token. */
export function unverifiedClaims(token: string): Claims | undefined {
  return splitJwt(token)?.claims;
}

/** The public keys as a JSON Web Key Set, for relying parties that verify tokens themselves. */
export function jsonWebKeySet(keys: readonly VerificationKey[]): { keys: object[] } {
  return {
    keys: keys.map(({ key, id, algorithm }) => ({
      use: 'sig',
      kid: id,
      alg: algorithm,
      ...key.export({ format: 'jwk' }),
    })),
  };
}

interface JwtParts {
  readonly header: Claims;
  readonly claims: Claims;
  readonly signed: string;
  readonly signature: Buffer;
}

function splitJwt(token: string): JwtParts | undefined {
  if (token.length > MAX_TOKEN_LENGTH) return undefined;
  const [header, payload, signature, ...rest] = token.split('.');
  if (header === undefined || payload === undefined || signature === undefined || rest.length > 0) return undefined;
  const [headerFields, claims, signatureBytes] = [decodeObject(header), decodeObject(payload), decode(signature)];
  if (headerFields === undefined || claims === undefined || signatureBytes === undefined) return undefined;
  return { header: headerFields, claims, signed: `${header}.${payload}`, signature: signatureBytes };
}

/** The id Kubernetes gives a key: the hash of its public half. */
function keyId(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url');
}

function algorithmFor(publicKey: KeyObject): JwtAlgorithm {
  const { modulusLength, namedCurve } = publicKey.asymmetricKeyDetails ?? {};
  if (publicKey.asymmetricKeyType === 'rsa' && modulusLength !== undefined && modulusLength >= MIN_RSA_BITS)
    return 'RS256';
  if (publicKey.asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') return 'ES256';
  throw new TypeError(
    `tokens are signed with RSA of ${MIN_RSA_BITS} bits or more, or P-256; this key is ${publicKey.asymmetricKeyType ?? publicKey.type} ${modulusLength ?? namedCurve ?? ''}`.trim(),
  );
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url');
}

/** Node decodes garbage without complaint, so the text must be what the bytes encode to. */
function decode(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

function decodeObject(text: string): Claims | undefined {
  const bytes = decode(text);
  if (bytes === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Claims) : undefined;
  } catch {
    return undefined;
  }
}
