import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { REFRESH_PERIOD } from '../../certrotation/annotations.ts';
import { heldIn } from '../../certrotation/bundle.ts';
import type { Rotation } from '../../certrotation/ensure.ts';
import { bringBack, storeSecret } from '../../certrotation/recreate.ts';
import { annotationsOf, loadSecret, TLS_CERT, TLS_KEY, TLS_SECRET } from '../../certrotation/secret.ts';
import { ensureSigner } from '../../certrotation/signer.ts';
import { RetryRequest } from '../../controller/reconcile.ts';
import { SECRETS } from '../../kube/resource.ts';
import { type CertificateAndKey, ownCertificate, requireCA } from '../../pki/authority.ts';
import { FAMILY_TABLE } from '../cert-table.ts';
import { bundleConfig, type CertificateOptions, wantedSigner } from '../certificates.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE } from '../names.ts';
import type { Family } from '../profile.ts';
import { failedAt } from './failure.ts';

/** A signer, and what its Secret says about it. */
export interface SignerPair extends CertificateAndKey {
  /** Made by a controller that hands over by itself; the second CA of 4.16 was not (it wrote no refresh period). */
  readonly isMeantForUse: boolean;
  /** When it is replaced. */
  readonly until: Date | undefined;
}

/** The signer leaves are signed with; undefined when there is none. Throws when it cannot be used. */
export function readInUse(family: Family, rotation: Rotation): Promise<SignerPair | undefined> {
  return readSigner({ namespace: CONFIG_NAMESPACE, name: FAMILY_TABLE[family].signer }, rotation);
}

/** The wanted signer as it is, never made or replaced. */
export function readWanted(family: Family, rotation: Rotation): Promise<SignerPair | undefined> {
  return readSigner({ namespace: ETCD_NAMESPACE, name: FAMILY_TABLE[family].signer }, rotation);
}

async function readSigner(
  key: { namespace: string; name: string },
  rotation: Rotation,
): Promise<SignerPair | undefined> {
  let secret: Secret | 'never set aside' | 'lost';
  try {
    secret = (await rotation.objects.read(SECRETS, key)) ?? (await bringBack(key, rotation));
  } catch (error) {
    throw failedAt(`error getting ${key.namespace}/${key.name}`, error);
  }
  if (secret === 'lost') throw new RetryRequest(`secret ${key.namespace}/${key.name} was written by somebody else`);
  return secret === 'never set aside' ? undefined : pairOf(secret, undefined);
}

/** Keeps the wanted signer fresh (spec 40, S-5 and L-1 to L-3). */
export async function ensureWanted(
  family: Family,
  options: CertificateOptions,
  rotation: Rotation,
): Promise<SignerPair> {
  const config = wantedSigner(family, options);
  try {
    const others = () => heldIn(bundleConfig(family), rotation);
    const result = await ensureSigner(config, rotation, undefined, others);
    if (result.outcome === 'lost')
      throw new RetryRequest(`secret ${config.namespace}/${config.name} was written by somebody else`);
    const secret = await rotation.objects.read(SECRETS, config);
    const until = result.decision.action === 'keep' ? result.decision.until : undefined;
    return { ...result.signer, isMeantForUse: secret !== undefined && isMeantForUse(secret), until };
  } catch (error) {
    throw failedAt(FAMILY_TABLE[family].errors.signer, error);
  }
}

/** Makes the wanted signer the one in use: what an administrator does by hand in 4.16 (spec 40, R-2). */
export async function promote(
  family: Family,
  wanted: SignerPair,
  rotation: Rotation,
  because: string,
): Promise<SignerPair> {
  const { signer: name } = FAMILY_TABLE[family];
  const source = await rotation.objects.read(SECRETS, { namespace: ETCD_NAMESPACE, name });
  const { subject, der } = ownCertificate(wanted);
  if (source === undefined || !ownCertificate(loadSecret(source)).der.equals(der)) {
    throw new RetryRequest(`secret ${ETCD_NAMESPACE}/${name} changed while it was to be put to use`);
  }
  const before = await rotation.objects.read(SECRETS, { namespace: CONFIG_NAMESPACE, name });
  const { labels = {}, annotations = {} } = source.metadata ?? {};
  const promoted: Secret = {
    ...before,
    metadata: {
      ...(before?.metadata ?? { namespace: CONFIG_NAMESPACE, name }),
      labels: { ...before?.metadata?.labels, ...labels },
      annotations: { ...(before === undefined ? {} : annotationsOf(before)), ...annotations },
    },
    type: TLS_SECRET,
    data: { [TLS_CERT]: source.data?.[TLS_CERT] ?? '', [TLS_KEY]: source.data?.[TLS_KEY] ?? '' },
  };
  const message = `"${name}" in "${CONFIG_NAMESPACE}" becomes "${subject.commonName}" because ${because}`;
  rotation.events.event('Normal', 'SignerInUseChanged', message);
  const config = { namespace: CONFIG_NAMESPACE, name, validityMs: 1, refreshMs: 1 };
  const stored = await storeSecret(before, promoted, config, rotation);
  if (stored === undefined) throw new RetryRequest(`secret ${CONFIG_NAMESPACE}/${name} was written by somebody else`);
  return pairOf(stored, wanted.until);
}

function pairOf(secret: Secret, until: Date | undefined): SignerPair {
  const pair = loadSecret(secret);
  requireCA(pair);
  return { ...pair, isMeantForUse: isMeantForUse(secret), until };
}

function isMeantForUse(secret: Secret): boolean {
  return annotationsOf(secret)[REFRESH_PERIOD] !== undefined;
}
