import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import type { RotationUnit, SignerConfig } from '../certrotation/config.ts';
import type { Rotation } from '../certrotation/ensure.ts';
import { annotationsOf, loadSecret } from '../certrotation/secret.ts';
import { decideSigner } from '../certrotation/signer.ts';
import { signerChanged } from '../certrotation/signer-change.ts';
import { parseGoDuration } from '../kube/duration.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import { type CertificateAndKey, requireCA } from '../pki/authority.ts';
import type { Certificate } from '../pki/certificate.ts';
import { certificatesIn } from '../pki/pem.ts';
import { caDigest } from '../trust/receipts.ts';
import { type FamilyLeaf, type FamilyQuestion, isGood } from './decide.ts';
import { BESIDE, SHOWN, TAKEN_BACK, TOOK, TURNED_ROUND } from './names.ts';

/** One signer with everything that is signed by it: the units that share it. */
export interface Family {
  readonly signer: SignerConfig;
  readonly units: readonly [RotationUnit, ...RotationUnit[]];
}

/** The objects of a family as they are at one moment. */
export interface FamilyObjects {
  readonly signer: Secret | undefined;
  readonly next: Secret | undefined;
  /** The pair that signed before, as long as its CA is in the bundle. */
  readonly previous: Secret | undefined;
  readonly bundle: ConfigMap | undefined;
  readonly leaves: readonly Secret[];
}

/** What stands in the objects of a family; the rest of `decide`'s question are receipts, presenters and the time. */
export type FamilyState = Omit<FamilyQuestion, 'receipts' | 'presenters' | 'dayMs' | 'now' | 'next'> & {
  readonly next: CertificateAndKey | undefined;
  readonly previous: CertificateAndKey | undefined;
};

/** The units by the signer they share, in their order. */
export function familiesOf(units: readonly RotationUnit[]): Family[] {
  const bySigner = Map.groupBy(units, ({ signer }) => `${signer.namespace}/${signer.name}`);
  return [...bySigner.values()].map(sharing => {
    const [first, ...others] = sharing as [RotationUnit, ...RotationUnit[]];
    return { signer: first.signer, units: [first, ...others] };
  });
}

/** The Secret of the key pair that is to sign next (HO-4). */
export function nextKey({ namespace, name }: Pick<SignerConfig, 'namespace' | 'name'>) {
  return { namespace, name: `${name}-next` };
}

/** The Secret of the key pair that signed before, for as long as the hand-over can be turned round (HO-6). */
export function previousKey({ namespace, name }: Pick<SignerConfig, 'namespace' | 'name'>) {
  return { namespace, name: `${name}-previous` };
}

export async function readFamily(
  { signer, units }: Family,
  { objects }: Pick<Rotation, 'objects'>,
): Promise<FamilyObjects> {
  const { namespace, name } = signer;
  const [{ bundle }] = units;
  const leaves = await Promise.all(
    units.map(({ target }) => objects.read(SECRETS, { namespace: target.namespace, name: target.name })),
  );
  return {
    signer: await objects.read(SECRETS, { namespace, name }),
    next: await objects.read(SECRETS, nextKey(signer)),
    previous: await objects.read(SECRETS, previousKey(signer)),
    bundle: await objects.read(CONFIG_MAPS, { namespace: bundle.namespace, name: bundle.name }),
    leaves: leaves.filter(leaf => leaf !== undefined),
  };
}

/** What the objects say. */
export function stateOf(objects: FamilyObjects, policy: SignerConfig, now: Date): FamilyState {
  const pair = (secret: Secret | undefined) => usable(secret, now, loadSecret);
  return { ...sightOf(objects, policy, now, loadSecret), next: pair(objects.next), previous: pair(objects.previous) };
}

/** A pair as far as somebody sees it: the operators with its key, people without. Throws where it cannot be used. */
type OpenPair<P extends OpenedPair> = (secret: Secret) => P;
type OpenedPair = Pick<CertificateAndKey, 'chain'>;

/** The same for those who see no keys, such as the commands that show it. */
export function sightOf(
  objects: FamilyObjects,
  policy: SignerConfig,
  now: Date,
  open: OpenPair<OpenedPair>,
): Omit<FamilyQuestion, 'receipts' | 'presenters' | 'dayMs' | 'now'> {
  const { signer, next, previous, bundle, leaves } = objects;
  const current = usable(signer, now, open)?.chain[0];
  const byRules = decideSigner(signer, policy, now);
  const nextCertificate = usable(next, now, open)?.chain[0];
  const before = usable(previous, now, open)?.chain[0];
  const isWanted = signer !== undefined && annotationsOf(signer)[TURNED_ROUND] !== undefined;
  const held = certificatesIn(bundle?.data?.[BUNDLE_KEY]);
  const known = [current, nextCertificate].filter(certificate => certificate !== undefined);
  return {
    current,
    next: nextCertificate,
    due: byRules.action === 'regenerate' ? byRules.reason : undefined,
    isTakenBack: next !== undefined && annotationsOf(next)[TAKEN_BACK] !== undefined,
    isTurnedRound: isWanted && before !== undefined && canSignAgain(before, { current, held, now }),
    isNextUnused: next !== undefined && current !== undefined && annotationsOf(next)[BESIDE] === caDigest(current),
    leaves: leaves.flatMap(secret => leafOf(secret, current, now, open)),
    bundle: held,
    retiring: held.filter(ca => ca.notAfter > now && !known.some(({ der }) => der.equals(ca.der))),
    isShown: signer !== undefined && current !== undefined && annotationsOf(signer)[SHOWN] === caDigest(current),
    lastTookMs: (signer && parseGoDuration(annotationsOf(signer)[TOOK] ?? '')) ?? 0,
  };
}

/** A CA that has left the bundle does not come back: somebody may be about to load the bundle without it (HO-6). */
function canSignAgain(
  before: Certificate,
  {
    current,
    held,
    now,
  }: { readonly current: Certificate | undefined; readonly held: readonly Certificate[]; readonly now: Date },
): boolean {
  return isGood(before, { now }) && !current?.der.equals(before.der) && held.some(({ der }) => der.equals(before.der));
}

function leafOf(secret: Secret, current: Certificate | undefined, now: Date, open: OpenPair<OpenedPair>): FamilyLeaf[] {
  const leaf = certificateOf(secret, open);
  if (leaf === undefined || leaf.notAfter < now) return [];
  return [
    {
      name: secret.metadata?.name ?? '',
      isOfCurrent: current !== undefined && signerChanged(secret, [current], now) === undefined,
      notBefore: leaf.notBefore,
      notAfter: leaf.notAfter,
    },
  ];
}

/** The pair in a signer's Secret, if it can sign at this moment. */
function usable<P extends OpenedPair>(secret: Secret | undefined, now: Date, open: OpenPair<P>): P | undefined {
  if (secret === undefined) return undefined;
  try {
    const pair = open(secret);
    requireCA(pair);
    const [certificate] = pair.chain;
    return certificate !== undefined && now <= certificate.notAfter ? pair : undefined;
  } catch {
    return undefined;
  }
}

function certificateOf(secret: Secret, open: OpenPair<OpenedPair>): Certificate | undefined {
  try {
    return open(secret).chain[0];
  } catch {
    return undefined;
  }
}
