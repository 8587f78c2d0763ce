import { ADMIN } from '../api/embedded.ts';
import type { Engine } from '../api/engine.ts';
import { requestToken } from '../api/rest/token.ts';
import type { IssueToken } from './volumes.ts';

/** Has the embedded API issue the tokens of service accounts, bound to the pod that gets them. */
export function engineTokens({ core }: Engine): IssueToken {
  return async ({ namespace, serviceAccount, audiences, expirationSeconds, pod }) => {
    const kind = core.registry.find('', 'v1', 'serviceaccounts');
    if (kind === undefined) throw new Error('the API does not know service accounts');
    const call = { user: ADMIN, kind, namespace, name: serviceAccount, subresource: 'token', warn: () => {} };
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        audiences: [...audiences],
        expirationSeconds,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid },
      },
    };
    const { status } = requestToken(core, call, request) as { status?: { token: string; expirationTimestamp: string } };
    if (status === undefined) throw new Error(`the API issued no token for ${namespace}/${serviceAccount}`);
    return { token: status.token, expiresAt: new Date(status.expirationTimestamp) };
  };
}
