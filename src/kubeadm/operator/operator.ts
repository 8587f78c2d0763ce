import { isDeepStrictEqual } from 'node:util';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { Controller, runAll } from '../../controller/controller.ts';
import type { Log } from '../../controller/log.ts';
import { controllerMetrics, type Registry } from '../../controller/metrics.ts';
import { ONLY_KEY } from '../../controller/reconcile.ts';
import { objectKey, onChange, onTransition } from '../../controller/trigger.ts';
import { WAIVED } from '../../hand-over/names.ts';
import type { Clock } from '../../kube/clock.ts';
import { minutes } from '../../kube/duration.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { Informer } from '../../kube/informer.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS, NODES, PODS, SECRETS } from '../../kube/resource.ts';
import { type Keys, systemKeys } from '../../pki/keys.ts';
import { CLUSTER_INFO, CONTROL_PLANE_LABEL, PKI_NAMESPACE, STATIC_POD_NAMESPACE } from '../names.ts';
import { NODE_REPORT } from '../report.ts';
import { approveRequests } from './approve.ts';
import { operatorMetrics } from './metrics.ts';
import { Pass, type PassDeps } from './pass.ts';
import { restartOwners } from './restart-owners.ts';

export interface KubeadmOperatorDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly keys?: Keys | undefined;
  readonly registry?: Registry | undefined;
  /** How servers are asked and looked at, where they are no real ones. */
  readonly ask?: PassDeps['ask'];
  readonly look?: PassDeps['look'];
}

const SAFETY_NET_MS = minutes(10);

/** `rotunda kubeadm-operator`: to be run by whoever leads. */
export function kubeadmOperator(deps: KubeadmOperatorDeps) {
  const { kube, clock, events, log, registry, keys = systemKeys } = deps;
  const onError = (error: unknown) => log.warn({ err: error }, 'watching failed');
  const inPki = { selection: { namespace: PKI_NAMESPACE }, clock, onError };
  const nodes = new Informer(kube, NODES, { clock, onError });
  const staticPods = new Informer(kube, PODS, {
    selection: { namespace: STATIC_POD_NAMESPACE, labelSelector: 'tier=control-plane' },
    selects: pod => pod.metadata?.labels?.tier === 'control-plane',
    clock,
    onError,
  });
  const configMaps = new Informer(kube, CONFIG_MAPS, inPki);
  const secrets = new Informer(kube, SECRETS, inPki);
  const clusterInfo = new Informer(kube, CONFIG_MAPS, {
    selection: { namespace: CLUSTER_INFO.namespace, fieldSelector: `metadata.name=${CLUSTER_INFO.name}` },
    clock,
    onError,
  });
  const requests = new Informer(kube, CERTIFICATE_SIGNING_REQUESTS, { clock, onError });
  const metrics = registry && controllerMetrics(registry);
  const pass = new Pass({
    kube,
    clock,
    keys,
    events,
    log,
    nodes: () => nodes.list(),
    staticPods: () => staticPods.list(),
    pods: async () => (await listAll(kube, PODS)).items,
    restart: pods => restartOwners(pods, { kube, clock, events }),
    ask: deps.ask,
    look: deps.look,
    onSight: registry && operatorMetrics(registry, clock),
  });
  const name = 'KubeadmController';
  const controller = new Controller({
    name,
    reconcile: () => pass.run(),
    clock,
    events,
    log,
    triggers: [
      onTransition(nodes, (before, after) => (isDeepStrictEqual(seenOf(before), seenOf(after)) ? [] : [ONLY_KEY])),
      onChange(configMaps),
      onChange(secrets),
      onChange(clusterInfo),
      onChange(staticPods),
    ],
    resyncMs: SAFETY_NET_MS,
    metrics: metrics?.(name),
  });
  const approver = 'KubeadmRequestController';
  const approving = new Controller({
    name: approver,
    reconcile: key => approveRequests(key, { kube, clock, events, requests }),
    clock,
    events,
    log,
    triggers: [onChange(requests, { keys: objectKey })],
    metrics: metrics?.(approver),
  });
  const informers = [nodes, staticPods, configMaps, secrets, clusterInfo, requests];
  return {
    controllers: [controller, approving],
    /** Works until `signal` aborts. */
    async run(signal: AbortSignal): Promise<void> {
      for (const informer of informers) informer.start();
      try {
        await runAll([controller, approving], signal);
      } finally {
        await Promise.all(informers.map(informer => informer.stop()));
      }
    },
  };
}

/** What a pass looks at, and not each heartbeat. */
function seenOf(node: Node | undefined): unknown {
  const { labels, annotations = {} } = node?.metadata ?? {};
  const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
  return (
    node && [
      annotations[NODE_REPORT],
      annotations[WAIVED],
      labels?.[CONTROL_PLANE_LABEL],
      ready?.status,
      ready?.lastTransitionTime,
      node.status?.addresses,
      node.metadata?.uid,
    ]
  );
}
