import type { CertificateItem } from '../inventory/model.ts';
import { minutes } from '../kube/duration.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { KUBEADM_CHAINS } from '../kubeadm/chains.ts';
import type { PlanEffect, PlanEvent } from './model.ts';

/** Leaves of a node that are due within this time are one event for people. */
const TOGETHER_MS = minutes(60);
const MOST_NAMED = 3;

interface Renewal {
  readonly atMs: number;
  readonly node: string;
  readonly name: string;
}

/** What is renewed of an adopted cluster until a moment, node by node, and what restarts for it (spec 80, KA-3 and KA-6). */
export function renewalsUntil(items: readonly CertificateItem[], from: Date, until: Date): PlanEvent[] {
  const renewals = items
    .flatMap(item => renewalsOf(item, from, until))
    .toSorted((a, b) => a.atMs - b.atMs || (a.node < b.node ? -1 : 1));
  const groups: Renewal[][] = [];
  for (const renewal of renewals) {
    const open = groups.findLast(([first]) => first?.node === renewal.node);
    if (open?.[0] !== undefined && renewal.atMs - open[0].atMs <= TOGETHER_MS) open.push(renewal);
    else groups.push([renewal]);
  }
  const replaced = items.flatMap(({ role, seen, metadata }): PlanEvent[] => {
    const at = role === 'signer' && seen?.renewal === 'rotunda' ? seen.renewsAt : undefined;
    if (at === undefined || Date.parse(at) > until.getTime()) return [];
    const reason = `${metadata.name} is past 80 % of its life: another CA is made known, then signs, and the old one retires`;
    return [
      { at: Date.parse(at) < from.getTime() ? formatRfc3339(from) : at, change: 'hand-over', reason, effects: [] },
    ];
  });
  const renewed = groups.map((group): PlanEvent => {
    const [{ atMs, node }] = group as [Renewal, ...Renewal[]];
    const names = [...new Set(group.map(({ name }) => name))];
    return {
      at: formatRfc3339(new Date(atMs)),
      change: 'renewal',
      reason: `on ${node}: ${namesText(names)} are due`.replace(/^(on \S+: \S+) are due$/, '$1 is due'),
      effects: effectsOf(names, node),
    };
  });
  return [...renewed, ...replaced].toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

/** Each time of one certificate, as long as its lifetime stays what it is. */
function renewalsOf({ seen, certificate }: CertificateItem, from: Date, until: Date): Renewal[] {
  const { renewsAt, node, knownAs } = seen ?? {};
  if (renewsAt === undefined || node === undefined || knownAs === undefined || certificate === undefined) return [];
  // What is due already is renewed now.
  const everyMs = Date.parse(renewsAt) - Date.parse(certificate.notBefore);
  const found: Renewal[] = [];
  for (let atMs = Math.max(Date.parse(renewsAt), from.getTime()); atMs <= until.getTime(); atMs += everyMs) {
    found.push({ atMs, node, name: knownAs });
    if (everyMs < TOGETHER_MS) break;
  }
  return found;
}

function effectsOf(names: readonly string[], node: string): PlanEffect[] {
  const uses = KUBEADM_CHAINS.filter(({ name }) => names.includes(name)).flatMap(chain => chain.uses);
  const restarted = new Set(uses.filter(({ takes }) => takes === 'restart').map(({ process }) => process));
  const reloaded = new Set(
    uses
      .filter(({ takes, process }) => (takes === 'watch' || takes === 'per-handshake') && !restarted.has(process))
      .map(({ process }) => process),
  );
  return [
    ...[...restarted].map((process): PlanEffect => ({ kind: 'restart', process, nodes: [node] })),
    ...[...reloaded].map((process): PlanEffect => ({ kind: 'reload', process, nodes: [node] })),
  ];
}

function namesText(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return more > 0 ? `${names.slice(0, MOST_NAMED).join(', ')} and ${more} more` : names.join(', ');
}
