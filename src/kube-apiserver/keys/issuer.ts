import { days } from '../../kube/duration.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { ServiceAccountIssuer } from '../resources.ts';

export const DEFAULT_ISSUER = 'https://kubernetes.default.svc';
/** So long an issuer is trusted after another one has taken its place. */
const TRUSTED_MS = days(1);
/** With more, kube-apiserver would have too much to trust; old ones have to expire first. */
const MOST_ISSUERS = 10;

export type IssuerDecision =
  | { readonly action: 'keep'; readonly until?: Date | undefined }
  | { readonly action: 'set'; readonly issuers: readonly ServiceAccountIssuer[]; readonly event: string }
  | { readonly action: 'fail'; readonly error: string };

/**
 * What `status.serviceAccountIssuers` must be, given what the Authentication asks for: nothing when its field is empty, undefined
 * when there is none (spec 20, 8.4).
 */
export function decideIssuers(
  wanted: string | undefined,
  issuers: readonly ServiceAccountIssuer[],
  now: Date,
): IssuerDecision {
  if (!wanted && issuers.length === 1 && issuers[0]?.name === DEFAULT_ISSUER) return { action: 'keep' };
  // An object that is gone is no wish to trust nobody any more: tokens of all issuers in the list would be refused.
  if (wanted === undefined && issuers.length > 0) {
    return { action: 'fail', error: 'authentications.config.openshift.io/cluster not found' };
  }
  if (!wanted || issuers.length === 0) {
    return {
      action: 'set',
      issuers: [{ name: DEFAULT_ISSUER }],
      event: `Issuer set to default value "${DEFAULT_ISSUER}"`,
    };
  }
  const active = activeIssuer(issuers);
  if (active === wanted) return pruneExpired(issuers, now);
  const expirationTime = formatRfc3339(new Date(now.getTime() + TRUSTED_MS));
  const others = issuers
    .map(issuer => (isActive(issuer) ? { name: issuer.name, expirationTime } : issuer))
    .filter(({ name }) => name !== wanted);
  const result = [{ name: wanted }, ...others];
  if (result.length > MOST_ISSUERS) {
    const error = `expected at most ${MOST_ISSUERS} trusted service account issuers, found ${result.length}: old ones have to expire first`;
    return { action: 'fail', error };
  }
  const event = `Desired ServiceAccountIssuer "${wanted}" is now active issuer. Previous issuer "${active ?? ''}" is trusted until ${expirationTime}`;
  return { action: 'set', issuers: result, event };
}

/** The issuer that new tokens name. */
export function activeIssuer(issuers: readonly ServiceAccountIssuer[]): string | undefined {
  return issuers.find(isActive)?.name;
}

/** The issuers of older tokens. */
export function trustedIssuers(issuers: readonly ServiceAccountIssuer[]): string[] {
  return issuers.filter(issuer => !isActive(issuer)).map(({ name }) => name);
}

function isActive({ expirationTime }: ServiceAccountIssuer): boolean {
  return !expirationTime;
}

function pruneExpired(issuers: readonly ServiceAccountIssuer[], now: Date): IssuerDecision {
  const ends = ({ expirationTime }: ServiceAccountIssuer) =>
    expirationTime ? Date.parse(expirationTime) : Number.POSITIVE_INFINITY;
  const kept = issuers.filter(issuer => ends(issuer) > now.getTime());
  if (kept.length === issuers.length) {
    const next = Math.min(...issuers.map(ends));
    return { action: 'keep', until: Number.isFinite(next) ? new Date(next) : undefined };
  }
  const gone = issuers.filter(issuer => !kept.includes(issuer)).map(({ name }) => name);
  const event = `The following service account issuers were pruned and are no longer trusted: ${gone.join(',')}`;
  return { action: 'set', issuers: kept, event };
}
