import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { seconds } from '../../kube/duration.ts';
import { parseRevision } from '../revision/number.ts';

export const SETTLE_POLL_MS: number = seconds(10);
export const SETTLE_LIMIT_MS: number = seconds(60);
/** Whatever an earlier installer has set off gets this long to show (spec 30, 10.2.3). */
export const SETTLE_PAUSE_MS: number = seconds(30);
export const INSTALLER_LABEL = 'app=installer';

export type SettleDecision = { readonly result: 'proceed' } | { readonly result: 'waiting'; readonly because: string };

/**
 * Whether the installer of `revision` may go on, given the installer pods of the namespace (spec 30, 10.2). Throws when it must
 * give up: a newer installer is there, or its own pod is not.
 */
export function decideSettle(pods: readonly Pod[], nodeName: string, revision: string): SettleDecision {
  const own = parseRevision(revision);
  if (own === undefined) throw new Error(`bad local revision ${JSON.stringify(revision)}: expected an integer`);
  const here = pods
    .filter(pod => pod.metadata?.name?.startsWith('installer-') === true && pod.spec?.nodeName === nodeName)
    .map(pod => ({ pod, name: pod.metadata?.name ?? '', revision: installerRevision(pod.metadata?.name ?? '') }))
    .sort((a, b) => b.revision - a.revision);
  const [newest] = here;
  if (newest === undefined) throw new Error('no installer pods found');
  if (newest.revision > own) {
    const found = `thisRevision=${own}, moreRecentRevision=${newest.revision}`;
    throw new MoreRecentRevision(`more recent revision present on node: ${found}`);
  }
  const busy = here.find(({ pod, revision }) => revision !== own && !hasEnded(pod));
  return busy === undefined ? { result: 'proceed' } : { result: 'waiting', because: `${busy.name} has not ended` };
}

/** A newer installer is on the node; this one has nothing to do any more. */
export class MoreRecentRevision extends Error {
  override readonly name = 'MoreRecentRevision';
}

/** The revision in the name of an installer pod: its second part (spec 30, 10.2.1). */
export function installerRevision(podName: string): number {
  const token = podName.split('-')[1];
  if (token === undefined) throw new Error(`missing revision: ${podName}`);
  const revision = parseRevision(token);
  if (revision === undefined)
    throw new Error(`bad revision for ${podName}: expected an integer, found ${JSON.stringify(token)}`);
  return revision;
}

function hasEnded(pod: Pod): boolean {
  const statuses = pod.status?.containerStatuses ?? [];
  return statuses.length > 0 && statuses.every(status => status.state?.terminated !== undefined);
}
