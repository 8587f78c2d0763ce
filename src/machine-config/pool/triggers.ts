import { isDeepStrictEqual } from 'node:util';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import {
  CURRENT_CONFIG,
  CURRENT_IMAGE,
  DAEMON_REASON,
  DAEMON_STATE,
  DESIRED_CONFIG,
  DESIRED_IMAGE,
} from '../../machine-config-api/names.ts';
import { membershipOf } from './membership.ts';
import { notReadyReason } from './node-state.ts';

/** Annotations whose change is one of the node's update (spec 50, ND-5). */
const WATCHED = [CURRENT_CONFIG, DESIRED_CONFIG, DAEMON_STATE, DAEMON_REASON, CURRENT_IMAGE, DESIRED_IMAGE];

/** The pools that look again after a change of a node; none for what does not concern them (spec 50, ND-5). */
export function poolsToSync(
  before: Node | undefined,
  after: Node | undefined,
  pools: readonly MachineConfigPool[],
): string[] {
  const [old, current] = [before, after].map(node => (node === undefined ? [] : poolsOf(node, pools)));
  if (before === undefined || after === undefined) return [...(old ?? []), ...(current ?? [])];
  const isMoved = !isDeepStrictEqual(old, current);
  return isMoved || isNews(before, after) ? [...new Set([...(old ?? []), ...(current ?? [])])] : [];
}

/** What changed in the watched annotations, in words (spec 50, ND-6). */
export function annotationChanges(before: Node, after: Node): string[] {
  const name = after.metadata?.name ?? '';
  return WATCHED.flatMap(key => {
    const [old, current] = [before, after].map(node => node.metadata?.annotations?.[key]);
    if (old === current) return [];
    return [current === undefined ? `Node ${name} no longer has ${key}` : `Node ${name} now has ${key}=${current}`];
  });
}

/** A node that belongs to too many pools concerns all of them: it may be on its way to only one. */
function poolsOf(node: Node, pools: readonly MachineConfigPool[]): readonly string[] {
  const membership = membershipOf(node, pools);
  return membership.kind === 'unmanaged' ? [] : membership.pools;
}

function isNews(before: Node, after: Node): boolean {
  return (
    notReadyReason(before) !== notReadyReason(after) ||
    annotationChanges(before, after).length > 0 ||
    !isDeepStrictEqual(before.metadata?.labels, after.metadata?.labels) ||
    !isDeepStrictEqual(before.spec?.taints, after.spec?.taints)
  );
}
