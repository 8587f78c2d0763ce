import type { Attributes } from './attributes.ts';
import { isMaster } from './user.ts';

export interface Decision {
  /** `no-opinion` from every authorizer means the request is refused. */
  readonly verdict: 'allow' | 'deny' | 'no-opinion';
  readonly reason: string;
}

export interface Authorizer {
  authorize(attributes: Attributes): Decision;
}

/** Members of `system:masters` may do everything: the way in when RBAC objects are broken. */
export const mastersAuthorizer: Authorizer = {
  authorize: ({ user }) => (isMaster(user) ? { verdict: 'allow', reason: '' } : { verdict: 'no-opinion', reason: '' }),
};

/** Asks one authorizer after the other; the first that allows or denies decides. */
export function firstDecision(...authorizers: readonly Authorizer[]): Authorizer {
  return {
    authorize(attributes) {
      const reasons: string[] = [];
      for (const authorizer of authorizers) {
        const decision = authorizer.authorize(attributes);
        if (decision.verdict !== 'no-opinion') return decision;
        if (decision.reason !== '') reasons.push(decision.reason);
      }
      return { verdict: 'no-opinion', reason: reasons.join('\n') };
    },
  };
}

export function isAllowed(authorizer: Authorizer, attributes: Attributes): boolean {
  return authorizer.authorize(attributes).verdict === 'allow';
}
