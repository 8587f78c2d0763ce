import { EXPIRING_SOON_DAYS } from '../../inventory/certificates.ts';
import type { CertificateItem, CertificateState, SeenCertificate } from '../../inventory/model.ts';
import { days } from '../../kube/duration.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { KUBEADM_CHAINS, type KubeadmChain, signerNamed } from '../../kubeadm/chains.ts';
import { readSettings, statusOf } from '../../kubeadm/cluster-record.ts';
import { dueMs } from '../../kubeadm/operator/due.ts';
import { type LeafSight, type NodeReport, reportOf } from '../../kubeadm/report.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { signingKey } from '../../trust/receipts.ts';
import type { ClusterObjects } from './cluster-objects.ts';

/** What agents of an adopted cluster tell. */
export interface Reports {
  /** Somebody keeps it: the operator has said so. */
  readonly isAdopted: boolean;
  /** The CAs that the operator replaces in time: those of which it has the key. */
  readonly keptSigners: ReadonlySet<string>;
  readonly items: readonly CertificateItem[];
  /** The nodes whose files are known by it. */
  readonly nodes: ReadonlySet<string>;
}

/** The part of its life after which a CA is replaced (KA-2). */
const SIGNER_REFRESH = 0.8;

/** When a CA that is kept is replaced. */
export function replacedAt({ notBefore, notAfter }: { readonly notBefore: Date; readonly notAfter: Date }): string {
  const beganMs = notBefore.getTime();
  return formatRfc3339(new Date(beganMs + SIGNER_REFRESH * (notAfter.getTime() - beganMs)));
}

/** Every leaf of every node that reports, with who renews it and when (spec 80, KA-3). `authorities` are those that can be seen. */
export function readReports(
  { nodes, record }: Pick<ClusterObjects, 'nodes' | 'record'>,
  now: Date,
  authorities: readonly Certificate[] = [],
): Reports {
  const read = record === undefined ? undefined : readSettings(record);
  const isAdopted = statusOf(record)?.adopted ?? false;
  // Without a word of the operator nobody renews, whatever agents say.
  const refresh = isAdopted && read?.ok ? read.settings.refresh : undefined;
  const reported = nodes
    .flatMap(node => {
      const report = record === undefined ? undefined : reportOf(node);
      return report === undefined ? [] : [{ name: node.metadata?.name ?? '', report }];
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const names = new Map(authorities.map(ca => [signingKey(ca), ca.subject.commonName]));
  const keepsKeys = read?.ok === true && !read.settings.keysOnNodes;
  return {
    isAdopted,
    keptSigners: new Set(isAdopted && keepsKeys ? Object.keys(statusOf(record)?.families ?? {}) : []),
    items: reported.flatMap(({ name, report }) =>
      KUBEADM_CHAINS.flatMap(chain => {
        const leaf = report.leaves[chain.name];
        if (leaf === undefined) return [];
        // Of several generations it says which.
        const issuer = (leaf.issuer && names.get(leaf.issuer)) ?? signerNamed(chain.signer).commonName;
        return [itemOf(name, report, chain, leaf, issuer, refresh, now)];
      }),
    ),
    nodes: new Set(reported.map(({ name }) => name)),
  };
}

function itemOf(
  node: string,
  report: NodeReport,
  chain: KubeadmChain,
  leaf: LeafSight,
  issuer: string,
  refresh: number | undefined,
  now: Date,
): CertificateItem {
  const isExternal = report.role === 'control-plane' && report.signers[chain.signer]?.key !== 'fits';
  const renewal = renewalOf(chain, isExternal, refresh);
  const isOurs = renewal === 'rotunda' && refresh !== undefined;
  const renewsAt = isOurs ? formatRfc3339(new Date(dueMs(leaf, chain, refresh))) : undefined;
  return {
    metadata: { name: `${chain.name}@${node}` },
    role: 'target',
    ...stateOf(leaf, renewal, renewsAt, now),
    certificate: {
      // An agent tells which certificate it is and when it ends: the rest is on the node.
      subject: '',
      isSelfSigned: false,
      isCA: false,
      serial: '',
      key: '',
      signatureAlgorithm: '',
      keySha256: '',
      usages: [],
      hostnames: [],
      groups: [],
      issuer,
      notBefore: leaf.notBefore,
      notAfter: leaf.notAfter,
      sha256: leaf.digest,
    },
    chainLength: 0,
    purpose: chain.purpose,
    trustedBy: [],
    notes: [],
    seen: {
      places: [`node/${node}`],
      node,
      knownAs: chain.name,
      authority: chain.signer,
      renewal,
      ...(renewsAt !== undefined && { renewsAt }),
      ...(renewal === 'by-hand' && { renewWith: `kubeadm certs renew ${chain.name}, on its node` }),
      isExternal,
      isMissing: false,
      atItsEnd: chain.atItsEnd,
    },
  };
}

function renewalOf(
  { renewedBy }: KubeadmChain,
  isExternal: boolean,
  refresh: number | undefined,
): SeenCertificate['renewal'] {
  if (renewedBy === 'kubelet') return 'kubelet';
  if (isExternal) return 'owner';
  return refresh === undefined ? 'by-hand' : 'rotunda';
}

function stateOf(
  { problem, notAfter }: LeafSight,
  renewal: SeenCertificate['renewal'],
  renewsAt: string | undefined,
  now: Date,
): { state: CertificateState; problem?: string | undefined } {
  const endMs = Date.parse(notAfter);
  if (endMs < now.getTime()) return { state: 'Expired', problem: `expired at ${notAfter}` };
  if (problem !== undefined) return { state: 'NeedsAttention', problem };
  if (renewsAt !== undefined) {
    const dueSince = Date.parse(renewsAt);
    // Half of what was left when it was due: somebody is late by then.
    return now.getTime() > (dueSince + endMs) / 2
      ? { state: 'Expiring', problem: `it is due since ${renewsAt}, and was not renewed` }
      : { state: 'Good' };
  }
  const isSoon = renewal !== 'kubelet' && endMs - now.getTime() < days(EXPIRING_SOON_DAYS);
  return isSoon ? { state: 'Expiring', problem: 'it ends soon, and nobody renews it by itself' } : { state: 'Good' };
}
