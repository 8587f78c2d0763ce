import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER, NOT_BEFORE, REQUESTED_AT } from '../../certrotation/annotations.ts';
import type { SignerConfig } from '../../certrotation/config.ts';
import { annotationsOf, dataText, TLS_CERT, TLS_KEY } from '../../certrotation/secret.ts';
import type { FamilyLeaf, FamilyQuestion } from '../../hand-over/decide.ts';
import { type FamilyObjects, nextKey, previousKey, sightOf } from '../../hand-over/family.ts';
import { days } from '../../kube/duration.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import { ownCertificate } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { keyAlgorithmOf } from '../../pki/keys.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { signingKey } from '../../trust/receipts.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type SignerName } from '../chains.ts';
import type { NodeSight } from './cluster.ts';
import { bundleKey, signerKey } from './names.ts';

/** A family as its objects and the nodes show it. */
export interface FamilyState {
  readonly name: SignerName;
  readonly objects: FamilyObjects;
  readonly config: SignerConfig;
  readonly current: Certificate;
  /** Everything but what others have to be asked for. */
  readonly question: Omit<FamilyQuestion, 'receipts' | 'presenters'>;
  /** There is a key to make another CA with, and to sign; else keys stay on the nodes (KA-2). */
  readonly hasKey: boolean;
}

/** What is in namespace `rotunda-pki`. */
export interface PkiObjects {
  readonly secrets: readonly Secret[];
  readonly configMaps: readonly ConfigMap[];
}

/** A new CA replaces the one before it when so much of its life is over (KA-2). */
const REFRESH = 0.8;

/** The families whose CA is in the cluster, in the order of the table. A CA that has ended, or cannot be read, is none. */
export function familiesIn(
  objects: PkiObjects,
  nodes: readonly NodeSight[],
  now: Date,
  dayMs: number = days(1),
): readonly FamilyState[] {
  return KUBEADM_SIGNERS.flatMap(({ name }) => familyOf(name, objects, nodes, now, dayMs) ?? []);
}

function familyOf(
  name: SignerName,
  { secrets, configMaps }: PkiObjects,
  nodes: readonly NodeSight[],
  now: Date,
  dayMs: number,
): FamilyState | undefined {
  const secret = (key: { readonly name: string }) => secrets.find(({ metadata }) => metadata?.name === key.name);
  const key = signerKey(name);
  const objects: FamilyObjects = {
    signer: secret(key),
    next: secret(nextKey(key)),
    previous: secret(previousKey(key)),
    bundle: configMaps.find(({ metadata }) => metadata?.name === bundleKey(name).name),
    leaves: [],
  };
  const [signing] = certificatesIn(objects.signer && dataText(objects.signer, TLS_CERT));
  if (objects.signer === undefined || signing === undefined) return undefined;
  const config = configOf(name, signing);
  const sight = sightOf(objects, config, now, openPublic);
  if (sight.current === undefined) return undefined;
  const known = [sight.current, ...sight.bundle];
  return {
    name,
    objects,
    config,
    current: sight.current,
    hasKey: Boolean(dataText(objects.signer, TLS_KEY)),
    question: {
      ...sight,
      due: isAskedFor(objects.signer) ? 'somebody asked for it' : dueByDates(sight.current, now),
      leaves: leavesOf(name, nodes, sight.current, known, now),
      dayMs,
      now,
    },
  };
}

/** Lives as long as the one before it, and has the same kind of key. */
function configOf(name: SignerName, signing: Certificate): SignerConfig {
  const validityMs = signing.notAfter.getTime() - signing.notBefore.getTime();
  const keyAlgorithm = keyAlgorithmOf(signing.publicKey);
  return { ...signerKey(name), validityMs, refreshMs: validityMs * REFRESH, keyAlgorithm };
}

/** Somebody has asked for another CA: the dates are gone, and it is said when. Dates alone that are gone are only written again. */
function isAskedFor(signer: Secret): boolean {
  const annotations = annotationsOf(signer);
  return annotations[REQUESTED_AT] !== undefined && isWithoutDates(signer);
}

export function isWithoutDates(signer: Secret): boolean {
  const annotations = annotationsOf(signer);
  return [NOT_BEFORE, NOT_AFTER].some(name => parseRfc3339(annotations[name] ?? '') === undefined);
}

function dueByDates({ notBefore, notAfter }: Certificate, now: Date): string | undefined {
  const dueMs = notBefore.getTime() + REFRESH * (notAfter.getTime() - notBefore.getTime());
  return now.getTime() > dueMs ? `four fifths of its life are over` : undefined;
}

/** The leaves that nodes show. What is of none of the family's CAs is somebody else's, and counts as one that nobody waits for. */
function leavesOf(
  signer: SignerName,
  nodes: readonly NodeSight[],
  current: Certificate,
  known: readonly Certificate[],
  now: Date,
): readonly FamilyLeaf[] {
  const chains = KUBEADM_CHAINS.filter(chain => chain.signer === signer);
  return nodes.flatMap(({ name: node, report }) =>
    chains.flatMap(({ name }): FamilyLeaf[] => {
      const leaf = report?.leaves[name];
      const [notBefore, notAfter] = [momentOf(leaf?.notBefore), momentOf(leaf?.notAfter)];
      if (leaf === undefined || notBefore === undefined || notAfter === undefined || notAfter < now) return [];
      const isOfOlder =
        leaf.issuer !== signingKey(current) && known.some(ca => signingKey(ca) === leaf.issuer && ca !== current);
      return [{ name: `${name} on ${node}`, isOfCurrent: !isOfOlder, notBefore, notAfter }];
    }),
  );
}

function momentOf(text: string | undefined): Date | undefined {
  const moment = parseRfc3339(text ?? '');
  return moment && floorToMs(moment);
}

/** Where keys are is looked at when one is needed: with keys on nodes there is none here. */
function openPublic(secret: Secret): { readonly chain: readonly Certificate[] } {
  const chain = certificatesIn(dataText(secret, TLS_CERT));
  ownCertificate({ chain });
  return { chain };
}
