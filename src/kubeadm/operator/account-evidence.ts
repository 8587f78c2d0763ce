import { posix } from 'node:path';
import type { Receipt } from '../../hand-over/receipt.ts';
import { isInRound, type NodeSight } from './cluster.ts';

/** What verifies tokens, and what signs them (spec 80, 2): all of these read their files only when they start. */
const VERIFIER = 'kube-apiserver';
const KEY_FILE = 'sa.key';
const SIGNERS = ['kube-apiserver', 'kube-controller-manager'] as const;

/** Every kube-apiserver, and whether it began with this public key in `sa.pub`. */
export function acceptsReceipts(nodes: readonly NodeSight[], digest: string): Receipt[] {
  return controlPlane(nodes).map(node => {
    const isInFile = node.report?.serviceAccount?.accepts.includes(digest) ?? false;
    return receiptOf(VERIFIER, node, isInFile ? undefined : 'sa.pub of its node is without it');
  });
}

/** Every program that signs tokens, and whether it began with this key in `sa.key`. */
export function signsReceipts(nodes: readonly NodeSight[], digest: string): Receipt[] {
  return controlPlane(nodes).flatMap(node => {
    const isInFile = node.report?.serviceAccount?.signs === digest;
    return SIGNERS.map(process => receiptOf(process, node, isInFile ? undefined : 'sa.key of its node is another one'));
  });
}

/** Who signs with another key, as far as agents tell: who says nothing, or is at work, is not known to. */
export function othersSign(nodes: readonly NodeSight[], digest: string): string[] {
  return controlPlane(nodes).flatMap(({ name, report, isWaived }) => {
    if (report === undefined || isWaived) return [];
    const isBehind = SIGNERS.some(process =>
      report.processes[process]?.behind.some(file => posix.basename(file) === KEY_FILE),
    );
    return report.serviceAccount?.signs !== digest || isBehind ? [name] : [];
  });
}

/** Who would have to be waited for (HO-7). */
export function missingOf(receipts: readonly Receipt[]): Receipt[] {
  return receipts.filter(({ isLoaded, isWaived }) => !isLoaded && !isWaived);
}

export function controlPlane<N extends NodeSight>(nodes: readonly N[]): N[] {
  return nodes
    .filter(({ isControlPlane, report }) => isControlPlane || report?.role === 'control-plane')
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function receiptOf(process: string, node: NodeSight, notInFile: string | undefined): Receipt {
  const { report, isWaived } = node;
  const seen = report?.processes[process];
  const missing =
    report === undefined
      ? 'the agent of its node says nothing'
      : isInRound(node)
        ? (report.problem ?? 'the agent of its node is not done yet')
        : (notInFile ??
          (seen === undefined
            ? 'does not run'
            : seen.behind.length > 0
              ? `began before ${seen.behind.join(', ')} changed`
              : undefined));
  return {
    verifier: `${process} on ${node.name}`,
    node: node.name,
    kind: 'started',
    isLoaded: missing === undefined,
    evidence: missing ?? `began with it at ${seen?.startedAt}`,
    isWaived,
  };
}
