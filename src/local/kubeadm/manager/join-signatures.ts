import { createHmac } from 'node:crypto';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { isNotFound } from '../../../kube/error.ts';
import type { Kube } from '../../../kube/port.ts';
import { CONFIG_MAPS, keyOf, SECRETS } from '../../../kube/resource.ts';
import { floorToMs, parseRfc3339 } from '../../../kube/time.ts';

/** A token with which a node may join. */
export interface JoinToken {
  readonly id: string;
  readonly secret: string;
  readonly signs: boolean;
  /** Undefined: it never ends. */
  readonly endsAt: Date | undefined;
  readonly object: Secret;
}

const TYPE = 'bootstrap.kubernetes.io/token';
const SIGNATURE = 'jws-kubeconfig-';
const KUBECONFIG = 'kubeconfig';

export function joinTokensIn(secrets: readonly Secret[]): JoinToken[] {
  return secrets.flatMap(object => {
    if (object.type !== TYPE || object.metadata?.namespace !== 'kube-system') return [];
    const field = (name: string) => Buffer.from(object.data?.[name] ?? '', 'base64').toString();
    const [id, secret, end] = [field('token-id'), field('token-secret'), parseRfc3339(field('expiration'))];
    if (!/^[a-z0-9]{6}$/.test(id) || !/^[a-z0-9]{16}$/.test(secret)) return [];
    const signs = field('usage-bootstrap-signing') === 'true';
    return [{ id, secret, signs, endsAt: end && floorToMs(end), object }];
  });
}

/** When the next of them ends. */
export function nextEnd(tokens: readonly JoinToken[], now: Date): Date | undefined {
  const ends = tokens.flatMap(({ endsAt }) => (endsAt !== undefined && endsAt > now ? [endsAt.getTime()] : []));
  return ends.length === 0 ? undefined : new Date(Math.min(...ends));
}

/** Removes tokens that have ended, and signs `cluster-info` with each of the others, as its text is now. */
export async function signClusterInfo(
  kube: Kube,
  clusterInfo: ConfigMap | undefined,
  tokens: readonly JoinToken[],
  now: Date,
): Promise<void> {
  const [ended, good] = [tokens.filter(token => hasEnded(token, now)), tokens.filter(token => !hasEnded(token, now))];
  for (const { object } of ended) {
    await kube.delete(SECRETS, keyOf(object)).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
  const text = clusterInfo?.data?.[KUBECONFIG];
  if (clusterInfo === undefined || text === undefined) return;
  const others = Object.entries(clusterInfo.data ?? {}).filter(([name]) => !name.startsWith(SIGNATURE));
  const signatures = good.filter(({ signs }) => signs).map(token => [SIGNATURE + token.id, signatureOf(text, token)]);
  const data = Object.fromEntries([...others, ...signatures]) as Record<string, string>;
  const isSame = (name: string) => data[name] === clusterInfo.data?.[name];
  if ([...Object.keys(data), ...Object.keys(clusterInfo.data ?? {})].every(isSame)) return;
  await kube.update(CONFIG_MAPS, { ...clusterInfo, data });
}

function hasEnded({ endsAt }: JoinToken, now: Date): boolean {
  return endsAt !== undefined && endsAt <= now;
}

/** A JWS whose payload is left out: whoever checks it has the text. */
function signatureOf(text: string, { id, secret }: JoinToken): string {
  const header = base64url(JSON.stringify({ alg: 'HS256', kid: id }));
  const signature = createHmac('sha256', secret)
    .update(`${header}.${base64url(text)}`)
    .digest('base64url');
  return `${header}..${signature}`;
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
