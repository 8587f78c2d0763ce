import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { annotationsOf, dataText } from '../../certrotation/secret.ts';
import { isFields } from '../../kubeadm/exchange.ts';

/** A Secret with the token of a service account, which does not end by itself. */
export interface SecretToken {
  readonly secret: Secret;
  /** `<namespace>/<name>`. */
  readonly name: string;
  /** `empty`: kube-controller-manager is about to put a token in. A token that does not say which key it is of may be of an older one. */
  readonly is: 'of-current' | 'older' | 'of-others' | 'empty';
  readonly isImmutable: boolean;
  /** The day on which it was last used, as kube-apiserver has noted it. */
  readonly lastUsed: string | undefined;
}

export const TOKEN_SECRET = 'kubernetes.io/service-account-token';
export const TOKEN_FIELD = 'token';
const ACCOUNT = 'kubernetes.io/service-account.name';
const LAST_USED = 'kubernetes.io/legacy-token-last-used';
const LONGEST_TOKEN = 64 * 1024;

/** Those of these Secrets that hold such a token, by name, told apart by what has signed them. */
export function secretTokens(
  secrets: readonly Secret[],
  keys: { readonly current: string; readonly older: readonly string[] },
): SecretToken[] {
  return secrets
    .filter(secret => secret.type === TOKEN_SECRET && annotationsOf(secret)[ACCOUNT] !== undefined)
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
    .map((secret): SecretToken => {
      const { namespace = '', name = '', labels } = secret.metadata ?? {};
      const token = dataText(secret, TOKEN_FIELD) ?? '';
      return {
        secret,
        name: `${namespace}/${name}`,
        is: token === '' ? 'empty' : generationOf(signedWith(token), keys),
        isImmutable: secret.immutable === true,
        lastUsed: labels?.[LAST_USED],
      };
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function generationOf(
  signed: string | undefined,
  { current, older }: { readonly current: string; readonly older: readonly string[] },
): SecretToken['is'] {
  if (signed === current) return 'of-current';
  return signed === undefined || older.includes(signed) ? 'older' : 'of-others';
}

/** The key of a token as Kubernetes names it, which is its digest; undefined: it does not say. */
function signedWith(token: string): string | undefined {
  if (token.length > LONGEST_TOKEN) return undefined;
  const [header = ''] = token.split('.', 1);
  try {
    const found: unknown = JSON.parse(Buffer.from(header, 'base64url').toString('utf8'));
    const kid = isFields(found) ? found['kid'] : undefined;
    return typeof kid === 'string' ? Buffer.from(kid, 'base64url').toString('hex') : undefined;
  } catch {
    return undefined;
  }
}
