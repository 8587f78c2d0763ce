import type { Certificate } from './certificate.ts';
import { isPkiError } from './error.ts';
import { ANY_EXTENDED_KEY_USAGE, OID } from './extensions.ts';
import { hostMatches } from './host-match.ts';
import { MAX_CHAIN_LENGTH, MAX_CHAIN_SIGNATURE_CHECKS } from './limits.ts';
import { isSignedBy } from './signature.ts';

export interface ChainQuestion {
  readonly leaf: Certificate;
  /** What the peer sent along, in any order. */
  readonly intermediates?: readonly Certificate[] | undefined;
  /** What is trusted. Every one is an anchor, self-signed or not, the leaf itself included. */
  readonly roots: readonly Certificate[];
  readonly now: Date;
  /** `any` unless told otherwise. */
  readonly usage?: 'clientAuth' | 'serverAuth' | 'any' | undefined;
  /** A DNS name or IP address the leaf must be good for. */
  readonly host?: string | undefined;
}

export type ChainFailure =
  | 'NOT_YET_VALID'
  | 'EXPIRED'
  | 'HOST_MISMATCH'
  | 'UNSUPPORTED_EXTENSION'
  | 'UNKNOWN_AUTHORITY'
  | 'NOT_A_CA'
  | 'PATH_TOO_LONG'
  | 'BAD_SIGNATURE'
  | 'WRONG_USAGE'
  | 'TOO_MANY_CANDIDATES';

export type ChainAnswer =
  /** From the leaf to the anchor, both included. */
  | { readonly ok: true; readonly chain: readonly Certificate[] }
  | { readonly ok: false; readonly code: ChainFailure; readonly reason: string };

/**
 * Builds a chain from the leaf to an anchor and verifies it, with the rules and the leniency of Go's crypto/x509, because
 * that is what the components of a cluster verify with: names match byte for byte, dates are inclusive, CA flag and path
 * length bind, a CA's extended key usages bind everything below it, SHA-1 signatures do not count. Revocation is not
 * looked at; name constraints are not understood, so a chain through a CA that has them is refused.
 */
export function verifyChain(question: ChainQuestion): ChainAnswer {
  const { leaf, roots, host } = question;
  const problem = problemOf(leaf, [], question.now, 'leaf');
  if (problem) return problem;
  if (host !== undefined && !hostMatches(leaf, host)) {
    const names = [...leaf.ipAddresses, ...leaf.dnsNames].join(', ') || 'no names at all';
    return failure('HOST_MISMATCH', `${named(leaf)} is good for ${names}, not for ${JSON.stringify(host)}`);
  }
  if (roots.some(root => root.der.equals(leaf.der))) return checkUsage([leaf], question);
  return new Search(question).from([leaf]);
}

class Search {
  readonly #question: ChainQuestion;
  #checksLeft = MAX_CHAIN_SIGNATURE_CHECKS;
  /** The first thing that spoke against a certificate of the right name: a better answer than "unknown authority". */
  #hint: Failed | undefined;

  constructor(question: ChainQuestion) {
    this.#question = question;
  }

  from(path: readonly Certificate[]): ChainAnswer {
    const last = path.at(-1)!;
    const issuers = (pool: readonly Certificate[]) => pool.filter(({ subject }) => subject.der.equals(last.issuer.der));
    for (const root of issuers(this.#question.roots)) {
      const rejected = this.#reject(root, path, 'root');
      const answer = rejected ?? checkUsage([...path, root], this.#question);
      if (answer.ok) return answer;
      this.#hint ??= answer;
    }
    // Room is needed for the intermediate and for an anchor above it.
    const room = path.length <= MAX_CHAIN_LENGTH - 2;
    for (const intermediate of room ? issuers(this.#question.intermediates ?? []) : []) {
      if (path.some(known => isSameAuthority(known, intermediate))) continue;
      const rejected = this.#reject(intermediate, path, 'intermediate');
      const answer = rejected ?? this.from([...path, intermediate]);
      if (answer.ok) return answer;
      this.#hint ??= answer;
    }
    return (
      this.#hint ?? failure('UNKNOWN_AUTHORITY', `${named(last)} is signed by ${issuerOf(last)}, which is not known`)
    );
  }

  #reject(parent: Certificate, path: readonly Certificate[], role: Role): Failed | undefined {
    if (this.#checksLeft-- <= 0) {
      const limit = `more than ${MAX_CHAIN_SIGNATURE_CHECKS} signatures to check`;
      return (this.#hint = failure('TOO_MANY_CANDIDATES', `the certificates given lead to ${limit}`));
    }
    return signatureProblem(path.at(-1)!, parent) ?? problemOf(parent, path, this.#question.now, role);
  }
}

type Role = 'leaf' | 'intermediate' | 'root';
type Failed = Extract<ChainAnswer, { ok: false }>;

const failure = (code: ChainFailure, reason: string): Failed => ({ ok: false, code, reason });

const named = (certificate: Certificate): string => JSON.stringify(certificate.subject.commonName);

const issuerOf = (certificate: Certificate): string => JSON.stringify(certificate.issuer.commonName);

/** Loops among cross-signed authorities are cut where name and key come back. */
function isSameAuthority(a: Certificate, b: Certificate): boolean {
  return a.subject.der.equals(b.subject.der) && a.publicKeyInfo.equals(b.publicKeyInfo);
}

function signatureProblem(child: Certificate, parent: Certificate): Failed | undefined {
  if ((parent.version === 3 && !parent.hasBasicConstraints) || (parent.hasBasicConstraints && !parent.isCA)) {
    return failure('NOT_A_CA', `${named(parent)} signed ${named(child)} but is not a CA`);
  }
  if (parent.keyUsages.length > 0 && !parent.keyUsages.includes('keyCertSign')) {
    return failure('NOT_A_CA', `${named(parent)} signed ${named(child)} but its key is not for signing certificates`);
  }
  if (isVerified(child, parent)) return undefined;
  return failure('BAD_SIGNATURE', `the signature of ${named(child)} was not made by ${named(parent)}`);
}

/** Who signed what does not change: the same few chains are verified all the time. */
const known = new WeakMap<Certificate, WeakMap<Certificate, boolean>>();

function isVerified(child: Certificate, parent: Certificate): boolean {
  const ofChild = known.get(child) ?? new WeakMap<Certificate, boolean>();
  known.set(child, ofChild);
  const found = ofChild.get(parent) ?? verify(child, parent);
  ofChild.set(parent, found);
  return found;
}

function verify(child: Certificate, parent: Certificate): boolean {
  try {
    return isSignedBy(child, parent.publicKey);
  } catch (error) {
    if (isPkiError(error)) return false;
    throw error;
  }
}

function problemOf(certificate: Certificate, path: readonly Certificate[], now: Date, role: Role): Failed | undefined {
  const { notBefore, notAfter, pathLength } = certificate;
  const unsupported = certificate.extensions.find(
    ({ oid, critical }) => oid === OID.nameConstraints || (critical && !UNDERSTOOD.has(oid)),
  );
  if (unsupported) {
    return failure(
      'UNSUPPORTED_EXTENSION',
      `${named(certificate)} has the extension ${unsupported.oid}, which is not understood`,
    );
  }
  if (now < notBefore) {
    return failure(
      'NOT_YET_VALID',
      `${named(certificate)} begins at ${notBefore.toISOString()}, now is ${now.toISOString()}`,
    );
  }
  if (now > notAfter) {
    return failure('EXPIRED', `${named(certificate)} ended at ${notAfter.toISOString()}, now is ${now.toISOString()}`);
  }
  if (role === 'intermediate' && !certificate.isCA) return failure('NOT_A_CA', `${named(certificate)} is not a CA`);
  const below = path.length - 1;
  if (pathLength !== undefined && below > pathLength) {
    return failure('PATH_TOO_LONG', `${named(certificate)} allows ${pathLength} CAs below it, found ${below}`);
  }
  return undefined;
}

/** Critical extensions that are either checked here or do not restrict us: certificate policies, CRL locations. */
const UNDERSTOOD = new Set<string>([...Object.values(OID), '2.5.29.31', '2.5.29.32']);

function checkUsage(chain: readonly Certificate[], { usage = 'any' }: ChainQuestion): ChainAnswer {
  const restricting = chain.find(
    ({ extKeyUsages }) =>
      usage !== 'any' &&
      extKeyUsages.length > 0 &&
      !extKeyUsages.includes(usage) &&
      !extKeyUsages.includes(ANY_EXTENDED_KEY_USAGE),
  );
  if (!restricting) return { ok: true, chain };
  return failure(
    'WRONG_USAGE',
    `${named(restricting)} is for ${restricting.extKeyUsages.join(', ')}, not for ${usage}`,
  );
}
