import type { Access, Connection } from '../../kube/access.ts';
import { HttpKube } from '../../kube/client.ts';
import { KubeError } from '../../kube/error.ts';

/** Who somebody is to the API. */
export interface Identity {
  readonly user: string;
  readonly groups: readonly string[];
}

/** Longer texts are no tokens. */
const LONGEST_TOKEN = 16 * 1024;

/** The same API, reached as whoever holds the token and as nobody else: no client certificate, no other header goes along. */
export function accessWithToken(base: Access, token: string): Access {
  let last: { readonly from: Connection; readonly made: Connection } | undefined;
  return {
    namespace: base.namespace,
    async connection() {
      const from = await base.connection();
      if (last?.from === from) return last.made;
      const { ca, serverName, insecure } = from.tls;
      const made = {
        server: from.server,
        tls: { ca, serverName, insecure },
        headers: { authorization: `Bearer ${token}` },
      };
      last = { from, made };
      return made;
    },
    refused: () => false,
  };
}

export function isToken(text: unknown): text is string {
  return typeof text === 'string' && text.length > 0 && text.length <= LONGEST_TOKEN && /^[\x21-\x7e]+$/.test(text);
}

/** Asks the API who the caller is. Undefined: it does not know the caller. */
export async function whoAmI(kube: HttpKube): Promise<Identity | undefined> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  try {
    const review = (await kube.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body })) as {
      status?: { userInfo?: { username?: string; groups?: string[] } };
    };
    const { username = '', groups = [] } = review.status?.userInfo ?? {};
    return username === '' || username === 'system:anonymous' ? undefined : { user: username, groups };
  } catch (error) {
    if (error instanceof KubeError && (error.code === 401 || error.code === 403)) return undefined;
    throw error;
  }
}
