import { arch, cpus, hostname, totalmem } from 'node:os';
import type { Lease } from 'kubernetes-types/coordination/v1.d.ts';
import type { Node, NodeCondition } from 'kubernetes-types/core/v1.d.ts';
import type { Log } from '../controller/log.ts';
import { updateStatus } from '../controller/status.ts';
import { type Clock, sleep } from '../kube/clock.ts';
import { minutes, seconds } from '../kube/duration.ts';
import { isAlreadyExists } from '../kube/error.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { LEASES, NODES } from '../kube/resource.ts';
import { formatRfc3339, formatRfc3339Micro } from '../kube/time.ts';
import { VERSION } from '../kube/version.ts';
import { DEFAULT_MOST_PODS } from './pod-limit.ts';

export interface HeartbeatOptions {
  readonly name: string;
  readonly address: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly kube: Kube;
  readonly clock: Clock;
  readonly log: Log;
  /** More pods than these are refused, as by any kubelet. */
  readonly mostPods?: (() => number) | undefined;
  /** Whether the node is on; absent: it is. */
  readonly power?: { readonly isOn: boolean } | undefined;
}

const LEASE_NAMESPACE = 'kube-node-lease';
const LEASE_SECONDS = 40;
const RENEW_MS = seconds(10);
const RETRY_MS = seconds(1);
/** A condition that does not change is confirmed this often. */
const CONFIRM_MS = minutes(5);
const SWITCHED_OFF = {
  status: 'Unknown',
  reason: 'NodeStatusUnknown',
  message: 'Kubelet stopped posting node status.',
};
/** What we claim to be to those who ask for the version of the kubelet. */
const KUBELET_VERSION = `v1.29.0+rotunda.${VERSION}`;

/** Keeps the Node object there and its lease fresh: other parts of the cluster tell from them that the node lives. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #stop = new AbortController();
  readonly #registered = Promise.withResolvers<void>();
  #uid: string | undefined;
  #lease: Lease | undefined;
  #confirmedMs = Number.NEGATIVE_INFINITY;
  #run: Promise<void> | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#registered.promise.catch(() => {});
  }

  /** The identity of the Node object; undefined until it is there. */
  get uid(): string | undefined {
    return this.#uid;
  }

  /** Resolves when the API knows the node for the first time. */
  get registered(): Promise<void> {
    return this.#registered.promise;
  }

  start(): void {
    this.#run ??= this.#beat();
  }

  /** Stops, and says that the node is not ready any more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#registered.reject(new Error('the node has been stopped'));
    await this.#run;
    const gone = { status: 'False', reason: 'KubeletStopped', message: 'the node has been stopped' };
    await this.#writeStatus(gone).catch((error: unknown) => {
      this.#options.log.debug({ err: error }, 'the node could not say good-bye');
    });
  }

  /** Says again what the node is, now. */
  async confirm(): Promise<void> {
    if (this.#uid === undefined || this.#stop.signal.aborted) return;
    await this.#register().catch((error: unknown) => {
      this.#options.log.debug({ err: error }, 'the node could not say what it is');
    });
  }

  /** Renews the lease, now. */
  async renew(): Promise<void> {
    if (this.#uid === undefined || this.#stop.signal.aborted) return;
    await this.#renewLease().catch((error: unknown) => {
      this.#options.log.debug({ err: error }, 'the lease could not be renewed');
    });
  }

  async #beat(): Promise<void> {
    const { clock, log, name } = this.#options;
    while (!this.#stop.signal.aborted) {
      let pauseMs = RENEW_MS;
      try {
        if (this.#options.power?.isOn === false) {
          if (this.#confirmedMs > Number.NEGATIVE_INFINITY) await this.#writeStatus(SWITCHED_OFF);
          this.#confirmedMs = Number.NEGATIVE_INFINITY;
          // Off since an earlier start: the API knows it all the same.
          if ((await getIfPresent(this.#options.kube, NODES, { name })) !== undefined) this.#registered.resolve();
          await sleep(clock, RETRY_MS, this.#stop.signal);
          continue;
        }
        // The lease belongs to the Node and goes with it: while it can be renewed, nobody need ask for the Node.
        const isConfirmDue = clock.now().getTime() - this.#confirmedMs >= CONFIRM_MS;
        if (this.#lease === undefined || isConfirmDue) await this.#register();
        await this.#renewLease();
        this.#registered.resolve();
      } catch (error) {
        log.debug({ err: error, node: name }, 'heartbeat failed');
        pauseMs = RETRY_MS;
      }
      await sleep(clock, pauseMs, this.#stop.signal).catch(() => {});
    }
  }

  async #register(): Promise<void> {
    const { kube, name, labels, annotations, clock } = this.#options;
    let node = await getIfPresent(kube, NODES, { name });
    if (node === undefined) {
      node = await kube
        .create(NODES, { metadata: { name, labels: { ...labels }, annotations: { ...annotations } } })
        .catch((error: unknown) => {
          if (isAlreadyExists(error)) return kube.get(NODES, { name });
          throw error;
        });
    }
    const isNew = node.metadata?.uid !== this.#uid;
    this.#uid = node.metadata?.uid;
    if (isNew && lacks(node, labels, annotations)) {
      await kube.patch(NODES, { name }, { type: 'merge', body: { metadata: { labels, annotations } } });
    }
    await this.#writeStatus({ status: 'True', reason: 'KubeletReady', message: 'the node runs pods' });
    this.#confirmedMs = clock.now().getTime();
  }

  async #writeStatus(ready: Pick<NodeCondition, 'status'> & { reason: string; message: string }): Promise<void> {
    const { kube, name, clock } = this.#options;
    const now = clock.now();
    await updateStatus(kube, NODES, { name }, node => ({ ...node, status: this.#status(node, ready, now) }), { clock });
  }

  #status(
    node: Node,
    ready: { status: string; reason: string; message: string },
    now: Date,
  ): NonNullable<Node['status']> {
    const conditions = node.status?.conditions ?? [];
    const wanted = [
      { type: 'Ready', ...ready },
      { type: 'MemoryPressure', status: 'False', reason: 'KubeletHasSufficientMemory', message: '' },
      { type: 'DiskPressure', status: 'False', reason: 'KubeletHasNoDiskPressure', message: '' },
      { type: 'PIDPressure', status: 'False', reason: 'KubeletHasSufficientPID', message: '' },
    ].map(condition => {
      const before = conditions.find(({ type }) => type === condition.type);
      const time = formatRfc3339(now);
      const lastTransitionTime = before?.status === condition.status ? (before.lastTransitionTime ?? time) : time;
      return { ...condition, lastHeartbeatTime: time, lastTransitionTime };
    });
    const capacity = {
      cpu: String(cpus().length),
      memory: `${Math.floor(totalmem() / 1024)}Ki`,
      pods: String(this.#options.mostPods?.() ?? DEFAULT_MOST_PODS),
    };
    const { name, address } = this.#options;
    return {
      ...node.status,
      addresses: [
        { type: 'InternalIP', address },
        { type: 'Hostname', address: name },
      ],
      capacity,
      allocatable: capacity,
      conditions: [...wanted, ...conditions.filter(({ type }) => !wanted.some(other => other.type === type))],
      nodeInfo: {
        ...EMPTY_NODE_INFO,
        ...node.status?.nodeInfo,
        kubeletVersion: KUBELET_VERSION,
        kubeProxyVersion: KUBELET_VERSION,
        containerRuntimeVersion: `rotunda://${VERSION}`,
        operatingSystem: 'linux',
        architecture: arch() === 'x64' ? 'amd64' : arch(),
        osImage: `Rotunda local node on ${hostname()}`,
        kernelVersion: process.version,
      },
    };
  }

  async #renewLease(): Promise<void> {
    const { kube, name, clock } = this.#options;
    const existing = this.#lease ?? (await getIfPresent(kube, LEASES, { namespace: LEASE_NAMESPACE, name }));
    // Whatever goes wrong, the next beat begins with what the API has.
    this.#lease = undefined;
    const renewTime = formatRfc3339Micro(clock.now());
    const spec = { ...existing?.spec, holderIdentity: name, leaseDurationSeconds: LEASE_SECONDS, renewTime };
    const owner = { apiVersion: 'v1', kind: 'Node', name, uid: this.#uid ?? '' };
    const metadata = { namespace: LEASE_NAMESPACE, name, ownerReferences: [owner] };
    this.#lease =
      existing === undefined
        ? await kube.create(LEASES, { metadata, spec })
        : await kube.update(LEASES, {
            ...existing,
            metadata: { ...existing.metadata, ownerReferences: [owner] },
            spec,
          });
  }
}

const EMPTY_NODE_INFO = { bootID: '', machineID: '', systemUUID: '' };

function lacks(
  node: Node,
  labels: Readonly<Record<string, string>>,
  annotations: Readonly<Record<string, string>>,
): boolean {
  const misses = (wanted: Readonly<Record<string, string>>, found: Readonly<Record<string, string | undefined>> = {}) =>
    Object.entries(wanted).some(([name, value]) => found[name] !== value);
  return misses(labels, node.metadata?.labels) || misses(annotations, node.metadata?.annotations);
}
