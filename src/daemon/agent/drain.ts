import type { Log } from '../../controller/log.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { DESIRED_DRAIN, LAST_APPLIED_DRAIN } from '../../machine-config-api/names.ts';
import { type DrainRequest, decideDrain, drainTimeout, uncordonRequest } from '../decide/drain-handshake.ts';
import type { NodeWriter } from '../node-writer.ts';
import { announce, announcements } from './announcements.ts';
import type { OwnNode } from './own-node.ts';

export interface DrainParts {
  readonly node: OwnNode;
  readonly writer: Pick<NodeWriter, 'annotate'>;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly log: Log;
  /** Ends the wait; what was asked for stays asked for. */
  readonly stop: AbortSignal;
}

/** Has the controller cordon and drain this node, and waits for it (spec 60, 10.1). Throws when it takes too long. */
export async function drainNode(parts: DrainParts): Promise<void> {
  const { node, events, log } = parts;
  const decision = decideDrain(node.annotations());
  if (decision.kind === 'skip') {
    announce(events, announcements.drainSkipped(decision.message));
    return;
  }
  if (decision.kind === 'already-drained') {
    log.info({}, 'drain is already completed on this node');
    return;
  }
  log.info({}, 'Update prepared; requesting cordon and drain via annotation to controller');
  announce(events, announcements.cordon());
  announce(events, announcements.drain());
  if (!(await isAnswered(parts, decision.request))) throw timedOut(parts, 'drain');
  log.info({}, 'drain complete');
}

/** Has the controller let pods back, and waits for it; also where there was no drain (spec 60, 10.4.4). */
export async function uncordonNode(parts: DrainParts, config: string): Promise<void> {
  if (!(await isAnswered(parts, uncordonRequest(config)))) throw timedOut(parts, 'uncordon');
}

async function isAnswered({ node, writer, stop }: DrainParts, request: DrainRequest): Promise<boolean> {
  const wanted = request.annotations[DESIRED_DRAIN] ?? '';
  await writer.annotate(request.annotations);
  return node.until(({ metadata }) => metadata?.annotations?.[LAST_APPLIED_DRAIN] === wanted, request.withinMs, stop);
}

function timedOut({ node, events }: DrainParts, verb: 'drain' | 'uncordon'): Error {
  const { event, message } = drainTimeout(verb, node.name);
  events.event('Warning', event, message);
  return new Error(message);
}
