import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import { requireCA } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { isPkiError } from '../../pki/error.ts';
import { readCertificates } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type KubeadmChain, type SignerName, signerNamed } from '../chains.ts';
import { publicKeyDigests, SERVICE_ACCOUNT } from '../service-account-keys.ts';
import { tokenFlagProblem } from '../token-flags.ts';
import type { Wanted, WantedSigner } from '../wanted.ts';
import { caText, refusalOf } from './judge.ts';
import { isMadeSince } from './leaf.ts';
import { KUBELET_CONF } from './places.ts';
import type { LeafFiles, NodeSight } from './sight.ts';

/** How far the clock of whoever wants something may be ahead: certificates are set back by that much. */
const MOST_AHEAD_MS = 5 * 60_000;

/** What is wanted, understood: certificates read, leaves that are to be made anew found. */
export interface Order {
  readonly wanted: Wanted;
  readonly now: Date;
  /** Only CAs that are on this node. */
  readonly signers: ReadonlyMap<SignerName, SignerOrder>;
  /** Leaves that are older than is wanted. */
  readonly due: readonly DueLeaf[];
}

export interface SignerOrder {
  readonly cas: readonly Certificate[];
  /** The first of them. */
  readonly signs: string;
}

export interface DueLeaf {
  readonly leaf: LeafFiles;
  readonly from: Date;
  /** The CA that is to sign it. */
  readonly signs: string;
}

/** Understands what is wanted of a node, or says why nothing of it is done; then nothing at all is written. */
export function understand(sight: NodeSight, wanted: Wanted, now: Date): Order | { readonly refusal: string } {
  const refusals: string[] = [...sight.faults];
  const signers = new Map<SignerName, SignerOrder>();
  for (const { name } of KUBEADM_SIGNERS) {
    const asked = wanted.signers[name];
    if (asked === undefined || !sight.signers.has(name) || !isOwnSigner(sight, name)) continue;
    const order = signerOrder(sight, name, asked, now);
    if (typeof order === 'string') refusals.push(order);
    else signers.set(name, order);
  }
  refusals.push(...separationRefusals(sight, wanted, signers, now));
  const due: DueLeaf[] = [];
  for (const [name, moment] of Object.entries(wanted.leaves)) {
    const found = dueLeaf(sight, name, momentOf(moment), signers, now);
    if (typeof found === 'string') refusals.push(found);
    else if (found !== undefined) due.push(found);
  }
  refusals.push(...leftBehind(sight, signers, due));
  refusals.push(...serviceAccountRefusals(sight, wanted), ...publishRefusals(sight, wanted));
  return refusals.length > 0 ? { refusal: refusals.join('; ') } : { wanted, now, signers, due };
}

/** Whether files of a CA are this node's to keep: those of an external etcd are somebody else's, and workers have one CA. */
export function isOwnSigner({ role, etcd }: NodeSight, name: SignerName): boolean {
  if (role === 'worker') return name === 'ca';
  return name !== 'etcd-ca' || etcd === 'stacked';
}

/** The CA that signs on the node once the order is carried out. */
export function signsOf(
  sight: NodeSight,
  signers: ReadonlyMap<SignerName, SignerOrder>,
  name: SignerName,
): Certificate | undefined {
  return signers.get(name)?.cas[0] ?? sight.signers.get(name)?.cas[0];
}

function signerOrder(sight: NodeSight, name: SignerName, asked: WantedSigner, now: Date): SignerOrder | string {
  const { base } = signerNamed(name);
  const there = sight.signers.get(name);
  let cas: Certificate[];
  try {
    cas = readCertificates(asked.bundle).certificates;
    for (const ca of cas) requireCA({ chain: [ca] });
  } catch (error) {
    if (!isPkiError(error)) throw error;
    return `the bundle that is wanted for ${base}.crt cannot be used: ${error.message}`;
  }
  const [first] = cas;
  if (first === undefined || caDigest(first) !== asked.signs)
    return `the bundle that is wanted for ${base}.crt must begin with the CA that signs (${asked.signs.slice(0, 12)})`;
  const known = new Set(there?.cas.map(caDigest));
  if (!cas.some(ca => known.has(caDigest(ca)))) {
    const found = there?.cas.map(caText).join(', ');
    return `${base}.crt holds ${found}; none of these is in the bundle that is wanted, ${cas.map(caText).join(', ')}`;
  }
  if (first.notAfter <= now) return `${caText(first)}, which is to sign, ended at ${first.notAfter.toISOString()}`;
  const isSame = cas.map(caDigest).join() === there?.cas.map(caDigest).join();
  if (!isSame && !isSelfSigned(first)) return `${caText(first)} is signed by another CA; only its owner can replace it`;
  const isOther = there?.cas[0] === undefined || caDigest(there.cas[0]) !== asked.signs;
  // Without a key file somebody else signs, and goes on doing so.
  const needsKey = isOther || (there.key === undefined && there.keyFile !== undefined);
  if (sight.role === 'control-plane' && needsKey && !sight.keys.has(asked.signs))
    return `the key of ${caText(first)} is neither on this node nor in a Secret`;
  return { cas, signs: asked.signs };
}

function isSelfSigned({ subject, issuer }: Certificate): boolean {
  return subject.der.equals(issuer.der);
}

function separationRefusals(
  sight: NodeSight,
  { isSeparate }: Wanted,
  signers: ReadonlyMap<SignerName, SignerOrder>,
  now: Date,
): string[] {
  const manager = sight.pods.get('kube-controller-manager');
  if (manager === undefined) return [];
  const count = signers.get('ca')?.cas.length ?? sight.signers.get('ca')?.cas.length ?? 0;
  if (!isSeparate)
    return count > 1 ? ['ca.crt cannot hold two CAs as long as kube-controller-manager signs with it (KA-7)'] : [];
  const signs = signsOf(sight, signers, 'ca');
  if (signs === undefined) return ['there is no ca.crt on this node'];
  const missing = ['cluster-signing-cert-file', 'cluster-signing-key-file'].filter(
    flag => !manager.manifest.flags.has(flag),
  );
  return [
    ...missing.map(flag => `${manager.file.path} has no flag --${flag}`),
    ...(sight.keys.has(caDigest(signs)) ? [] : [`the key of ${caText(signs)} is neither on this node nor in a Secret`]),
    ...(signs.notAfter > now ? [] : [`${caText(signs)}, which is to sign, ended at ${signs.notAfter.toISOString()}`]),
  ];
}

/** Undefined: the node has no such leaf and need not have it, or it is new enough. */
function dueLeaf(
  sight: NodeSight,
  name: string,
  from: Date,
  signers: ReadonlyMap<SignerName, SignerOrder>,
  now: Date,
): DueLeaf | string | undefined {
  const chain = KUBEADM_CHAINS.find(candidate => candidate.name === name);
  if (chain === undefined) return `there is no leaf ${name}`;
  const leaf = sight.leaves.get(name);
  if (leaf === undefined)
    return isExpected(sight, chain) ? `${name} is wanted anew, and there is none on this node` : undefined;
  const signs = signsOf(sight, signers, chain.signer);
  if (signs === undefined) return `there is no ${signerNamed(chain.signer).base}.crt on this node`;
  if (leaf.keyFits && isMadeSince(leaf.certificate, from)) return undefined;
  const refusal = refusalOf(sight, leaf);
  if (refusal !== undefined) return refusal;
  if (from.getTime() > now.getTime() + MOST_AHEAD_MS)
    return `${name} is wanted from ${from.toISOString()} on; it is ${now.toISOString()} here, clocks differ too much`;
  if (signs.notAfter <= now)
    return `${caText(signs)}, which is to sign ${name}, ended at ${signs.notAfter.toISOString()}`;
  const isAskedFor = name === KUBELET_CONF && !sight.keys.has(caDigest(signs));
  if (!isAskedFor && !sight.keys.has(caDigest(signs)))
    return `the key of ${caText(signs)}, which is to sign ${name}, is neither on this node nor in a Secret`;
  return { leaf, from, signs: caDigest(signs) };
}

/** A CA does not leave a file as long as this node shows something that it signed (spec 90, HO-3). */
function leftBehind(
  { leaves }: NodeSight,
  signers: ReadonlyMap<SignerName, SignerOrder>,
  due: readonly DueLeaf[],
): string[] {
  return [...leaves.values()].flatMap(leaf => {
    const { chain, signedBy, file } = leaf;
    const order = signers.get(chain.signer);
    const isDue = due.some(other => other.leaf === leaf);
    if (order === undefined || signedBy === undefined || isDue) return [];
    if (order.cas.some(({ der }) => der.equals(signedBy.der))) return [];
    return [`${caText(signedBy)} is to leave ${signerNamed(chain.signer).base}.crt, and ${file.path} is signed by it`];
  });
}

function isExpected({ role, etcd }: NodeSight, { isOptional, renewedBy, signer }: KubeadmChain): boolean {
  if (role === 'worker' || isOptional === true || renewedBy === 'kubelet') return false;
  return signer !== 'etcd-ca' || etcd === 'stacked';
}

function serviceAccountRefusals(sight: NodeSight, { serviceAccount }: Wanted): string[] {
  if (serviceAccount === undefined || sight.role === 'worker') return [];
  const { serviceAccount: there, places, pods } = sight;
  if (there === undefined) return ['sa.pub is wanted otherwise, and there is none on this node'];
  if (there.keyFile === undefined) return ['sa.key is wanted otherwise, and there is none on this node'];
  const flags = [...pods].flatMap(
    ([component, { manifest }]) => tokenFlagProblem(component, manifest.pod, places.certificates) ?? [],
  );
  if (flags.length > 0) return flags;
  const digests = publicKeyDigests(serviceAccount.publicKeys);
  if (!digests.includes(serviceAccount.signs)) return ['the public keys that are wanted in sa.pub lack that of sa.key'];
  if (!digests.some(digest => there.accepts.includes(digest)))
    return ['sa.pub holds none of the public keys that are wanted in it'];
  return sight.tokenKeys.has(serviceAccount.signs)
    ? []
    : ['the key that is wanted in sa.key is neither on this node nor in a Secret'];
}

function publishRefusals(sight: NodeSight, { publishes }: Wanted): string[] {
  return publishes.flatMap(name => {
    if (name === SERVICE_ACCOUNT) return accountRefusals(sight);
    if (!isOwnSigner(sight, name) || sight.signers.get(name)?.key !== undefined) return [];
    return [`the key of ${signerNamed(name).base}.crt is not on this node, or is another one`];
  });
}

function accountRefusals({ serviceAccount }: NodeSight): string[] {
  const isWhole = serviceAccount?.signs !== undefined && serviceAccount.accepts.includes(serviceAccount.signs);
  return isWhole ? [] : ['sa.key is not on this node, or sa.pub is without its public key'];
}

function momentOf(text: string): Date {
  const moment = parseRfc3339(text);
  return moment === undefined ? new Date(0) : floorToMs(moment);
}
