import type { Log } from '../../controller/log.ts';
import type { Host } from '../../host/port.ts';
import type { Clock } from '../../kube/clock.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Kube } from '../../kube/port.ts';
import type { NodeWriter } from '../node-writer.ts';
import type { ConfigSource } from './config-source.ts';
import type { DriftMonitor } from './drift-monitor.ts';
import type { AgentMetrics } from './metrics.ts';
import type { OwnNode } from './own-node.ts';
import type { StateReport } from './state-report.ts';

/** What the steps of the node worker work with. Only that worker has them; other workers meet it in `report` and `writer`. */
export interface AgentParts {
  /** Reads; the agent's own account. */
  readonly kube: Kube;
  readonly host: Host;
  readonly node: OwnNode;
  readonly writer: NodeWriter;
  readonly report: StateReport;
  readonly drift: DriftMonitor;
  readonly configs: ConfigSource;
  readonly clock: Clock;
  readonly log: Log;
  /** About the own Node, in the name of the node. */
  readonly events: Pick<EventRecorder, 'event'>;
  /** About the own Node in namespace `default`, in the name of the agent: `OSUpdateStaged` alone. */
  readonly agentEvents: Pick<EventRecorder, 'event'>;
  readonly metrics: AgentMetrics;
  /** The node is where it should be: what an update left in memory may be given back. */
  readonly atRest?: (() => void) | undefined;
  /** Aborts when the agent should end: waits end at once, a file step under way is finished. */
  readonly stop: AbortSignal;
}
