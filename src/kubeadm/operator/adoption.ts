import { compareNodes } from '../adopt/compare.ts';
import { KUBEADM_SIGNERS, type SignerName } from '../chains.ts';
import type { Wanted } from '../wanted.ts';
import { isInRound, type NodeSight } from './cluster.ts';
import { newRound } from './round.ts';

/** Whether anything may be changed in the cluster yet (spec 80, KA-1 and KA-2). */
export interface Adoption {
  readonly adopted: boolean;
  /** What stands in the way, one sentence each. */
  readonly differences: readonly string[];
  /** The CAs are copied into Secrets next: by whom. */
  readonly publish?: { readonly node: string; readonly wanted: Wanted } | undefined;
  /** What is waited for, without being a difference. */
  readonly waitsFor?: string | undefined;
}

export interface AdoptionQuestion {
  readonly nodes: readonly NodeSight[];
  /** The node that copies the CAs. */
  readonly publishFrom: string;
  /** The CAs that are in Secrets. */
  readonly published: readonly SignerName[];
  /** It was adopted before: nodes may differ by now, in the middle of a hand-over. */
  readonly wasAdopted: boolean;
  /** Key pairs of a hand-over are there: files may hold what no Secret of a CA in use does. */
  readonly isHandingOver: boolean;
  /** The keys of service accounts are in a Secret, and files may be on their way to what is there. */
  readonly areKeysReplaced?: boolean | undefined;
  readonly now: Date;
}

/** Compares what nodes show, then has the CAs published, and only then is the cluster ours to look after. */
export function decideAdoption(question: AdoptionQuestion): Adoption {
  const { nodes, publishFrom, published, wasAdopted, isHandingOver, areKeysReplaced = false, now } = question;
  const differences = wasAdopted || isHandingOver || areKeysReplaced ? [] : compareNodes(nodes, now);
  if (differences.length > 0) return { adopted: false, differences };
  const node = nodes.find(({ name }) => name === publishFrom);
  if (node?.report === undefined) {
    const difference = `${publishFrom} is to publish the CAs, and its agent says nothing: see whether its pod in namespace rotunda runs there.`;
    return wasAdopted ? { adopted: true, differences: [] } : { adopted: false, differences: [difference] };
  }
  const { report, wanted } = node;
  const missing = KUBEADM_SIGNERS.map(({ name }) => name).filter(
    name => report.signers[name]?.key === 'fits' && !published.includes(name),
  );
  if (missing.length === 0) return { adopted: true, differences: [] };
  if (isHandingOver) {
    const lost = `In namespace rotunda-pki there is no Secret ${missing.join(', ')} in the middle of a hand-over: bring it back from a backup.`;
    return { adopted: wasAdopted, differences: [lost] };
  }
  const isAsked = missing.every(name => wanted?.publishes.includes(name));
  if (isInRound(node)) {
    const why = report.problem ?? `${publishFrom} copies ${missing.join(', ')} into Secrets`;
    if (isAsked || wasAdopted) return { adopted: wasAdopted, differences: [], waitsFor: why };
  }
  return {
    adopted: wasAdopted,
    differences: [],
    publish: {
      node: publishFrom,
      wanted: {
        round: newRound(wanted?.round, now),
        publishes: missing,
        signers: {},
        isSeparate: report.signing?.isSeparate ?? false,
        leaves: wanted?.leaves ?? {},
      },
    },
  };
}
