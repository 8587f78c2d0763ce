import { isDeepStrictEqual } from 'node:util';
import type { Registry } from '@prometheus-io/client';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { Controller, runAll } from '../../controller/controller.ts';
import type { Log } from '../../controller/log.ts';
import { controllerMetrics } from '../../controller/metrics.ts';
import { ONLY_KEY } from '../../controller/reconcile.ts';
import { named, onChange, type Trigger } from '../../controller/trigger.ts';
import type { Clock } from '../../kube/clock.ts';
import { minutes } from '../../kube/duration.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Kube } from '../../kube/port.ts';
import {
  CURRENT_CONFIG,
  KUBE_SYSTEM_NAMESPACE,
  LAST_OBSERVED_SERVER_CA,
  SERVER_CA_DIGEST,
} from '../../machine-config-api/names.ts';
import type { HandOver } from '../controller-config/server-ca.ts';
import { onTransition } from '../delayed-trigger.ts';
import type { EventsAbout } from '../events.ts';
import { operatorMetrics } from '../metrics.ts';
import type { ControllerVersion } from '../render/decide.ts';
import { type OperatorCaches, operatorCaches, operatorInformers } from './caches.ts';
import { operatorReconcile } from './reconcile.ts';

export interface MachineConfigOperatorDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly events: EventRecorder;
  /** A recorder for events about one object; those of `events` when absent. */
  readonly eventsAbout?: EventsAbout | undefined;
  readonly log: Log;
  readonly version: ControllerVersion;
  readonly releaseVersion: string;
  readonly bringingUp?: boolean | undefined;
  readonly disruptionPolicies?: boolean | undefined;
  /** Who waits for nodes to have a new server CA; default: `receipts`. */
  readonly handOver?: HandOver | undefined;
  readonly registry?: Registry | undefined;
}

/** A set of controllers with all they read from. */
export interface Assembly {
  readonly controllers: readonly Controller[];
  /** Works until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>;
}

const SAFETY_NET_MS = minutes(10);

/** `rotunda machine-config-operator`: to be run by whoever leads the lease `machine-config`. */
export function machineConfigOperator(deps: MachineConfigOperatorDeps): Assembly {
  const { kube, clock, events, log, registry } = deps;
  const caches = operatorCaches(kube, { clock, onError: error => log.warn({ err: error }, 'watching failed') });
  const informers = operatorInformers(caches);
  const name = 'MachineConfigOperator';
  const reconcile = operatorReconcile({
    ...deps,
    caches,
    eventsAbout: deps.eventsAbout ?? (() => events),
    metrics: registry && operatorMetrics(registry),
  });
  const controller = new Controller({
    name,
    reconcile,
    clock,
    events,
    log,
    triggers: triggersOf(caches),
    resyncMs: SAFETY_NET_MS,
    metrics: registry && controllerMetrics(registry)(name),
  });
  return assembly([controller], informers);
}

/** Every source asks for a pass; of nodes only what the operator looks at, and not each of their heartbeats. */
function triggersOf(caches: OperatorCaches): Trigger[] {
  const { nodes, configMaps, ...others } = caches;
  const informers = operatorInformers({ ...others, configMaps: new Map(), nodes }).filter(
    informer => informer !== (nodes as unknown),
  );
  return [
    onTransition(nodes, (before, after) => (isDeepStrictEqual(seenOf(before), seenOf(after)) ? [] : [ONLY_KEY])),
    ...[...configMaps].map(([namespace, informer]) =>
      onChange(informer, namespace === KUBE_SYSTEM_NAMESPACE ? { when: named('root-ca', 'bootstrap') } : {}),
    ),
    ...informers.map(informer => onChange(informer)),
  ];
}

function seenOf(node: Node | undefined): unknown {
  const { labels, annotations = {} } = node?.metadata ?? {};
  const seen = [CURRENT_CONFIG, LAST_OBSERVED_SERVER_CA, SERVER_CA_DIGEST].map(name => annotations[name]);
  return node && [labels, seen, node.status?.nodeInfo?.kubeletVersion];
}

/** Controllers that run with their informers and end with them. */
export function assembly(
  controllers: readonly Controller[],
  informers: readonly { start(): unknown; stop(): Promise<void> }[],
): Assembly {
  return {
    controllers,
    async run(signal) {
      for (const informer of informers) informer.start();
      try {
        await runAll(controllers, signal);
      } finally {
        await Promise.all(informers.map(informer => informer.stop()));
      }
    },
  };
}
