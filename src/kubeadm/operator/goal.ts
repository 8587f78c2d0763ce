import type { Certificate } from '../../pki/certificate.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import type { SignerName } from '../chains.ts';
import type { NodeReport } from '../report.ts';
import { SERVICE_ACCOUNT } from '../service-account-keys.ts';
import type { Wanted, WantedSigner } from '../wanted.ts';
import { type Cluster, type FamilySight, familiesOn, isInRound, type NodeSight } from './cluster.ts';
import { type DueLeaf, dueLeaves } from './due.ts';

/** What a node ought to be like. */
export interface NodeGoal extends Pick<Wanted, 'isSeparate' | 'publishes'>, Pick<Cluster, 'serviceAccount'> {
  readonly signers: Readonly<Partial<Record<SignerName, SignerGoal>>>;
  readonly due: readonly DueLeaf[];
}

export interface SignerGoal extends WantedSigner {
  /** What is in the bundle, by digest. */
  readonly cas: readonly string[];
}

/** What a node ought to be like, given the phases of all families (spec 80, 6) and which leaves are due. */
export function goalOf(node: NodeSight, cluster: Cluster): NodeGoal {
  const { report } = node;
  const isServer = report?.role === 'control-plane';
  const signers = familiesOn(node, cluster.families).map(family => [family.name, signerGoal(family, node)] as const);
  return {
    signers: Object.fromEntries(signers),
    isSeparate: isServer && isSeparate(node, cluster),
    serviceAccount: isServer ? cluster.serviceAccount : undefined,
    publishes: cluster.publish?.node === node.name ? [cluster.publish.what] : [],
    due: dueLeaves(node, cluster),
  };
}

/** The one that signs stands first (KA-8); where leaves have to wait, what signs on the node, or is about to, goes on signing. */
function signerGoal({ name, current, trusted, leaves }: FamilySight, node: NodeSight): SignerGoal {
  const asked = isInRound(node) ? node.wanted?.signers[name]?.signs : undefined;
  const first = asked ?? node.report?.signers[name]?.cas[0];
  const held = leaves === 'hold' ? trusted.find(ca => caDigest(ca) === first) : undefined;
  const signing = held ?? current;
  const others = trusted.filter(({ der }) => !der.equals(signing.der));
  const all: readonly Certificate[] = [signing, ...others];
  return { bundle: encodeCertificates(all), signs: caDigest(signing), cas: all.map(caDigest) };
}

/** As long as `ca.crt` may hold two CAs; they are put together again only after a round that left one (KA-7). */
function isSeparate(node: NodeSight, { families, separates }: Cluster): boolean {
  const ca = families.find(({ name }) => name === 'ca');
  if (separates || (ca !== undefined && ca.trusted.length > 1)) return true;
  if (isInRound(node)) return node.wanted?.isSeparate === true;
  return (node.report?.signers.ca?.cas.length ?? 0) > 1;
}

/** What is not as it ought to be, for people; empty: everything is. */
export function differencesFrom(goal: NodeGoal, { report }: NodeSight): readonly string[] {
  if (report === undefined) return [];
  const signers = Object.entries(goal.signers).flatMap(([name, { cas, signs }]) => {
    const found = report.signers[name as SignerName];
    const isServer = report.role === 'control-plane';
    if (found === undefined) return [`${name} is missing`];
    if (found.cas.join() !== cas.join()) {
      return [isServer && found.cas[0] !== signs ? `${name} signs with another CA` : `${name} has other CAs`];
    }
    return isServer && found.key === 'wrong' ? [`the key of ${name} is another one`] : [];
  });
  const { signing } = report;
  return [
    ...signers,
    ...(signing !== undefined && signing.isSeparate !== goal.isSeparate
      ? [`kube-controller-manager ${goal.isSeparate ? 'gets signing files of its own' : 'signs with ca.crt again'}`]
      : []),
    ...(signing !== undefined && goal.signers.ca !== undefined && signing.ca !== goal.signers.ca.signs
      ? ['kube-controller-manager signs with another CA']
      : []),
    ...goal.publishes.map(what => `${what} is copied into its Secret`),
    ...serviceAccountDifferences(goal, report),
    ...goal.due.map(({ why }) => why),
    ...Object.entries(report.processes).flatMap(([name, { behind }]) =>
      behind.length === 0 ? [] : [`${name} began before ${behind.join(', ')} changed`],
    ),
  ];
}

function serviceAccountDifferences({ serviceAccount }: NodeGoal, { serviceAccount: found }: NodeReport): string[] {
  if (serviceAccount === undefined) return [];
  if (found?.signs !== serviceAccount.signs) return ['sa.key is another one'];
  const wanted = new Set(serviceAccount.accepts);
  const isSame = found.accepts.length === wanted.size && found.accepts.every(key => wanted.has(key));
  return isSame ? [] : ['sa.pub has other keys'];
}

/** Whether what a node was asked for is what it ought to be; a leaf that became due since then can wait, but not one that has ended. */
export function isAsked(goal: NodeGoal, wanted: Wanted): boolean {
  const { signers, isSeparate: separate, serviceAccount, leaves, publishes } = wanted;
  const isSame = Object.entries(goal.signers).every(([name, { bundle, signs }]) => {
    const asked = signers[name as SignerName];
    return asked === undefined || (asked.bundle === bundle && asked.signs === signs);
  });
  const isSameAccount =
    goal.serviceAccount === undefined ||
    serviceAccount === undefined ||
    (serviceAccount.signs === goal.serviceAccount.signs &&
      serviceAccount.publicKeys === goal.serviceAccount.publicKeys);
  const isLeafAsked = ({ name, from, isUseless }: DueLeaf) => !isUseless || isNotBefore(leaves[name], from);
  // Nobody wants it any more; where it is copied already, the round ends as it was asked for.
  const isWithdrawn =
    publishes.includes(SERVICE_ACCOUNT) && goal.publishes.length === 0 && goal.serviceAccount === undefined;
  return isSame && separate === goal.isSeparate && isSameAccount && !isWithdrawn && goal.due.every(isLeafAsked);
}

function isNotBefore(asked: string | undefined, from: string): boolean {
  return asked !== undefined && Date.parse(asked) >= Date.parse(from);
}
