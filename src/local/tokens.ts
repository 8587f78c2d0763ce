import { ADMIN } from '../api/embedded.ts';
import type { Engine } from '../api/engine.ts';
import { requestToken } from '../api/rest/token.ts';
import type { IssueToken } from './volumes.ts';

type ServiceAccountKey = { readonly namespace: string; readonly name: string };

/** Tokens of service accounts, bound to the pod that gets them, from whatever answers a TokenRequest. */
export function issueTokens(ask: (account: ServiceAccountKey, request: object) => unknown): IssueToken {
  return async ({ namespace, serviceAccount, audiences, expirationSeconds, pod }) => {
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        audiences: [...audiences],
        expirationSeconds,
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid },
      },
    };
    const { status } = (await ask({ namespace, name: serviceAccount }, request)) as {
      status?: { token: string; expirationTimestamp: string };
    };
    if (status === undefined) throw new Error(`the API issued no token for ${namespace}/${serviceAccount}`);
    return { token: status.token, expiresAt: new Date(status.expirationTimestamp) };
  };
}

/** Has the embedded API issue them. */
export function engineTokens({ core }: Engine): IssueToken {
  return issueTokens((account, request) => {
    const kind = core.registry.find('', 'v1', 'serviceaccounts');
    if (kind === undefined) throw new Error('the API does not know service accounts');
    return requestToken(core, { user: ADMIN, kind, ...account, subresource: 'token', warn: () => {} }, request);
  });
}
