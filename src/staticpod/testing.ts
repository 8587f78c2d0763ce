import type { ConfigMap, Node, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { silentLog } from '../controller/log.ts';
import type { Reconcile, ReconcileContext, Result } from '../controller/reconcile.ts';
import { VirtualClock } from '../kube/clock.ts';
import { type RecordedEvent, recordingEvents } from '../kube/events.ts';
import { MemoryKube } from '../kube/memory.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, PODS, type Resource, resource, SECRETS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import type { StaticPodOperatorConfig } from './config.ts';
import { type NodeStatus, readNodeStatus, type StoredNodeStatus } from './node-status.ts';
import { liveObjects, type Objects } from './objects.ts';
import {
  StaticPodOperator,
  type StaticPodOperatorResource,
  type StaticPodOperatorSpec,
  type StaticPodOperatorStatus,
} from './operator.ts';

/** What the tests of this room share: one moment, one small cluster, one operator. */
export const NOW = new Date('2026-01-01T00:00:00Z');
export const NAMESPACE = 'openshift-test';

export const OPERATORS: Resource<StaticPodOperatorResource> = resource<StaticPodOperatorResource>(
  'operator.openshift.io/v1',
  'KubeAPIServer',
  'kubeapiservers',
  false,
);

export const CONFIG: StaticPodOperatorConfig = {
  operandName: 'test',
  operandNamespace: NAMESPACE,
  staticPodName: 'test',
  operandLabels: { app: 'test-operand' },
  operator: OPERATORS,
  revisioned: { configMaps: [{ name: 'test-pod' }], secrets: [{ name: 'test-secret' }] },
  installer: { command: ['rotunda', 'installer'], image: 'rotunda:test' },
  pruner: { command: ['rotunda', 'prune'], directoryPrefix: 'test-pod' },
};

/** A time so many seconds from `NOW`. */
export function at(relativeSeconds: number): Date {
  return new Date(NOW.getTime() + relativeSeconds * 1000);
}

/** A cluster in memory whose controllers are run pass by pass. */
export class TestCluster {
  readonly kube: Kube;
  readonly clock: VirtualClock;
  readonly events: RecordedEvent[];
  readonly context: ReconcileContext;
  readonly operator: StaticPodOperator;
  readonly cached: Objects;

  constructor({ kube = new MemoryKube(), now = NOW }: { kube?: Kube; now?: Date } = {}) {
    const events = recordingEvents();
    this.kube = kube;
    this.clock = new VirtualClock(now);
    this.events = events.events;
    this.operator = new StaticPodOperator({ kube, resource: OPERATORS, clock: this.clock });
    this.cached = liveObjects(kube);
    const { signal } = new AbortController();
    this.context = { signal, clock: this.clock, events, log: silentLog, enqueue: () => {} };
  }

  /** What the controllers are made from. */
  get parts() {
    const { kube, operator, cached } = this;
    return { config: CONFIG, kube, operator, cached, events: this.context.events };
  }

  async setOperator(status: StaticPodOperatorStatus, spec: StaticPodOperatorSpec = {}): Promise<void> {
    await this.kube.create(OPERATORS, { metadata: { name: 'cluster' }, spec, status });
  }

  async status(): Promise<StaticPodOperatorStatus> {
    return (await this.operator.readLive()).status ?? {};
  }

  async put(...objects: (ConfigMap | Secret | Pod | Node)[]): Promise<void> {
    for (const object of objects) await this.kube.create(resourceOf(object), object);
  }

  async has(resource: Resource, name: string, namespace: string | undefined = NAMESPACE): Promise<boolean> {
    return (await this.cached.get(resource, { namespace, name })) !== undefined;
  }

  /** One pass; pauses inside it end at once. */
  async run(reconcile: Reconcile): Promise<Result | void> {
    const pass = reconcile('key', this.context);
    let isOver = false;
    const over = () => (isOver = true);
    pass.then(over, over);
    for (let next = this.clock.nextWait(); !isOver; next = this.clock.nextWait()) {
      if (next === undefined) await new Promise(resolve => setImmediate(resolve));
      else await this.clock.advanceTo(next);
    }
    return pass;
  }
}

const RESOURCES: Record<string, Resource> = {
  ConfigMap: CONFIG_MAPS,
  Secret: SECRETS,
  Pod: PODS,
  Node: resource<Node>('v1', 'Node', 'nodes', false),
};

function resourceOf({ kind = '' }: KubeObject): Resource {
  const found = RESOURCES[kind];
  if (found === undefined)
    throw new TypeError(`a test object needs one of the kinds ${Object.keys(RESOURCES).join(', ')}`);
  return found;
}

export function configMap(
  name: string,
  data: Record<string, string> = {},
  annotations?: Record<string, string>,
): ConfigMap {
  const metadata = { namespace: NAMESPACE, name, ...(annotations === undefined ? {} : { annotations }) };
  return { kind: 'ConfigMap', metadata, data };
}

export function secret(name: string, data: Record<string, string> = {}): Secret {
  const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  return {
    kind: 'Secret',
    metadata: { namespace: NAMESPACE, name },
    type: 'Opaque',
    data: Object.fromEntries(encoded),
  };
}

/** The mirror pod of the operand on a node. */
export function operandPod(nodeName: string, revision: number | string, ready: boolean, since = at(-3600)): Pod {
  return {
    kind: 'Pod',
    metadata: {
      namespace: NAMESPACE,
      name: `${CONFIG.staticPodName}-${nodeName}`,
      labels: { ...CONFIG.operandLabels, revision: String(revision) },
      creationTimestamp: formatRfc3339(since),
    },
    spec: { nodeName, containers: [{ name: 'operand', image: 'operand:test' }] },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: formatRfc3339(since) }],
    },
  };
}

/** A node entry as it is stored. */
export function storedNode(nodeName: string, entry: Omit<StoredNodeStatus, 'nodeName'> = {}): StoredNodeStatus {
  return { nodeName, currentRevision: 0, ...entry };
}

/** A node entry with zeros where nothing is said. */
export function node(nodeName: string, entry: Omit<StoredNodeStatus, 'nodeName'> = {}): NodeStatus {
  return readNodeStatus({ nodeName, ...entry });
}

export type Verb = 'get' | 'list' | 'create' | 'update' | 'updateStatus' | 'delete';
/** A call to the API: what is to be done with what. Throws to make it fail. */
export type CallHook = (
  verb: Verb,
  resource: Resource,
  name: string,
  object: KubeObject | undefined,
) => void | Promise<void>;

/** The same API, with something between it and its caller. */
export function intercepted(kube: Kube, before: CallHook): Kube {
  const nameOf = (object: KubeObject) => object.metadata?.name ?? '';
  return {
    async get(resource, key, options) {
      await before('get', resource, key.name, undefined);
      return kube.get(resource, key, options);
    },
    async list(resource, options) {
      await before('list', resource, '', undefined);
      return kube.list(resource, options);
    },
    watch: (resource, options) => kube.watch(resource, options),
    async create(resource, object, options) {
      await before('create', resource, nameOf(object), object);
      return kube.create(resource, object, options);
    },
    async update(resource, object, options) {
      await before('update', resource, nameOf(object), object);
      return kube.update(resource, object, options);
    },
    async updateStatus(resource, object, options) {
      await before('updateStatus', resource, nameOf(object), object);
      return kube.updateStatus(resource, object, options);
    },
    patch: (resource, key, patch, options) => kube.patch(resource, key, patch, options),
    async delete(resource, key, options) {
      await before('delete', resource, key.name, undefined);
      return kube.delete(resource, key, options);
    },
    evict: (pod, options) => kube.evict(pod, options),
  };
}
