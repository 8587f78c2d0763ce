import type { CertificateItem } from '../inventory/model.ts';
import { isKeptAside, nameOf } from '../inventory/renewed.ts';
import type { Standstill } from './simulate.ts';

/** A certificate outside of the operators' objects that is over when a cluster is switched on again. */
export interface EndMeanwhile {
  readonly at: string;
  readonly name: string;
  /** Who has to do what then. */
  readonly hand: string;
  readonly atItsEnd?: string | undefined;
}

/** A kubelet has renewed its certificate when less than this of its life is left. */
const KUBELET_IS_LATE = 0.1;

/** When what was seen ends, the first end first: who renews does so until the cluster is switched off, and then nobody does. */
export function endsMeanwhile(items: readonly CertificateItem[], off: Standstill, now: Date): EndMeanwhile[] {
  return items
    .flatMap((item): EndMeanwhile[] => {
      const { seen, next } = item;
      const endMs = earliestEnd(item, off.from);
      // What our operators renew is looked at over the connections it is for; what is over already has nothing to do with being off.
      if (endMs === undefined || next !== undefined || isKeptAside(item) || endMs <= now.getTime()) return [];
      const hand = seen?.renewWith ?? HANDS[seen?.renewal ?? 'owner'];
      return [{ at: new Date(endMs).toISOString(), name: nameOf(item), hand, atItsEnd: seen?.atItsEnd }];
    })
    .sort((a, b) => (a.at < b.at ? -1 : 1));
}

function earliestEnd({ certificate, seen }: CertificateItem, from: Date): number | undefined {
  if (certificate === undefined) return undefined;
  const [beginMs, endMs] = [Date.parse(certificate.notBefore), Date.parse(certificate.notAfter)];
  if (seen?.renewal === 'kubelet') return Math.max(endMs, from.getTime() + KUBELET_IS_LATE * (endMs - beginMs));
  if (seen?.renewal !== 'rotunda' || seen.renewsAt === undefined) return endMs;
  const everyMs = Date.parse(seen.renewsAt) - beginMs;
  const renewals = everyMs > 0 ? Math.max(0, Math.floor((from.getTime() - beginMs) / everyMs)) : 0;
  return endMs + renewals * everyMs;
}

const HANDS = {
  nobody: 'a new CA, or whoever made it',
  owner: 'whoever made it',
  'by-hand': 'somebody',
  kubelet: 'its kubelet cannot renew it once it has ended: it needs another one',
  rotunda: 'the agent of its node renews it by itself',
} as const;
