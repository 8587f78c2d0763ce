import type { SelfSubjectReview, TokenReview, UserInfo } from 'kubernetes-types/authentication/v1.d.ts';
import { KubeError } from '../../kube/error.ts';
import type { Authenticator } from './authenticate.ts';
import type { User } from './user.ts';

/** Tells whose token it is. A token that does not hold is an answer, not an error. The token itself is not sent back. */
export function answerTokenReview(
  review: TokenReview,
  authenticator: Pick<Authenticator, 'authenticateToken'>,
  apiAudiences: readonly string[],
): TokenReview {
  const { token = '', audiences = [] } = review.spec;
  if (token === '') throw new KubeError(400, 'BadRequest', 'token is required for TokenReview in authentication');
  const answer = authenticator.authenticateToken(token, audiences.length === 0 ? apiAudiences : audiences);
  if (!answer.ok) return { ...review, status: { authenticated: false, error: 'invalid bearer token' } };
  return {
    ...review,
    status: { authenticated: true, user: userInfoOf(answer.user), audiences: [...answer.audiences] },
  };
}

/** Tells callers who they are (`kubectl auth whoami`). */
export function answerSelfSubjectReview(review: SelfSubjectReview, user: User): SelfSubjectReview {
  return { ...review, status: { userInfo: userInfoOf(user) } };
}

/** The form users have inside objects. */
export function userInfoOf({ name, uid, groups, extra }: User): UserInfo {
  return {
    username: name,
    ...(uid === '' ? {} : { uid }),
    groups: [...groups],
    ...(Object.keys(extra).length === 0
      ? {}
      : { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) }),
  };
}
