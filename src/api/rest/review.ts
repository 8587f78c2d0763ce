import type { SelfSubjectReview, TokenReview } from 'kubernetes-types/authentication/v1.d.ts';
import type {
  LocalSubjectAccessReview,
  SelfSubjectAccessReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
} from 'kubernetes-types/authorization/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import {
  answerLocalSubjectAccessReview,
  answerSelfSubjectAccessReview,
  answerSelfSubjectRulesReview,
  answerSubjectAccessReview,
} from '../auth/access-review.ts';
import { answerSelfSubjectReview, answerTokenReview } from '../auth/token-review.ts';
import { noSuchPath } from '../status.ts';
import type { Call, Core } from './core.ts';

/** Answers the kinds that are questions: nothing of them is stored. */
export function review(core: Core, { kind, user, namespace }: Call, body: KubeObject): KubeObject {
  const asked = body as unknown;
  const answer = (): unknown => {
    switch (kind.plural) {
      case 'tokenreviews':
        return answerTokenReview(asked as TokenReview, core.authenticator, core.apiAudiences);
      case 'selfsubjectreviews':
        return answerSelfSubjectReview(asked as SelfSubjectReview, user);
      case 'subjectaccessreviews':
        return answerSubjectAccessReview(asked as SubjectAccessReview, core.authorizer);
      case 'selfsubjectaccessreviews':
        return answerSelfSubjectAccessReview(asked as SelfSubjectAccessReview, user, core.authorizer);
      case 'localsubjectaccessreviews':
        return answerLocalSubjectAccessReview(asked as LocalSubjectAccessReview, namespace, core.authorizer);
      case 'selfsubjectrulesreviews':
        return answerSelfSubjectRulesReview(asked as SelfSubjectRulesReview, user, core.lister);
      default:
        throw noSuchPath();
    }
  };
  return answer() as KubeObject;
}
