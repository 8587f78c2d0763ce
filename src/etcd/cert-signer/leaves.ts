import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import type { TargetConfig } from '../../certrotation/config.ts';
import type { Decision } from '../../certrotation/decision.ts';
import type { Rotation } from '../../certrotation/ensure.ts';
import { dataText, loadSecret, TLS_CERT, TLS_KEY } from '../../certrotation/secret.ts';
import { decideTarget, ensureTarget } from '../../certrotation/target.ts';
import { RetryRequest } from '../../controller/reconcile.ts';
import { SECRETS } from '../../kube/resource.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { FAMILY_TABLE } from '../cert-table.ts';
import { type CertificateOptions, clientLeaf, type NodeLeaf } from '../certificates.ts';
import type { ExpirationMetrics } from '../metrics.ts';
import type { Family } from '../profile.ts';
import { failedAt } from './failure.ts';

/** `all`: whatever is due; `needed`: what somebody cannot run without. */
export type LeafScope = 'all' | 'needed';

export interface LeafContext {
  readonly signer: CertificateAndKey;
  readonly bundle: readonly Certificate[];
  readonly rotation: Rotation;
  readonly scope: LeafScope;
  /** Everybody who verifies accepts what the signer signs. */
  readonly mayIssue: boolean;
  readonly metrics: ExpirationMetrics;
}

export interface EnsuredLeaf {
  /** Undefined: it is missing and nobody may make it now. */
  readonly secret: Secret | undefined;
  readonly changed: boolean;
  /** When it is due. */
  readonly until: Date | undefined;
  /** It has run out and stays as it is. */
  readonly isExpired: boolean;
}

const UNTOUCHED: EnsuredLeaf = { secret: undefined, changed: false, until: undefined, isExpired: false };

/** The client certificate of a family. Without a signer to sign it, it stays as it is. */
export async function ensureClient(
  family: Family,
  options: CertificateOptions,
  context: LeafContext | undefined,
): Promise<EnsuredLeaf> {
  if (context === undefined) return UNTOUCHED;
  try {
    return await ensureLeaf(clientLeaf(family, options), '', context);
  } catch (error) {
    throw failedAt(FAMILY_TABLE[family].errors.client, error);
  }
}

/** One certificate of one node. */
export async function ensureNodeLeaf(
  { node, row, target }: NodeLeaf,
  context: LeafContext | undefined,
): Promise<EnsuredLeaf> {
  if (context === undefined) return UNTOUCHED;
  try {
    return await ensureLeaf(target, node, context);
  } catch (error) {
    throw failedAt(`${row.errors.sync} ${node}`, error);
  }
}

async function ensureLeaf(target: TargetConfig, node: string, context: LeafContext): Promise<EnsuredLeaf> {
  const { signer, bundle, rotation, scope, mayIssue } = context;
  if (scope === 'needed' || !mayIssue) {
    const secret = await rotation.objects.read(SECRETS, target);
    const now = rotation.clock.now();
    const decision = decideTarget(secret, signer.chain, bundle, target, now);
    if (!mayIssue || !isNeeded(decision, secret))
      return { ...UNTOUCHED, secret: usable(secret), isExpired: hasExpired(secret, now) };
  }
  const result = await ensureTarget(target, signer, bundle, rotation);
  if (result.outcome === 'lost')
    throw new RetryRequest(`secret ${target.namespace}/${target.name} was written by somebody else`);
  const { secret, regenerated: changed, decision } = result;
  const { issuer, notBefore, notAfter } = loadSecret(secret).chain[0] as Certificate;
  context.metrics.leaf({ secret: target.name, node, issuer: issuer.commonName, notBefore, notAfter });
  return { secret, changed, until: decision.action === 'keep' ? decision.until : undefined, isExpired: false };
}

function hasExpired(secret: Secret | undefined, now: Date): boolean {
  const [leaf] = certificatesIn(dataText(usable(secret) ?? {}, TLS_CERT));
  return leaf !== undefined && leaf.notAfter <= now;
}

/** Missing, expired, unusable, or for other host names: waiting would keep somebody from running. */
const NEEDED_RULES = new Set(['D-0', 'T-2', 'X-3', 'H-1', 'Y-3']);

/** Whether a leaf must be made even where nothing is to be rotated. */
export function isNeeded(decision: Decision, secret: Secret | undefined): boolean {
  return decision.action === 'regenerate' && (NEEDED_RULES.has(decision.rule) || usable(secret) === undefined);
}

function usable(secret: Secret | undefined): Secret | undefined {
  return secret?.data?.[TLS_CERT] && secret.data[TLS_KEY] ? secret : undefined;
}
