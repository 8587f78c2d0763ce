import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { Controller } from '../controller/controller.ts';
import type { Log } from '../controller/log.ts';
import { controllerMetrics, type Registry } from '../controller/metrics.ts';
import { onTransition } from '../controller/trigger.ts';
import type { Host } from '../host/port.ts';
import type { Clock } from '../kube/clock.ts';
import { minutes, seconds } from '../kube/duration.ts';
import type { Kube } from '../kube/port.ts';
import {
  CONTROL_PLANE_TOPOLOGY,
  CURRENT_CONFIG,
  DESIRED_CONFIG,
  DESIRED_IMAGE,
  LAST_APPLIED_DRAIN,
} from '../machine-config-api/names.ts';
import { shakeHands } from '../trust/handshake.ts';
import { announce, announcements } from './agent/announcements.ts';
import { ConfigSource } from './agent/config-source.ts';
import { DriftMonitor } from './agent/drift-monitor.ts';
import { watchForceFile } from './agent/force-file.ts';
import { watchKubeletHealth } from './agent/kubelet-health.ts';
import { sayAccessed, watchLogins } from './agent/login-watch.ts';
import { countMachine } from './agent/machine-metrics.ts';
import { type AgentMetrics, agentMetrics, noAgentMetrics } from './agent/metrics.ts';
import { nodeEvents } from './agent/node-events.ts';
import { NodeSync } from './agent/node-sync.ts';
import { OwnNode } from './agent/own-node.ts';
import { StateReport, type Worker } from './agent/state-report.ts';
import { certificateCaches } from './certificates/caches.ts';
import { CertificateWriter } from './certificates/controller.ts';
import { RestartTurn } from './certificates/restart-turn.ts';
import { unexpectedDisk } from './decide/start-up.ts';
import { NodeWriter } from './node-writer.ts';

export interface MachineConfigDaemonOptions {
  /** Reads the cluster: the agent's own account. It need not be allowed anything about nodes. */
  readonly kube: Kube;
  /** The node's own credentials: its Node, read and written, and its events. May be the same. */
  readonly nodeKube: Kube;
  readonly host: Host;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Where metrics are told; nowhere when absent. */
  readonly registry?: Registry | undefined;
  /** Where the kubelet is asked how it is; not at all when absent. */
  readonly kubeletHealthz?: string | undefined;
  /** How servers are looked at; over TLS when absent. */
  readonly shakeHands?: typeof shakeHands | undefined;
  /** Called whenever the node has come where it should be. */
  readonly atRest?: (() => void) | undefined;
}

export interface MachineConfigDaemon {
  /**
   * Works until `signal` aborts; files that are being written are finished first. Rejects with `AgentMustRestart` when the process
   * should end and begin again.
   */
  run(signal: AbortSignal): Promise<void>;
}

/** Each resync looks at everything again (spec 60, 1.4.3). */
const RESYNC_MS = minutes(30);
/** Kubernetes kills after 600 s (spec 60, 1.1); a file step that lasts longer is taken up again after the start. */
const STOP_LIMIT_MS = seconds(590);

/** `rotunda machine-config-daemon`: the agent of one node (spec 60). */
export function machineConfigDaemon(options: MachineConfigDaemonOptions): MachineConfigDaemon {
  const { registry, nodeName } = options;
  const metrics = registry === undefined ? noAgentMetrics : agentMetrics(registry, nodeName);
  const ofController = registry && controllerMetrics(registry);
  return { run: signal => run(options, metrics, ofController, signal) };
}

async function run(
  options: MachineConfigDaemonOptions,
  metrics: AgentMetrics,
  ofController: ReturnType<typeof controllerMetrics> | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { kube, nodeKube, host, nodeName, clock, log } = options;
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const cacheOptions = {
    clock,
    onError(error: unknown) {
      log.warn({ err: error }, 'watching failed');
      void certificates.connectionFailed(error);
    },
  };
  const caches = certificateCaches(kube, nodeName, cacheOptions, nodeKube);
  const node = new OwnNode(nodeName, caches.nodes, clock);
  const events = nodeEvents({ kube, nodeKube, node, clock, log });
  const writer = new NodeWriter({
    kube: nodeKube,
    nodeName,
    clock,
    onWritten: written => caches.nodes.remember(written),
  });
  const report = new StateReport({ writer, clock, log, metrics });
  /** What cannot be written now is the node worker's to try again, with its pauses. */
  const tell = async (worker: Worker, reason: string | undefined) => {
    const isTold = await report.problem(worker, reason === undefined ? undefined : { state: 'Degraded', reason });
    if (!isTold) nodeWorker.enqueue(nodeName);
  };
  const drift = new DriftMonitor({
    files: host.files,
    clock,
    log,
    onChange(problem) {
      const reason = problem && unexpectedDisk({ config: drift.watching ?? '', image: '' }, problem);
      metrics.drift(reason === undefined ? undefined : clock.now());
      if (reason !== undefined) announce(events.ofNode, announcements.driftDetected(reason));
      void tell('drift', reason);
      nodeWorker.enqueue(nodeName);
    },
  });
  const sync = new NodeSync({
    kube,
    host,
    node,
    writer,
    report,
    drift,
    configs: new ConfigSource(kube, metrics),
    clock,
    log,
    events: events.ofNode,
    agentEvents: events.ofAgent,
    metrics,
    atRest: options.atRest,
    stop,
  });
  const nodeWorker = new Controller({
    name: 'NodeWorker',
    reconcile: sync.reconcile,
    clock,
    log,
    events: events.ofNode,
    triggers: [onTransition(caches.nodes, (before, after) => (inputsOf(before) === inputsOf(after) ? [] : [nodeName]))],
    resyncMs: RESYNC_MS,
    resyncKeys: () => [nodeName],
    stopLimitMs: STOP_LIMIT_MS,
    metrics: ofController?.('NodeWorker'),
  });
  // Its own worker with nothing in common but the writer: nothing else that is broken holds certificates back.
  const certificates = new CertificateWriter({
    kube,
    host,
    nodeName,
    nodeWriter: writer,
    clock,
    log,
    events: events.ofNode,
    caches,
    shakeHands: options.shakeHands ?? shakeHands,
    restartTurn: new RestartTurn({ kube: nodeKube, files: host.files, nodeName, clock, log }),
    metrics: ofController?.('CertificateWriter'),
    onProblems(problems) {
      const reason = problems.map(({ message }) => message).join('; ');
      void tell('certificates', reason === '' ? undefined : reason);
    },
  });
  const work = [
    () => certificates.run(stop),
    () => nodeWorker.run(stop),
    () =>
      watchLogins({ sessions: host.sessions, clock, log, metrics, announce: () => sayAccessed(node, writer) }, stop),
    () => watchForceFile(host.files, () => nodeWorker.enqueue(nodeName), log, stop),
    () => countMachine(host, metrics, log),
    ...(options.kubeletHealthz === undefined
      ? []
      : [() => watchKubeletHealth({ endpoint: options.kubeletHealthz ?? '', clock, log, metrics }, stop)]),
  ];
  for (const informer of Object.values(caches)) informer.start();
  try {
    await together(work, failed);
  } finally {
    await drift.stop();
    await Promise.all(Object.values(caches).map(informer => informer.stop()));
    await events.stop();
  }
}

/** Runs everything side by side; when one fails the others are stopped, and the whole fails with its error. */
async function together(work: readonly (() => Promise<void>)[], failed: AbortController): Promise<void> {
  const outcomes = await Promise.allSettled(
    work.map(async part => {
      try {
        await part();
      } catch (error) {
        failed.abort(error);
        throw error;
      }
    }),
  );
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}

/** What of a Node the node worker goes by. Heartbeats and its own words are not among it. */
function inputsOf(node: Node | undefined): string | undefined {
  if (node === undefined) return undefined;
  const { annotations = {}, uid, deletionTimestamp } = node.metadata ?? {};
  const names = [DESIRED_CONFIG, DESIRED_IMAGE, CURRENT_CONFIG, LAST_APPLIED_DRAIN, CONTROL_PLANE_TOPOLOGY];
  return JSON.stringify([uid, deletionTimestamp, names.map(name => annotations[name])]);
}
