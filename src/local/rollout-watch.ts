import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, PODS, type Resource } from '../kube/resource.ts';
import { isInTransition, readNodeStatus } from '../staticpod/node-status.ts';
import type { StaticPodOperatorResource, StaticPodOperatorStatus } from '../staticpod/operator.ts';
import { copyName } from '../staticpod/revision/number.ts';
import type { LocalNode } from './node.ts';
import type { PartState } from './part.ts';

export interface RolloutWatchOptions {
  readonly kube: Kube;
  readonly resource: Resource<StaticPodOperatorResource>;
  readonly namespace: string;
  /** The pods are named after it and their nodes. */
  readonly podName: string;
  /** ConfigMaps that a revision copies: one that has changed since means that another revision is to come. */
  readonly revisioned: readonly string[];
  readonly controlPlane: readonly LocalNode[];
  readonly isStandIn: boolean;
  /** Something else that has to be true; a text says what is waited for. */
  readonly also?: ((status: StaticPodOperatorStatus, read: ReadConfigMap) => string | undefined) | undefined;
  readonly changed: () => void;
}

/** A ConfigMap of the operand's namespace. */
export type ReadConfigMap = (name: string) => ConfigMap | undefined;

/**
 * Tells how far an operand is on its way to the control-plane nodes, in the operator's eyes and in fact: after a start the API
 * still tells of the pods of before.
 */
export class RolloutWatch {
  readonly #options: RolloutWatchOptions;
  readonly #operators: Informer<StaticPodOperatorResource>;
  readonly #configMaps: Informer<ConfigMap>;
  readonly #informers: readonly { start(): unknown; stop(): Promise<void> }[];

  constructor(options: RolloutWatchOptions) {
    const { kube, resource, namespace, changed } = options;
    this.#options = options;
    const selection = { namespace };
    this.#operators = new Informer(kube, resource);
    this.#configMaps = new Informer(kube, CONFIG_MAPS, { selection });
    const pods = new Informer(kube, PODS, { selection });
    const look = { add: changed, update: changed, delete: changed };
    this.#operators.subscribe(look);
    this.#configMaps.subscribe(look);
    pods.subscribe(look);
    this.#informers = [this.#operators, this.#configMaps, pods];
    for (const informer of this.#informers) informer.start();
  }

  state(): PartState {
    const { controlPlane, podName, namespace, isStandIn, also } = this.#options;
    const status = this.#operators.get({ name: 'cluster' })?.status ?? {};
    const serving = controlPlane.filter(node => serves(node, namespace, podName)).map(({ name }) => name);
    const names = controlPlane.map(({ name }) => name);
    const { ready, text } = describeRollout(status, names, serving, this.#outdated(status));
    const wanted = ready ? also?.(status, name => this.#read(name)) : undefined;
    const note = isStandIn ? ' (stand-in)' : '';
    return wanted === undefined
      ? { ready, text: `${text}${note}` }
      : { ready: false, text: `waiting for ${wanted}${note}` };
  }

  /** Watches as long as the operator works, and ends as it ends. */
  async during(work: Promise<void>): Promise<void> {
    try {
      await work;
    } finally {
      await Promise.all(this.#informers.map(informer => informer.stop()));
    }
  }

  #outdated({ latestAvailableRevision: latest = 0 }: StaticPodOperatorStatus): string | undefined {
    const text = (name: string) => JSON.stringify(this.#read(name)?.data);
    return this.#options.revisioned.find(name => text(name) !== text(copyName(name, latest)));
  }

  #read(name: string): ConfigMap | undefined {
    return this.#configMaps.get({ namespace: this.#options.namespace, name });
  }
}

/** How far a rollout is. Ready: every node runs the latest revision and serves, and nothing new waits for a revision. */
export function describeRollout(
  status: StaticPodOperatorStatus,
  expected: readonly string[],
  serving: readonly string[],
  outdated: string | undefined,
): PartState {
  const { latestAvailableRevision: latest = 0, conditions = [] } = status;
  const nodes = (status.nodeStatuses ?? []).map(readNodeStatus);
  const has = (type: string, wanted: string) =>
    conditions.some(found => found.type === type && found.status === wanted);
  if (latest === 0) return waiting(`the first revision${because(conditions)}`);
  const unlisted = expected.filter(name => !nodes.some(({ nodeName }) => nodeName === name));
  if (unlisted.length > 0) return waiting(`the operator to list ${unlisted.join(', ')}`);
  const done = nodes.filter(node => node.currentRevision === latest && !isInTransition(node));
  const progress = `revision ${latest} on ${done.length} of ${nodes.length} nodes`;
  const moving = nodes.find(isInTransition);
  if (moving !== undefined)
    return { ready: false, text: `${progress}, installing ${moving.targetRevision} on ${moving.nodeName}` };
  if (done.length < nodes.length) return { ready: false, text: `${progress}${because(conditions)}` };
  const silent = expected.filter(name => !serving.includes(name));
  if (silent.length > 0) return waiting(`ready pods on ${silent.join(', ')}`);
  if (outdated !== undefined) return waiting(`a revision with the new ${outdated}${because(conditions)}`);
  if (!has('StaticPodsAvailable', 'True') || !has('NodeInstallerProgressing', 'False'))
    return waiting('the operator to say that all nodes are done');
  return { ready: true, text: progress };
}

const LONGEST_REASON = 120;

/** What the operator complains about, if it does. */
function because(conditions: NonNullable<StaticPodOperatorStatus['conditions']>): string {
  const bad = conditions.find(({ type, status, message }) => type.endsWith('Degraded') && status === 'True' && message);
  const [line = ''] = (bad?.message ?? '').split('\n');
  return bad === undefined ? '' : `: ${line.length > LONGEST_REASON ? `${line.slice(0, LONGEST_REASON)}...` : line}`;
}

function waiting(text: string): PartState {
  return { ready: false, text: `waiting for ${text}` };
}

function serves(node: LocalNode, namespace: string, podName: string): boolean {
  const { conditions = [] } = node.runner(namespace, `${podName}-${node.name}`)?.status() ?? {};
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}
