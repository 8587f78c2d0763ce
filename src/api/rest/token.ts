import type { TokenRequest } from 'kubernetes-types/authentication/v1.d.ts';
import type { ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { writeRequest } from '../admission/admission.ts';
import { checkNodeRestriction } from '../auth/node-restriction.ts';
import { answerTokenRequest } from '../auth/token-request.ts';
import type { Call, Core } from './core.ts';
import { get } from './read.ts';

/** Answers `serviceaccounts/token`. */
export function requestToken(core: Core, call: Call, body: KubeObject): KubeObject {
  const account = get(core, call).object as ServiceAccount;
  checkNodeRestriction(writeRequest('CREATE', call, body), core.lister);
  return answerTokenRequest(body as unknown as TokenRequest, {
    account,
    issuer: core.tokens,
    subjects: core.lister,
    apiAudiences: core.apiAudiences,
    clock: core.clock,
  });
}
