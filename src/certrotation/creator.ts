import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { addMs, instantOf } from '../kube/time.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import type { Certificate } from '../pki/certificate.ts';
import { describeCertificates } from '../pki/describe.ts';
import { hostnamesOf } from '../pki/hosts.ts';
import { type CertificateHook, issueClient, issueIntermediate, issuePeer, issueServing } from '../pki/issue.ts';
import type { KeyAlgorithm, Keys } from '../pki/keys.ts';
import type { UserInfo } from '../pki/user.ts';
import { type Annotations, HOSTNAMES, ISSUER } from './annotations.ts';
import {
  type Decision,
  decideByDeadlines,
  expiry,
  latestPossibleTime,
  quote,
  readValidity,
  refreshTime,
  regenerate,
} from './decision.ts';
import { hostnameDifference } from './hostnames.ts';
import { annotationsOf } from './secret.ts';

/** Knows one kind of target: how to make it, when it is stale, what to note on it. Creators compose (spec 10, 6). */
export interface CertCreator {
  make(request: MakeRequest): Promise<CertificateAndKey>;
  decide(question: TargetQuestion): Decision;
  /** Annotations that belong to the new certificate. */
  annotations(certificate: Certificate): Annotations;
  /** Notices that the answer of `decide` may have changed; ends quietly when `signal` aborts. */
  changes?(signal: AbortSignal): AsyncIterable<void>;
}

export interface MakeRequest {
  readonly signer: CertificateAndKey;
  /** The wanted lifetime; the certificate ends with its signer at the latest (V-3). */
  readonly lifetimeMs: number;
  readonly now: Date;
  readonly keys: Keys;
  readonly algorithm: KeyAlgorithm;
}

/** Everything a decision about a target rests on. */
export interface TargetQuestion {
  /** Undefined when the Secret does not exist. */
  readonly secret: Secret | undefined;
  /** Empty when it is not known, as in a file without its neighbours: then it counts as old enough (T-8). */
  readonly signer: readonly Certificate[];
  /** Undefined when it is not known: then T-7 is not asked. A controller always knows it (W-2). */
  readonly bundle: readonly Certificate[] | undefined;
  readonly refreshMs: number;
  readonly refreshOnlyWhenExpired: boolean;
  readonly now: Date;
}

/** Host names as a fixed list, or a function that is asked at every decision (C-1). */
export type Hostnames = readonly string[] | (() => Iterable<string>);

export interface ServingOptions {
  readonly hostnames: Hostnames;
  readonly hooks?: readonly CertificateHook[] | undefined;
  readonly changes?: CertCreator['changes'] | undefined;
}

/** A client certificate for a user (spec 10, 6.1). */
export function clientCreator(user: UserInfo): CertCreator {
  return {
    make: request => issueClient({ ...request, user }),
    decide: decideByTimeAndIssuer,
    annotations: () => ({}),
  };
}

/** A serving certificate for host names that may change (spec 10, 6.2). */
export function servingCreator(options: ServingOptions): CertCreator {
  return hostCreator(options, (request, hostnames) =>
    issueServing({ ...request, hostnames, hooks: options.hooks ?? [] }),
  );
}

/** A certificate for both ends of a connection (spec 10, 6.4). */
export function peerCreator(options: ServingOptions & { readonly user?: UserInfo | undefined }): CertCreator {
  return hostCreator(options, (request, hostnames) =>
    issuePeer({ ...request, hostnames, ...(options.user && { user: options.user }), hooks: options.hooks ?? [] }),
  );
}

/** An intermediate CA (spec 10, 6.3). */
export function signerCreator(signerName: string): CertCreator {
  return {
    make: request => {
      const commonName = `${signerName}_@${Math.floor(request.now.getTime() / 1000)}`;
      return issueIntermediate({ ...request, commonName });
    },
    decide: decideByTimeAndIssuer,
    annotations: () => ({}),
  };
}

/** The rules every target has: T-1 to T-8. */
export function decideByTimeAndIssuer(question: TargetQuestion): Decision {
  const { secret, signer, bundle, refreshMs, now } = question;
  const annotations = secret && annotationsOf(secret);
  const validity = readValidity(annotations);
  if ('action' in validity) return validity;
  const expired = expiry('T-2', validity);
  if (question.refreshOnlyWhenExpired) return decideByDeadlines([expired], now);
  const signerOldEnough = signer[0] && addMs(instantOf(signer[0].notBefore), refreshMs / 10);
  const byTime = decideByDeadlines(
    [expired, latestPossibleTime('T-4', validity), refreshTime('T-5', validity, refreshMs, signerOldEnough)],
    now,
  );
  if (byTime.action === 'regenerate') return byTime;
  const issuer = annotations?.[ISSUER];
  if (!issuer) return regenerate('T-6', 'missing issuer name');
  if (bundle && !bundle.some(certificate => certificate.subject.commonName === issuer)) {
    const reason = `issuer ${quote(issuer)}, not in ca bundle:\n${describeCertificates(bundle, now)}`;
    return regenerate('T-7', reason);
  }
  return byTime;
}

function hostCreator(
  options: ServingOptions,
  make: (request: MakeRequest, hostnames: readonly string[]) => Promise<CertificateAndKey>,
): CertCreator {
  const { hostnames, changes } = options;
  const required = typeof hostnames === 'function' ? hostnames : () => hostnames;
  return {
    // Read once a generation, so that CN, SANs and annotation come from the same set (trap 14.19).
    make: async request => make(request, [...required()]),
    decide: question => {
      const decision = decideByTimeAndIssuer(question);
      if (decision.action !== 'keep' || question.secret === undefined) return decision;
      const difference = hostnameDifference(annotationsOf(question.secret)[HOSTNAMES], required());
      return difference === undefined ? decision : regenerate('H-1', difference);
    },
    annotations: certificate => ({ [HOSTNAMES]: hostnamesOf(certificate).join(',') }),
    ...(changes === undefined ? {} : { changes }),
  };
}
