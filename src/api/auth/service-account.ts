import { randomUUID, timingSafeEqual } from 'node:crypto';
import type { Node, Pod, Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { Clock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { type Claims, type SigningKey, signJwt, unverifiedClaims, type VerificationKey, verifyJwt } from './jwt.ts';
import type { TokenAnswer, TokenAuthenticator } from './token.ts';
import { serviceAccountUser, serviceAccountUserName, type User } from './user.ts';

/** The issuer of tokens that live in Secrets of type `kubernetes.io/service-account-token` and never expire. */
export const LEGACY_ISSUER = 'kubernetes/serviceaccount';

export interface TokenBinding {
  readonly pod?: Pod | undefined;
  readonly secret?: Secret | undefined;
  /** With a pod: where it runs, for information. Alone: the token dies with the node. */
  readonly node?: Node | undefined;
}

export interface TokenIssuer {
  readonly issuer: string;
  /** A token for a service account that expires after `lifetimeMs` and dies with the object it is bound to. */
  issue(account: ServiceAccount, audiences: readonly string[], lifetimeMs: number, binding?: TokenBinding): string;
  /** The token of a Secret of type `kubernetes.io/service-account-token`: good as long as the Secret holds it. */
  issueForSecret(account: ServiceAccount, secretName: string): string;
}

/** Issues with the current key; `key` is asked each time because keys rotate. */
export function createTokenIssuer(options: { issuer: string; key: () => SigningKey; clock: Clock }): TokenIssuer {
  const { issuer, key, clock } = options;
  return {
    issuer,
    issue(account, audiences, lifetimeMs, { pod, secret, node } = {}) {
      const now = Math.floor(clock.now().getTime() / 1000);
      const [namespace, name] = nameOf(account);
      const claims = {
        aud: audiences,
        exp: now + Math.floor(lifetimeMs / 1000),
        iat: now,
        iss: issuer,
        jti: randomUUID(),
        'kubernetes.io': {
          namespace,
          ...(node === undefined ? {} : { node: referenceTo(node) }),
          ...(pod === undefined ? {} : { pod: referenceTo(pod) }),
          ...(secret === undefined ? {} : { secret: referenceTo(secret) }),
          serviceaccount: referenceTo(account),
        },
        nbf: now,
        sub: serviceAccountUserName(namespace, name),
      };
      return signJwt(claims, key());
    },
    issueForSecret(account, secretName) {
      const [namespace, name] = nameOf(account);
      const claims = {
        iss: LEGACY_ISSUER,
        'kubernetes.io/serviceaccount/namespace': namespace,
        'kubernetes.io/serviceaccount/secret.name': secretName,
        'kubernetes.io/serviceaccount/service-account.name': name,
        'kubernetes.io/serviceaccount/service-account.uid': account.metadata?.uid ?? '',
        sub: serviceAccountUserName(namespace, name),
      };
      return signJwt(claims, key());
    },
  };
}

/** Finds what a token speaks of; the server answers from its store, synchronously. */
export interface TokenSubjects {
  serviceAccount(namespace: string, name: string): ServiceAccount | undefined;
  secret(namespace: string, name: string): Secret | undefined;
  pod(namespace: string, name: string): Pod | undefined;
  node(name: string): Node | undefined;
}

export interface TokenVerifierOptions {
  /** The first is the one we issue with, the others are still accepted. */
  readonly issuers: readonly string[];
  /** Asked at each token because keys rotate; several may be good at a time. */
  readonly keys: () => readonly VerificationKey[];
  /** What a legacy token, which names no audience, is good for. */
  readonly apiAudiences: readonly string[];
  readonly subjects: TokenSubjects;
  readonly clock: Clock;
}

/** An object whose deletion has begun keeps its tokens this long, so that it can say goodbye. */
const DELETION_GRACE_MS = seconds(60);
/** A token from the future is good if it is only this far ahead: the clock may have been set back a little. */
const FUTURE_LEEWAY_MS = seconds(60);

/** Accepts tokens of service accounts that exist, bound to objects that exist. */
export function createTokenVerifier(options: TokenVerifierOptions): TokenAuthenticator {
  return {
    authenticateToken(token, audiences) {
      const issuer = unverifiedClaims(token)?.iss;
      const isLegacy = issuer === LEGACY_ISSUER;
      if (!isLegacy && !options.issuers.includes(issuer as string)) return undefined;
      const verified = verifyJwt(token, options.keys());
      if (!verified.ok) return verified;
      return isLegacy
        ? verifyLegacyClaims(options, token, verified.claims, audiences)
        : verifyClaims(options, verified.claims, audiences);
    },
  };
}

function verifyClaims(
  { subjects, clock }: TokenVerifierOptions,
  claims: Claims,
  wanted: readonly string[],
): TokenAnswer {
  const now = clock.now();
  const [expires, notBefore] = [timeOf(claims.exp), timeOf(claims.nbf)];
  if (expires === undefined) return refuse('service account token does not say when it expires');
  if (now.getTime() >= expires) return refuse('service account token has expired');
  if (notBefore !== undefined && now.getTime() + FUTURE_LEEWAY_MS < notBefore)
    return refuse('service account token is not valid yet');
  const tokenAudiences = new Set([claims.aud].flat());
  const audiences = wanted.filter(audience => tokenAudiences.has(audience));
  if (audiences.length === 0) return refuse('token audiences are not among those accepted here');

  const bound = objectOf(claims['kubernetes.io']);
  const namespace = textOf(bound.namespace);
  const account = objectOf(bound.serviceaccount);
  const accountName = textOf(account.name);
  if (claims.sub !== serviceAccountUserName(namespace, accountName))
    return refuse('sub claim is not the service account');
  const [pod, secret, node] = [bound.pod, bound.secret, bound.node].map(reference =>
    reference === undefined ? undefined : objectOf(reference),
  );
  const checks: [kind: string, reference: Claims | undefined, found: () => KubeObject | undefined][] = [
    ['service account', account, () => subjects.serviceAccount(namespace, accountName)],
    ['secret', secret, () => subjects.secret(namespace, textOf(secret?.name))],
    ['pod', pod, () => subjects.pod(namespace, textOf(pod?.name))],
    // Beside a pod the node is information only: the token lives as long as the pod.
    ['node', pod === undefined ? node : undefined, () => subjects.node(textOf(node?.name))],
  ];
  for (const [kind, reference, found] of checks) {
    const why = reference === undefined ? undefined : whyGone(kind, reference, found(), now);
    if (why !== undefined) return refuse(why);
  }
  const user = serviceAccountUser(namespace, accountName, textOf(account.uid), extraOf(claims, pod, node));
  return { ok: true, user, audiences };
}

function verifyLegacyClaims(
  { subjects, apiAudiences }: TokenVerifierOptions,
  token: string,
  claims: Claims,
  wanted: readonly string[],
): TokenAnswer {
  const claim = (name: string) => textOf(claims[`kubernetes.io/serviceaccount/${name}`]);
  const [namespace, secretName] = [claim('namespace'), claim('secret.name')];
  const [name, uid] = [claim('service-account.name'), claim('service-account.uid')];
  if (claims.sub !== serviceAccountUserName(namespace, name)) return refuse('sub claim is not the service account');
  const secret = subjects.secret(namespace, secretName);
  if (secret === undefined || secret.metadata?.deletionTimestamp !== undefined)
    return refuse('token has been invalidated');
  const stored = Buffer.from(secret.data?.token ?? '', 'base64');
  const given = Buffer.from(token);
  if (stored.length !== given.length || !timingSafeEqual(stored, given))
    return refuse("token does not match server's copy");
  const account = subjects.serviceAccount(namespace, name);
  if (account === undefined || account.metadata?.deletionTimestamp !== undefined)
    return refuse('service account has been deleted');
  if (account.metadata?.uid !== uid) return refuse('service account UID does not match claim');
  const audiences = wanted.filter(audience => apiAudiences.includes(audience));
  if (audiences.length === 0) return refuse('token audiences are not among those accepted here');
  return { ok: true, user: serviceAccountUser(namespace, name, uid), audiences };
}

function whyGone(kind: string, reference: Claims, found: KubeObject | undefined, now: Date): string | undefined {
  if (found === undefined) return `${kind} the token is for does not exist`;
  if (found.metadata?.uid !== textOf(reference.uid)) return `${kind} the token is for has been created anew since`;
  const deletion = found.metadata?.deletionTimestamp;
  if (deletion === undefined) return undefined;
  const gone = now.getTime() - new Date(deletion).getTime() > DELETION_GRACE_MS;
  return gone ? `${kind} the token is for has been deleted` : undefined;
}

function extraOf(claims: Claims, pod: Claims | undefined, node: Claims | undefined): User['extra'] {
  const extra: Record<string, readonly string[]> = {};
  const add = (name: string, value: unknown) => {
    if (typeof value === 'string' && value !== '') extra[`authentication.kubernetes.io/${name}`] = [value];
  };
  if (typeof claims.jti === 'string') add('credential-id', `JTI=${claims.jti}`);
  add('node-name', node?.name);
  add('node-uid', node?.uid);
  add('pod-name', pod?.name);
  add('pod-uid', pod?.uid);
  return extra;
}

function referenceTo(object: KubeObject): { name: string; uid?: string } {
  const { name = '', uid } = object.metadata ?? {};
  return uid === undefined ? { name } : { name, uid };
}

function nameOf(account: ServiceAccount): [namespace: string, name: string] {
  const { namespace, name } = account.metadata ?? {};
  if (namespace === undefined || name === undefined)
    throw new TypeError('a service account without namespace or name gets no token');
  return [namespace, name];
}

/** Seconds since 1970, as JSON Web Tokens count, to milliseconds. */
function timeOf(claim: unknown): number | undefined {
  return typeof claim === 'number' && Number.isFinite(claim) ? claim * 1000 : undefined;
}

function objectOf(claim: unknown): Claims {
  return typeof claim === 'object' && claim !== null ? (claim as Claims) : {};
}

function textOf(claim: unknown): string {
  return typeof claim === 'string' ? claim : '';
}

function refuse(why: string): TokenAnswer {
  return { ok: false, why };
}
