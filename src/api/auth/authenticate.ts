import type { CertificateAuthenticator } from './certificate.ts';
import type { TokenAnswer, TokenAuthenticator } from './token.ts';
import { ANONYMOUS, type User } from './user.ts';

export interface Credentials {
  /** The certificates the TLS peer sent, leaf first, DER. Not verified by TLS: listen with `rejectUnauthorized: false`. */
  readonly peerChain?: readonly Buffer[] | undefined;
  /** The `Authorization` header. */
  readonly authorization?: string | undefined;
  /** The path of the request: some need no credentials. */
  readonly path?: string | undefined;
}

export type Authentication =
  | { readonly ok: true; readonly user: User; readonly audiences: readonly string[] }
  /** Answer 401. `why` is for the log: it never holds a token, and the client does not get to see it. */
  | { readonly ok: false; readonly why: string };

export interface Authenticator {
  authenticate(credentials: Credentials): Authentication;
  /** For TokenReview: a token alone, for audiences of the caller's choice. */
  authenticateToken(token: string, audiences: readonly string[]): TokenAnswer;
}

export interface AuthenticatorOptions {
  readonly certificates?: CertificateAuthenticator | undefined;
  readonly tokens?: readonly TokenAuthenticator[] | undefined;
  /** Who we are to a token: it must be good for one of these. */
  readonly apiAudiences: readonly string[];
  /** Which paths are served to everybody. Default: health and version. */
  readonly anonymous?: ((path: string) => boolean) | undefined;
}

/**
 * Asks the client certificate first, then the bearer token. One that holds is enough; none at all is anonymous where
 * that is allowed; a bad one is refused even there.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { certificates, tokens = [], apiAudiences, anonymous = isHealthPath } = options;

  function authenticateToken(token: string, audiences: readonly string[]): TokenAnswer {
    for (const authenticator of tokens) {
      const answer = authenticator.authenticateToken(token, audiences);
      if (answer !== undefined) return answer;
    }
    return { ok: false, why: 'unknown bearer token' };
  }

  return {
    authenticateToken,
    authenticate({ peerChain = [], authorization, path = '' }) {
      const refusals: string[] = [];
      if (certificates !== undefined && peerChain.length > 0) {
        const answer = certificates.authenticateChain(peerChain);
        if (answer.ok) return { ok: true, user: answer.user, audiences: apiAudiences };
        refusals.push(answer.why);
      }
      const token = bearerToken(authorization);
      if (token !== undefined) {
        const answer = authenticateToken(token, apiAudiences);
        if (answer.ok) return answer;
        refusals.push(answer.why);
      }
      if (refusals.length > 0) return { ok: false, why: refusals.join('; ') };
      if (anonymous(path)) return { ok: true, user: ANONYMOUS, audiences: apiAudiences };
      return { ok: false, why: 'no credentials' };
    },
  };
}

/** Paths that say whether the server is well, and which version it is. */
export function isHealthPath(path: string): boolean {
  return /^\/(?:livez|readyz|healthz|version)\/?$/.test(path);
}

function bearerToken(authorization: string | undefined): string | undefined {
  const match = /^bearer +(\S+)\s*$/i.exec(authorization ?? '');
  return match?.[1];
}
