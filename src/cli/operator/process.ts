import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { createLog, type Log } from '../../controller/log.ts';
import { startHealthServer } from '../../controller/health.ts';
import { createRegistry, type Registry } from '../../controller/metrics.ts';
import { HttpKube } from '../../kube/client.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { SINGLETON_CORRELATION } from '../../kube/event-correlation.ts';
import { EventWriter } from '../../kube/event-writer.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { findInvolvedObject } from '../../kube/involved-object.ts';
import { loadAccess } from '../../kube/kubeconfig.ts';
import { acquireLease } from '../../kube/lease.ts';
import { KubeError } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { NAMESPACES } from '../../kube/resource.ts';
import { UsageError } from '../usage-error.ts';

/** What every operator process takes. */
export interface OperatorFlags {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly listen: string;
  readonly leaderElect: boolean;
  readonly logLevel: string;
}

export interface OperatorProcess {
  readonly name: string;
  /** Where its lease and its events live. */
  readonly namespace: string;
  /** Does the work until `signal` aborts. */
  work(tools: OperatorTools, signal: AbortSignal): Promise<void>;
}

export interface OperatorTools {
  /** Refuses writes after the leadership is lost. */
  readonly kube: Kube;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly registry: Registry;
}

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/**
 * Runs an operator against any cluster: waits for the leadership, works, and stops cleanly at SIGINT or SIGTERM. Losing the
 * leadership ends the process with an error, so that whatever runs it starts a fresh one.
 */
export async function runOperator(operator: OperatorProcess, flags: OperatorFlags): Promise<void> {
  const { host, port } = listenAddress(flags.listen);
  const level = LOG_LEVELS.find(known => known === flags.logLevel);
  if (level === undefined)
    throw new UsageError(`--log-level must be one of ${LOG_LEVELS.join(', ')}, found "${flags.logLevel}"`);
  const log = createLog({ name: operator.name, level });
  const stop = stopSignal(log);
  const access = await loadAccess({ path: flags.kubeconfig, context: flags.context }).catch((error: Error) => {
    throw new UsageError(error.message);
  });
  const kube = new HttpKube(access, {
    fieldManager: operator.name,
    onWarning: text => log.warn({ text }, 'the API warns'),
  });
  const registry = createRegistry();
  const writer = new EventWriter(kube, {
    correlation: SINGLETON_CORRELATION,
    onError: error => log.warn({ err: error }, 'an event could not be written'),
  });
  const health = await startHealthServer({ clock: systemClock, metrics: registry, host, port });
  log.info({ url: health.url }, 'serving health and metrics');
  try {
    const { reference, error } = await findInvolvedObject(kube, operator.namespace, process.env.POD_NAME);
    if (error !== undefined) log.debug({ err: error }, 'events will be about the namespace');
    const events = writer.recorder(operator.name, reference);
    const tools = { clock: systemClock, events, log, registry };
    if (flags.leaderElect) await workAsLeader(operator, kube, tools, stop);
    else await operator.work({ ...tools, kube }, stop);
  } finally {
    await writer.stop();
    await health.stop();
    await kube.close();
  }
}

async function workAsLeader(
  operator: OperatorProcess,
  kube: Kube,
  tools: Omit<OperatorTools, 'kube'>,
  stop: AbortSignal,
): Promise<void> {
  const { log, clock, events } = tools;
  const lease = { namespace: operator.namespace, name: `${operator.name}-lock` };
  const identity = `${hostname()}_${randomUUID()}`;
  const onError = (error: unknown) => log.warn({ err: error }, 'the lease could not be written');
  await ensureNamespace(kube, operator.namespace);
  log.info({ lease: `${lease.namespace}/${lease.name}`, identity }, 'waiting for the leadership');
  let leadership: Awaited<ReturnType<typeof acquireLease>>;
  try {
    leadership = await acquireLease({ kube, lease, identity, clock, events, onError }, stop);
  } catch (error) {
    if (stop.aborted) return;
    throw error;
  }
  log.info({}, 'leading');
  try {
    await operator.work({ ...tools, kube: leadership.fenced(kube) }, AbortSignal.any([stop, leadership.signal]));
    if (!stop.aborted) leadership.signal.throwIfAborted();
  } finally {
    await leadership.release();
  }
}

/** The lease needs somewhere to live. Where we may not make it, it has been installed, or the lease says so. */
async function ensureNamespace(kube: Kube, name: string): Promise<void> {
  try {
    await kube.create(NAMESPACES, { metadata: { name } });
  } catch (error) {
    const isAllRight = error instanceof KubeError && (error.reason === 'AlreadyExists' || error.code === 403);
    if (!isAllRight) throw error;
  }
}

function stopSignal(log: Log): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      log.info({ signal }, 'told to stop');
      // A second signal is for those who cannot wait.
      process.once(signal, () => process.exit(130));
      stop.abort(new Error(`stopped by ${signal}`));
    });
  }
  return stop.signal;
}

function listenAddress(text: string): { host: string; port: number } {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || Number(port) > 65_535) {
    throw new UsageError(`--listen must be <address>:<port> such as 127.0.0.1:8080, found "${text}"`);
  }
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}
