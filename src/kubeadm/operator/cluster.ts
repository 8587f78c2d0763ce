import type { Certificate } from '../../pki/certificate.ts';
import type { SignerName } from '../chains.ts';
import type { Published } from '../exchange.ts';
import type { NodeReport } from '../report.ts';
import type { Wanted, WantedServiceAccount } from '../wanted.ts';

/** What is known of an adopted cluster at one moment: everything that a decision about its nodes rests on. */
export interface Cluster {
  readonly nodes: readonly NodeSight[];
  /** The CAs that are looked after: those whose key is ours to sign with. */
  readonly families: readonly FamilySight[];
  /** A next `ca` is about to be made known: kube-controller-manager needs files of its own first (KA-7). */
  readonly separates: boolean;
  /** Undefined: the keys of service accounts stay as they are. */
  readonly serviceAccount: ServiceAccountGoal | undefined;
  /** A node that copies something into its Secret (KA-2). */
  readonly publish?: { readonly node: string; readonly what: Published } | undefined;
  /** The part of its life after which a leaf is made anew (KA-5). */
  readonly refresh: number;
  readonly now: Date;
}

export interface ServiceAccountGoal extends WantedServiceAccount {
  /** The keys of `publicKeys`, by digest. */
  readonly accepts: readonly string[];
}

export interface NodeSight {
  readonly name: string;
  /** By the label of the Node. */
  readonly isControlPlane: boolean;
  /** By the Node's condition. */
  readonly isReady: boolean;
  /** Somebody has said that nobody should wait for it (HO-7). */
  readonly isWaived: boolean;
  readonly report: NodeReport | undefined;
  readonly wanted: Wanted | undefined;
}

export interface FamilySight {
  readonly name: SignerName;
  /** What signs; stands among the trusted. */
  readonly current: Certificate;
  /** Everything that is to be in the file of the CA, in any order. */
  readonly trusted: readonly Certificate[];
  /** What becomes of leaves that are not of `current`, as `FamilyDecision` says. */
  readonly leaves: 'follow' | 'hold';
}

/** The node has been asked for something, and has not said yet that it is done. */
export function isInRound({ wanted, report }: Pick<NodeSight, 'wanted' | 'report'>): boolean {
  return wanted !== undefined && wanted.round !== report?.done;
}

/** The CAs that have to be in order on a node: those of its own servers, and `ca` everywhere. */
export function familiesOn<F extends Pick<FamilySight, 'name'>>({ report }: NodeSight, families: readonly F[]): F[] {
  return families.filter(
    ({ name }) =>
      name === 'ca' || (report?.role === 'control-plane' && (name !== 'etcd-ca' || report.etcd === 'stacked')),
  );
}
