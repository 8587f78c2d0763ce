import type { ObjectReference } from 'kubernetes-types/core/v1.d.ts';
import type { Log } from '../../controller/log.ts';
import { redactedText } from '../../controller/redact.ts';
import type { Clock } from '../../kube/clock.ts';
import { SINGLETON_CORRELATION } from '../../kube/event-correlation.ts';
import { EventWriter } from '../../kube/event-writer.ts';
import { type EventRecorder, eventsTo } from '../../kube/events.ts';
import type { Kube } from '../../kube/port.ts';
import { MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import type { OwnNode } from './own-node.ts';

export interface NodeEvents {
  /** With the node's own credentials, in the operator's namespace (spec 60, section 12). */
  readonly ofNode: EventRecorder;
  /** With the agent's account, in `default`. */
  readonly ofAgent: EventRecorder;
  stop(): Promise<void>;
}

export interface NodeEventsOptions {
  readonly kube: Kube;
  readonly nodeKube: Kube;
  readonly node: OwnNode;
  readonly clock: Clock;
  readonly log: Log;
}

const COMPONENT = 'machineconfigdaemon';

/** Recorders for events about the own Node. As long as it is not known there is nothing to say about it (spec 60, 5.5.6). */
export function nodeEvents({ kube, nodeKube, node, clock, log }: NodeEventsOptions): NodeEvents {
  const onError = (error: unknown) => log.warn({ err: error }, 'an event could not be written');
  const recorderOf = (api: Kube, namespace: string | undefined) => {
    const writer = new EventWriter(api, { correlation: SINGLETON_CORRELATION, clock, host: node.name, onError });
    const recorder = eventsTo(COMPONENT, ({ component, type, reason, message }) => {
      const about = referenceTo(node, namespace);
      if (about !== undefined) writer.recorder(component, about).event(type, reason, redactedText(message));
    });
    return { writer, recorder };
  };
  const ofNode = recorderOf(nodeKube, MCO_NAMESPACE);
  const ofAgent = recorderOf(kube, undefined);
  return {
    ofNode: ofNode.recorder,
    ofAgent: ofAgent.recorder,
    async stop() {
      await Promise.all([ofNode.writer.stop(), ofAgent.writer.stop()]);
    },
  };
}

function referenceTo(node: OwnNode, namespace: string | undefined): ObjectReference | undefined {
  const { name, uid } = node.get()?.metadata ?? {};
  if (name === undefined) return undefined;
  return {
    apiVersion: 'v1',
    kind: 'Node',
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
  };
}
