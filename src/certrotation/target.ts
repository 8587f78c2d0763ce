import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import type { Certificate } from '../pki/certificate.ts';
import { requireValidPolicy, type TargetConfig } from './config.ts';
import { type Decision, isRequest, regenerate } from './decision.ts';
import { decidePrepared, prepareSecret, type Rotation } from './ensure.ts';
import { CertRotationError } from './error.ts';
import { storeSecret } from './recreate.ts';
import { DEFAULT_KEY_ALGORITHM, loadSecret, withCertificate } from './secret.ts';
import { keepUsable } from './signer.ts';

export type TargetResult =
  | {
      readonly outcome: 'ready';
      readonly secret: Secret;
      readonly regenerated: boolean;
      readonly decision: Decision;
    }
  | { readonly outcome: 'lost' };

/** Decides about a target Secret (undefined: it does not exist) given the current signer and bundle. */
export function decideTarget(
  secret: Secret | undefined,
  signer: readonly Certificate[],
  bundle: readonly Certificate[] | undefined,
  policy: Pick<TargetConfig, 'creator' | 'refreshMs' | 'refreshOnlyWhenExpired'>,
  now: Date,
): Decision {
  const { creator, refreshMs, refreshOnlyWhenExpired = false } = policy;
  const decision = creator.decide({ secret, signer, bundle, refreshMs, refreshOnlyWhenExpired, now });
  if (secret !== undefined && refreshOnlyWhenExpired && isRequest(decision)) return keepUsable(secret, decision, now);
  if (decision.action !== 'keep' || secret === undefined || refreshOnlyWhenExpired) return decision;
  const problem = contentProblem(secret, now);
  return problem === undefined ? decision : regenerate('X-3', problem);
}

/** Makes sure of the target (spec 10, 7.3). Throws when it cannot be made; the stored one then stays as it is. */
export async function ensureTarget(
  config: TargetConfig,
  signer: CertificateAndKey,
  bundle: readonly Certificate[],
  rotation: Rotation,
): Promise<TargetResult> {
  requireValidPolicy(config);
  const now = rotation.clock.now();
  const prepared = await prepareSecret(config, rotation);
  if (prepared === undefined) return { outcome: 'lost' };
  const decision = decidePrepared(prepared, decideTarget(prepared.before, signer.chain, bundle, config, now));
  let wanted = prepared.secret;
  if (decision.action === 'regenerate') {
    const message = `"${config.name}" in "${config.namespace}" requires a new target cert/key pair: ${decision.reason}`;
    rotation.events.event('Normal', 'TargetUpdateRequired', message);
    wanted = await withNewCertificate(wanted, config, signer, now, rotation);
  }
  const stored = await storeSecret(prepared.before, wanted, config, rotation);
  if (stored === undefined) return { outcome: 'lost' };
  if (decision.action !== 'regenerate') return { outcome: 'ready', secret: stored, regenerated: false, decision };
  const next = decideTarget(stored, signer.chain, bundle, config, now);
  return { outcome: 'ready', secret: stored, regenerated: true, decision: next };
}

/** The Secret with a new certificate of the current signer and the annotations that belong to it. */
async function withNewCertificate(
  secret: Secret,
  config: TargetConfig,
  signer: CertificateAndKey,
  now: Date,
  { keys }: Rotation,
): Promise<Secret> {
  const { creator, validityMs, keyAlgorithm: algorithm = DEFAULT_KEY_ALGORITHM } = config;
  const certificate = await creator.make({ signer, lifetimeMs: validityMs, now, keys, algorithm });
  const leaf = certificate.chain[0] as Certificate;
  requireWithinSigner(leaf, signer.chain[0] as Certificate);
  const dated = withCertificate(secret, certificate, 'target', config.refreshMs);
  const annotations = { ...dated.metadata?.annotations, ...creator.annotations(leaf) };
  return { ...dated, metadata: { ...dated.metadata, annotations } };
}

/** The last guard before a certificate is stored, whatever creator made it (V-3). */
function requireWithinSigner(leaf: Certificate, signer: Certificate): void {
  if (leaf.notAfter <= signer.notAfter) return;
  const message = `certificate "${leaf.subject.commonName}" would outlive its signer "${signer.subject.commonName}"`;
  throw new CertRotationError('INVARIANT', message);
}

/** What makes the stored content useless although the annotations are fine. */
function contentProblem(secret: Secret, now: Date): string | undefined {
  try {
    const { chain } = loadSecret(secret);
    const notAfter = chain[0]?.notAfter as Date;
    return now > notAfter ? `the certificate expired at ${notAfter.toISOString()}, before its annotation` : undefined;
  } catch (error) {
    return `unusable content: ${(error as Error).message}`;
  }
}
