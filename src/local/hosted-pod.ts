import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { createLog, type Log } from '../controller/log.ts';
import { updateStatus } from '../controller/status.ts';
import { type Clock, systemClock } from '../kube/clock.ts';
import { isNotFound } from '../kube/error.ts';
import type { Kube } from '../kube/port.ts';
import { NODES, PODS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { ContainerLog } from './container-log.ts';
import { CONFIG_MIRROR } from './static-pods.ts';

export interface HostedPodOptions {
  readonly namespace: string;
  readonly name: string;
  readonly container: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly node: { readonly name: string; readonly root: string; readonly address: string };
  readonly kube: Kube;
  readonly clock?: Clock | undefined;
}

/**
 * A pod that runs inside of this process: it is shown in the API as one of its node, like a static pod, and its output can be read.
 * Nobody starts or ends anything for it.
 */
export class HostedPod {
  readonly key: string;
  readonly container: string;
  readonly logPath: string;
  readonly #options: HostedPodOptions;
  readonly #clock: Clock;
  readonly #output: ContainerLog;

  constructor(options: HostedPodOptions) {
    const { namespace, name, container, node, clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    this.key = `${namespace}/${name}`;
    this.container = container;
    this.logPath = join(node.root, 'var/log/pods', `${namespace}_${name}`, container, '0.log');
    this.#output = new ContainerLog(this.logPath, clock);
  }

  /** What is logged goes to the pod's output as well. */
  log(also: Log): Log {
    this.#output.follow();
    const own = createLog({
      name: this.container,
      clock: this.#clock,
      destination: { write: line => appendFileSync(this.logPath, line, { mode: 0o600 }) },
    });
    return both(own, also);
  }

  /** Shows the pod in the API, in place of one that an earlier process showed. */
  async show(signal: AbortSignal): Promise<void> {
    const { kube, namespace, name, node } = this.#options;
    await kube.delete(PODS, { namespace, name }, { gracePeriodSeconds: 0, signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    const { metadata } = await kube.get(NODES, { name: node.name }, { signal });
    await kube.create(PODS, this.#pod(metadata?.uid ?? ''), { signal });
    const running = (pod: Pod): Pod => ({ ...pod, status: this.#status() });
    await updateStatus(kube, PODS, { namespace, name }, running, { clock: this.#clock, signal });
  }

  /** The pod has ended, and is not shown any more. */
  async hide(): Promise<void> {
    const { kube, namespace, name } = this.#options;
    this.close();
    await kube.delete(PODS, { namespace, name }, { gracePeriodSeconds: 0 }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }

  close(): void {
    this.#output.close();
  }

  #pod(nodeUid: string): Pod {
    const { namespace, name, container, labels, node } = this.#options;
    const owner = { apiVersion: 'v1', kind: 'Node', name: node.name, uid: nodeUid, controller: true };
    return {
      metadata: {
        namespace,
        name,
        labels: { ...labels },
        annotations: { [CONFIG_MIRROR]: this.key },
        ownerReferences: [owner],
      },
      spec: { nodeName: node.name, hostNetwork: true, containers: [{ name: container, image: 'rotunda' }] },
    };
  }

  #status(): NonNullable<Pod['status']> {
    const { container, node } = this.#options;
    const startedAt = formatRfc3339(this.#clock.now());
    const condition = (type: string) => ({ type, status: 'True' as const, lastTransitionTime: startedAt });
    return {
      phase: 'Running',
      hostIP: node.address,
      podIP: node.address,
      startTime: startedAt,
      conditions: ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(condition),
      containerStatuses: [
        {
          name: container,
          image: 'rotunda',
          imageID: '',
          ready: true,
          started: true,
          restartCount: 0,
          state: { running: { startedAt } },
        },
      ],
    };
  }
}

function both(one: Log, other: Log): Log {
  return {
    debug: (fields, message) => [one, other].forEach(log => log.debug(fields, message)),
    info: (fields, message) => [one, other].forEach(log => log.info(fields, message)),
    warn: (fields, message) => [one, other].forEach(log => log.warn(fields, message)),
    error: (fields, message) => [one, other].forEach(log => log.error(fields, message)),
    child: fields => both(one.child(fields), other.child(fields)),
  };
}
