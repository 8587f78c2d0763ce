import type { NodeStatus } from '../node-status.ts';
import { parseRevision } from '../revision/number.ts';

/** Carried by all installer pods. */
export const INSTALLER_LABELS = { app: 'installer' } as const;

/** The pod that installs a node's target revision; each attempt has its own (spec 30, 9.9.1). */
export function installerPodName(node: NodeStatus): string {
  const { nodeName, targetRevision, lastFailedRevision, lastFailedCount, lastFallbackCount } = node;
  const retry = lastFailedRevision === targetRevision ? lastFailedCount + lastFallbackCount : 0;
  return `installer-${targetRevision}-${retry === 0 ? '' : `retry-${retry}-`}${nodeName}`;
}

/** The revision an installer pod is named after. Throws when its name has none (spec 30, 10.2.1). */
export function revisionOfInstallerPod(podName: string): number {
  const text = podName.split('-')[1];
  if (text === undefined) throw new Error(`missing revision: ${podName}`);
  const revision = parseRevision(text);
  if (revision === undefined) throw new Error(`bad revision for ${podName}: "${text}" is not a number`);
  return revision;
}
