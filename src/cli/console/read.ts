import type { Event, Pod } from 'kubernetes-types/core/v1.d.ts';
import { CLUSTER_OPERATORS } from '../../controller/cluster-operator-status.ts';
import type { Condition } from '../../controller/condition.ts';
import { ETCD_NAMESPACE } from '../../etcd/names.ts';
import { metadataOf } from '../../inventory/certificates.ts';
import { inventoryOf, readObjects, rotationDayOf } from '../../inventory/read.ts';
import type { ObjectSource } from '../../inventory/source.ts';
import { EVENTS, type KubeObject, PODS } from '../../kube/resource.ts';
import { OPERAND_NAMESPACE } from '../../kube-apiserver/namespaces.ts';
import { handOverItems } from '../hand-overs/items.ts';
import type { EventItem, OperatorItem, Sections, StaticPodItem } from './model.ts';

/** The newest ones are enough: events are not an archive. */
const MOST_EVENTS = 500;
/** What a local node writes on pods whose program is not the real one. */
const STAND_IN = 'rotunda.dev/stand-in';

/** What the objects of a cluster say. */
export interface ReadModel {
  readonly sections: ReadSections;
  readonly rotationDayMs: number;
}

type ReadSections = { readonly [S in Exclude<keyof Sections, 'changes' | 'handshakes'>]: readonly Sections[S][] };

/** Everything the page shows of the objects of a cluster, as of a moment. */
export async function readModel(source: ObjectSource, now: Date): Promise<ReadModel> {
  const [objects, clusterOperators, events, ...pods] = await Promise.all([
    readObjects(source, { parts: ['certificates', 'nodes', 'revisions', 'pools', 'hand-overs'] }),
    source.list(CLUSTER_OPERATORS),
    source.list(EVENTS),
    ...[OPERAND_NAMESPACE, ETCD_NAMESPACE].map(namespace => source.list(PODS, { namespace })),
  ]);
  const { certificates, bundles, nodes, revisions, pools } = inventoryOf(objects, now);
  // What their operators have noted: a page that many look at asks nobody.
  const handOvers = await handOverItems(objects, source, now);
  const operators = clusterOperators.map(operator =>
    operatorItem(operator.metadata?.name ?? '', operator, operator.status?.conditions),
  );
  // Where no ClusterOperator sums up, the operator's own resource speaks.
  const others = objects.operands.flatMap(({ operand, resource }) =>
    resource === undefined || operators.some(({ metadata }) => metadata.name === operand)
      ? []
      : [operatorItem(operand, resource, resource.status?.conditions)],
  );
  const sections = {
    certificates,
    bundles,
    nodes,
    revisions,
    pools,
    handOvers,
    operators: [...operators, ...others],
    pods: pods.flat().flatMap(staticPodItem),
    events: newestEvents(events),
  };
  return { sections, rotationDayMs: rotationDayOf(objects.configMaps) };
}

function operatorItem(name: string, object: KubeObject, conditions: readonly Condition[] = []): OperatorItem {
  return {
    metadata: { ...metadataOf(object), name },
    conditions: conditions.map(({ type, status, reason, message, lastTransitionTime }) => ({
      type,
      status,
      reason,
      message,
      lastTransitionTime,
    })),
  };
}

/** Static pods show in the API as mirrors of what a node runs; other pods of the namespace come and go. */
function staticPodItem(pod: Pod): StaticPodItem[] {
  const { annotations = {}, labels = {} } = pod.metadata ?? {};
  if (annotations['kubernetes.io/config.mirror'] === undefined) return [];
  const revision = Number(labels.revision);
  const { phase = 'Unknown', conditions = [], containerStatuses = [] } = pod.status ?? {};
  return [
    {
      metadata: metadataOf(pod),
      operand: labels.app === 'openshift-kube-apiserver' ? 'kube-apiserver' : (labels.app ?? ''),
      node: pod.spec?.nodeName ?? '',
      phase,
      ready: conditions.some(({ type, status }) => type === 'Ready' && status === 'True'),
      ...(Number.isInteger(revision) ? { revision } : {}),
      restarts: containerStatuses.reduce((sum, { restartCount }) => sum + restartCount, 0),
      standIn: annotations[STAND_IN] === 'true',
    },
  ];
}

function newestEvents(events: readonly Event[]): EventItem[] {
  return events
    .map(eventItem)
    .sort((a, b) => (a.lastAt < b.lastAt ? 1 : a.lastAt > b.lastAt ? -1 : 0))
    .slice(0, MOST_EVENTS);
}

function eventItem(event: Event): EventItem {
  const { involvedObject, metadata } = event;
  const series = event.series?.lastObservedTime;
  const lastAt = timeText(series ?? event.lastTimestamp ?? event.eventTime ?? metadata?.creationTimestamp);
  return {
    metadata: { namespace: metadata?.namespace ?? '', name: metadata?.name ?? '' },
    type: event.type ?? 'Normal',
    reason: event.reason ?? '',
    message: event.message ?? '',
    count: event.series?.count ?? event.count ?? 1,
    firstAt: timeText(event.firstTimestamp ?? event.eventTime ?? metadata?.creationTimestamp),
    lastAt,
    source: event.reportingComponent || event.source?.component || '',
    about: [involvedObject?.kind?.toLowerCase(), involvedObject?.name].filter(Boolean).join('/'),
  };
}

function timeText(time: unknown): string {
  return typeof time === 'string' ? time : time instanceof Date ? time.toISOString() : '';
}
