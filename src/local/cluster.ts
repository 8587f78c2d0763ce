import { chmodSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Log, silentLog } from '../controller/log.ts';
import type { HandOverMode } from '../hand-over/sync.ts';
import { aborted } from '../kube/aborted.ts';
import { againWhileTransient } from '../kube/again.ts';
import { systemClock } from '../kube/clock.ts';
import { formatGoDuration, seconds } from '../kube/duration.ts';
import { SINGLETON_CORRELATION } from '../kube/event-correlation.ts';
import { EventWriter } from '../kube/event-writer.ts';
import type { Kube } from '../kube/port.ts';
import type { KeyAlgorithm } from '../pki/keys.ts';
import { nodeAddress } from './addresses.ts';
import type { ClusterApi, Identity } from './cluster-api.ts';
import { holdFolder } from './holder.ts';
import { type ClusterLayout, type NodeRole, type PlannedNode, settleLayout } from './layout.ts';
import { leadOnAndOn } from './leading.ts';
import { endProcesses } from './leftover-pods.ts';
import { LocalNode } from './node.ts';
import { OPENSHIFT_LAYOUT } from './openshift-layout.ts';
import type { ClusterPart, PartContext, RunningPart } from './part.ts';
import { PartBoard, type PartReport, type ProgressListener } from './part-board.ts';
import { localPodLogs } from './pod-logs.ts';
import { type ProgramOptions, Programs } from './programs.ts';

export interface LocalClusterOptions {
  /** Everything is below it; a start with the same directory goes on where the last one ended. */
  readonly dir: string;
  readonly controlPlane?: number | undefined;
  readonly workers?: number | undefined;
  /** How long a day of rotation lasts. */
  readonly dayMs?: number | undefined;
  /** 0 takes the one of the last start, or else a free one. */
  readonly apiPort?: number | undefined;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
  /** When a new signer signs; by receipts unless told otherwise. */
  readonly handOver?: HandOverMode | undefined;
  readonly programs?: ProgramOptions | undefined;
  /** How long an installer waits for writes of others to settle. */
  readonly settleMs?: number | undefined;
  /** How long servers must have been ready before the next node is touched. */
  readonly minReadyMs?: number | undefined;
  /** OpenShift's unless told otherwise; a folder keeps the one that it began with. */
  readonly layout?: ClusterLayout | undefined;
  /** Where the API is; that of the layout unless told otherwise. */
  readonly api?: ((dir: string, log: Log) => Promise<ClusterApi>) | undefined;
  /** What runs in the cluster; everything of the layout unless told otherwise. */
  readonly parts?: readonly ClusterPart[] | undefined;
  /** What runs besides those. */
  readonly moreParts?: readonly ClusterPart[] | undefined;
  /** Where compiled programs are kept between starts; below `dir` unless told otherwise. */
  readonly compileCache?: string | undefined;
  /** Called when the state of some part may have changed, from the first part on. */
  readonly onProgress?: ProgressListener | undefined;
  /** Ends a start that is not done yet. */
  readonly signal?: AbortSignal | undefined;
  readonly log?: Log | undefined;
}

export interface LocalCluster {
  readonly layout: ClusterLayout;
  readonly api: ClusterApi;
  readonly kube: Kube;
  readonly kubeconfigPath: string;
  readonly nodes: readonly LocalNode[];
  readonly controlPlane: readonly LocalNode[];
  /** Programs on its nodes that only stand in for the real ones. */
  readonly standIns: readonly string[];
  /** How every part is now, the nodes first. */
  parts(): PartReport[];
  /** Resolves when every part is ready; rejects when the cluster is closed before. */
  ready(): Promise<void>;
  /** Resolves when the parts have ended; rejects when one of them gave up. */
  readonly ended: Promise<void>;
  /** Ends the parts alone: nodes and their pods go on, and nobody changes the cluster's objects any more. */
  endParts(): Promise<void>;
  /** Ends parts, pods, nodes and the API, in this order. */
  close(): Promise<void>;
}

const DEFAULTS = { controlPlane: 3, workers: 2, apiPort: 0, settleMs: 0, minReadyMs: 0 } as const;
const MOST_CONTROL_PLANE = 9;
const MOST_WORKERS = 100;
/** Addresses of workers begin here, so that they stay when the control plane grows. */
const FIRST_WORKER_INDEX = 50;
const ORPHAN_GRACE_MS = seconds(10);

/** Starts a whole cluster on this machine: the API, its nodes, and everything else in this process. */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const {
    controlPlane,
    workers,
    apiPort,
    settleMs,
    minReadyMs,
    log = silentLog,
    layout = OPENSHIFT_LAYOUT,
    parts = layout.parts,
  } = withDefaults(options);
  const dir = resolve(options.dir);
  const holder = holdFolder(dir);
  const planned = [
    ...plan(dir, 'master', 'control-plane', controlPlane, 0),
    ...plan(dir, 'worker', 'worker', workers, FIRST_WORKER_INDEX),
  ];
  const stop = new AbortController();
  const nodes: LocalNode[] = [];
  const podLogs = localPodLogs(() => nodes);
  const makeApi = async () => {
    settleLayout(dir, layout.name);
    const addresses = planned.filter(({ role }) => role === 'control-plane').map(({ address }) => address);
    return options.api?.(dir, log) ?? layout.api({ dir, port: apiPort, podLogs, log, controlPlane: addresses });
  };
  const api = await makeApi().catch((error: unknown) => {
    holder.release();
    throw error;
  });
  const { kube, kubeconfigPath } = api;
  const writer = new EventWriter(kube, {
    correlation: SINGLETON_CORRELATION,
    onError: err => log.warn({ err }, 'an event could not be written'),
  });
  const board = new PartBoard(options.onProgress);
  const endParts = async () => {
    stop.abort(new Error('the cluster is closed'));
    await board.allOver();
  };
  const close = async () => {
    await endParts();
    await writer.stop();
    await Promise.all(nodes.map(node => node.stop()));
    await api.close();
    holder.release();
  };
  try {
    const { hostname, port } = new URL(api.url);
    const env = {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
      ROTUNDA_SETTLE_PAUSE: formatGoDuration(settleMs),
      NODE_COMPILE_CACHE: options.compileCache ?? process.env.NODE_COMPILE_CACHE ?? join(dir, 'cache'),
      ...(api.serverName === undefined ? {} : { ROTUNDA_API_SERVER_NAME: api.serverName }),
      ...api.podEnv,
    };
    privateDirectory(join(dir, 'nodes'));
    const founding = { dir, nodes: planned, url: api.url, dayMs: options.dayMs, keyAlgorithm: options.keyAlgorithm };
    await layout.found?.(founding);
    for (const { name, role, root, address } of planned) {
      nodes.push(
        new LocalNode({
          name,
          root,
          kube,
          address,
          labels: layout.labels(role),
          kubeconfig: api.podKubeconfig,
          issueToken: api.issueToken,
          env,
          programs: options.programs,
          log,
        }),
      );
    }
    const masters = nodes.slice(0, controlPlane);
    if (api.hasMoved) await endOrphans(nodes);
    // Nodes come first: static pods need no API, and the API may be one of them.
    await Promise.all(nodes.map(node => node.start()));
    const starting = AbortSignal.any([stop.signal, ...(options.signal === undefined ? [] : [options.signal])]);
    await api.reachable(starting);
    // An API of this very cluster may go away again while it starts; all of this can be done twice.
    const patiently = <T>(work: () => Promise<T>) =>
      againWhileTransient(work, {
        signal: starting,
        onError: err => log.info({ err }, 'the API is away while the cluster starts'),
      });
    await layout.provide({ ...founding, api, parts, patiently });
    await Promise.race([Promise.all(nodes.map(node => node.registered)), rejectedBy(starting)]);
    board.add(
      'nodes',
      nodesState(nodes, stop.signal, () => board.changed()),
    );
    const programs = new Programs(options.programs);
    const context: PartContext = {
      kube,
      kubeconfigPath,
      url: api.url,
      as: (identity: Identity) => api.as(identity),
      nodes,
      controlPlane: masters,
      programs,
      dayMs: options.dayMs,
      keyAlgorithm: options.keyAlgorithm,
      handOver: options.handOver,
      minReadyMs,
      log,
      events: (component: string, name: string) =>
        writer.recorder(component, { apiVersion: 'v1', kind: 'Namespace', name, namespace: name }),
      lead: (lease, events, work, as = { kube, signal: stop.signal }) => {
        const { identity } = holder;
        const changed = () => board.changed();
        const options = { kube: as.kube, lease, identity, clock: systemClock, events, log, changed };
        return leadOnAndOn(options, work, as.signal);
      },
      signal: stop.signal,
      patiently,
      changed: () => board.changed(),
    };
    for (const part of [...parts, ...(options.moreParts ?? [])]) {
      const running = await part.start(context);
      running.ended.catch(err => log.error({ err }, `${part.name} gave up`));
      board.add(part.name, running);
    }
    const ready = () => board.allReady(stop.signal);
    const reports = () => board.reports();
    return {
      layout,
      api,
      kube,
      kubeconfigPath,
      nodes,
      controlPlane: masters,
      standIns: layout.programs.filter(name => programs.find(name)?.isStandIn === true),
      parts: reports,
      ready,
      ended: board.ended,
      endParts,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What pods are given lies below it, tokens and keys among them, with the modes that their volumes ask for. */
function privateDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
}

function nodesState(nodes: readonly LocalNode[], signal: AbortSignal, changed: () => void): RunningPart {
  let registered = 0;
  for (const node of nodes) {
    node.registered.then(
      () => {
        registered++;
        changed();
      },
      () => {},
    );
  }
  const state = () => ({
    ready: registered === nodes.length,
    text: `${registered} of ${nodes.length} known to the API`,
  });
  // Nodes are ended by the cluster, after everything that needs them.
  return { ended: aborted(signal), state };
}

async function rejectedBy(signal: AbortSignal): Promise<never> {
  await aborted(signal);
  throw signal.reason;
}

/** What a killed cluster has left would go on asking for the API where it was. */
async function endOrphans(nodes: readonly LocalNode[]): Promise<void> {
  await Promise.all(nodes.map(({ root }) => endProcesses(root, ORPHAN_GRACE_MS, systemClock)));
}

function withDefaults(options: LocalClusterOptions) {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const all = { ...DEFAULTS, ...given } as typeof DEFAULTS &
    LocalClusterOptions &
    Record<keyof typeof DEFAULTS, number>;
  expectCount('controlPlane', all.controlPlane, 1, MOST_CONTROL_PLANE);
  expectCount('workers', all.workers, 0, MOST_WORKERS);
  return all;
}

function expectCount(what: string, found: number, least: number, most: number): void {
  if (Number.isInteger(found) && found >= least && found <= most) return;
  throw new RangeError(`expected ${what} from ${least} to ${most}, found ${found}`);
}

function plan(dir: string, prefix: string, role: NodeRole, count: number, first: number): PlannedNode[] {
  return Array.from({ length: count }, (_, number) => {
    const name = `${prefix}-${number}`;
    return { name, role, address: nodeAddress(dir, first + number), root: join(dir, 'nodes', name) };
  });
}
