import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import { formatGoDuration } from '../kube/duration.ts';
import type { KeyAlgorithm } from '../pki/keys.ts';
import type { AdditionalAnnotations } from './annotations.ts';
import type { CertCreator } from './creator.ts';
import { CertRotationError } from './error.ts';

/** What S, B and T have in common (spec 10, 2.1 to 2.3). */
export interface ObjectConfig {
  readonly namespace: string;
  readonly name: string;
  readonly owner?: OwnerReference | undefined;
  readonly additionalAnnotations?: AdditionalAnnotations | undefined;
  /** Recovery mode: replace only what is expired or unusable, leave metadata alone. */
  readonly refreshOnlyWhenExpired?: boolean | undefined;
}

/** How long a certificate lives, and at which age it is replaced. */
export interface RotationPolicy {
  readonly validityMs: number;
  readonly refreshMs: number;
  readonly refreshOnlyWhenExpired?: boolean | undefined;
}

export interface SignerConfig extends ObjectConfig, RotationPolicy {
  /** Never delete and recreate the Secret, not even to change its type (spec 10, 8.4). */
  readonly useSecretUpdateOnly?: boolean | undefined;
  /** For new keys only; a stored key of another kind is never a reason to rotate. */
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
}

export type BundleConfig = ObjectConfig;

export interface TargetConfig extends SignerConfig {
  readonly creator: CertCreator;
}

/** One signer, one bundle, one target: what one controller keeps in order. */
export interface RotationUnit {
  readonly name: string;
  readonly signer: SignerConfig;
  readonly bundle: BundleConfig;
  readonly target: TargetConfig;
}

/** Refuses what would rotate on every sync (spec 10, X-4 and trap 14.8). Every ensure procedure asks again. */
export function requireValidPolicy(config: SignerConfig): void {
  for (const field of ['validityMs', 'refreshMs'] as const) {
    const value = config[field];
    if (Number.isFinite(value) && value > 0) continue;
    const name = `${field === 'validityMs' ? 'Validity' : 'Refresh'} of ${config.namespace}/${config.name}`;
    throw new CertRotationError('INVALID_CONFIG', `${name} must be more than 0s, found ${formatGoDuration(value)}`);
  }
}

/** Checks a unit once, when it is put together. */
export function rotationUnit(unit: RotationUnit): RotationUnit {
  requireValidPolicy(unit.signer);
  requireValidPolicy(unit.target);
  return unit;
}
