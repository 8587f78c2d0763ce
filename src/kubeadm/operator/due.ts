import { minutes, seconds } from '../../kube/duration.ts';
import { floorToMs, formatRfc3339, parseRfc3339 } from '../../kube/time.ts';
import { signingKey } from '../../trust/receipts.ts';
import { KUBEADM_CHAINS, type KubeadmChain } from '../chains.ts';
import type { LeafSight } from '../report.ts';
import { type Cluster, type FamilySight, familiesOn, type NodeSight } from './cluster.ts';

/** A leaf that is to be made anew, and from when on one counts as that. */
export interface DueLeaf {
  readonly name: string;
  /** RFC 3339: for `Wanted.leaves`. */
  readonly from: string;
  /** For people. */
  readonly why: string;
  /** Nobody accepts the one that is there: whatever else is done on the node may wait for this. */
  readonly isUseless: boolean;
}

/** A kubelet renews its certificate itself before this part of its life is over; when it has not, somebody has to (KA-5). */
const KUBELET_REFRESH = 0.9;
/** Certificates are set back by so much: one that begins then was made now. */
const BACKDATED_MS = minutes(5);
const ANY_TIME = '1970-01-01T00:00:00Z';

/** The leaves of a node that are to be made anew now (spec 80, KA-5): old ones, wrong ones, and those of an older CA. */
export function dueLeaves(node: NodeSight, { families, refresh, now }: Omit<Cluster, 'nodes'>): readonly DueLeaf[] {
  const { report } = node;
  if (report === undefined) return [];
  const governed = familiesOn(node, families);
  return KUBEADM_CHAINS.flatMap((chain): DueLeaf[] => {
    const family = governed.find(({ name }) => name === chain.signer);
    if (family === undefined) return [];
    const leaf = report.leaves[chain.name];
    // What is not there is not made by us: nobody has said what is to be in it.
    if (leaf === undefined) return [];
    const why = whyDue(leaf, chain, family, refresh, now);
    const isUseless = leaf.problem !== undefined || momentMs(leaf.notAfter) <= now.getTime();
    return why === undefined
      ? []
      : [{ name: chain.name, from: newerThan(leaf, now), why: `${chain.name} ${why}`, isUseless }];
  });
}

/** When the first leaf of a node is to be made anew; undefined: nothing of it is looked after. */
export function nextDue(
  node: NodeSight,
  { families, refresh }: Pick<Cluster, 'families' | 'refresh'>,
): Date | undefined {
  const governed = familiesOn(node, families);
  const times = KUBEADM_CHAINS.flatMap(chain => {
    const leaf = node.report?.leaves[chain.name];
    return leaf === undefined || !governed.some(({ name }) => name === chain.signer)
      ? []
      : [dueMs(leaf, chain, refresh)];
  });
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}

function whyDue(
  leaf: LeafSight,
  chain: KubeadmChain,
  { current, trusted, leaves }: FamilySight,
  refresh: number,
  now: Date,
): string | undefined {
  if (leaf.problem !== undefined) return `is wrong: ${leaf.problem}`;
  if (leaves === 'follow' && leaf.issuer !== undefined && leaf.issuer !== signingKey(current)) {
    // What somebody else has signed, and put there himself, is no business of ours.
    const signer = trusted.find(ca => signingKey(ca) === leaf.issuer);
    if (signer !== undefined) return `is of ${signer.subject.commonName}`;
  }
  if (momentMs(leaf.notAfter) <= now.getTime()) return 'has ended';
  return dueMs(leaf, chain, refresh) <= now.getTime() ? 'is due' : undefined;
}

/** When a leaf is made anew by itself (KA-5). */
export function dueMs(
  { notBefore, notAfter }: Pick<LeafSight, 'notBefore' | 'notAfter'>,
  { renewedBy }: Pick<KubeadmChain, 'renewedBy'>,
  refresh: number,
): number {
  const part = renewedBy === 'kubelet' ? Math.max(refresh, KUBELET_REFRESH) : refresh;
  const beganMs = momentMs(notBefore);
  return beganMs + part * (momentMs(notAfter) - beganMs);
}

/** Whatever was made after this one, by whomever and by whose clock ever; of one from the future nothing can be said. */
function newerThan({ notBefore }: LeafSight, now: Date): string {
  const beganMs = momentMs(notBefore);
  return beganMs > now.getTime() ? ANY_TIME : formatRfc3339(new Date(beganMs + BACKDATED_MS + seconds(1)));
}

function momentMs(text: string): number {
  const moment = parseRfc3339(text);
  return moment === undefined ? 0 : floorToMs(moment).getTime();
}
