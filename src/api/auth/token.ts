import { createHash } from 'node:crypto';
import type { User } from './user.ts';
import { authenticated } from './user.ts';

/** Knows one kind of bearer token. */
export interface TokenAuthenticator {
  /**
   * Undefined when the token is not of this kind, so that another authenticator may know it. `audiences` are those the
   * token must be good for, at least one of them.
   */
  authenticateToken(token: string, audiences: readonly string[]): TokenAnswer | undefined;
}

export type TokenAnswer =
  | {
      readonly ok: true;
      readonly user: User /** Those asked for that the token is good for. */;
      readonly audiences: readonly string[];
    }
  /** `why` never holds any part of the token. */
  | { readonly ok: false; readonly why: string };

export interface StaticToken {
  readonly token: string;
  readonly user: User;
}

/** Tokens known beforehand, good for every audience. Only their hashes are kept. */
export function createStaticTokens(tokens: Iterable<StaticToken>): TokenAuthenticator {
  const users = new Map<string, User>();
  for (const { token, user } of tokens) {
    if (token === '') throw new TypeError(`the token of ${JSON.stringify(user.name)} is empty`);
    users.set(hash(token), authenticated(user));
  }
  return {
    authenticateToken(token, audiences) {
      const user = users.get(hash(token));
      return user === undefined ? undefined : { ok: true, user, audiences };
    },
  };
}

/** Comparing hashes takes the same time however much of a guess is right. */
function hash(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}
