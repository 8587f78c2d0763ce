import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { ONLY_KEY } from '../controller/reconcile.ts';
import { onTransition, type Source, type Trigger } from '../controller/trigger.ts';
import { NODE_RECEIPTS } from '../trust/receipts.ts';
import { WAIVED } from './names.ts';

/** A node has come or gone, its agent has seen something new, or somebody waived it; not each heartbeat. */
export function onReceipts(nodes: Source<Node>): Trigger {
  const said = (node: Node | undefined) =>
    node && [NODE_RECEIPTS, WAIVED].map(name => node.metadata?.annotations?.[name] ?? '').join('\n');
  return onTransition(nodes, (before, after) => (said(before) === said(after) ? [] : [ONLY_KEY]));
}
