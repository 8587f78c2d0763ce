import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { ObjectReference } from 'kubernetes-types/core/v1.d.ts';
import { type Check, startHealthServer } from '../../controller/health.ts';
import { lead } from '../../controller/lead.ts';
import { createLog, type Log } from '../../controller/log.ts';
import { createRegistry, type Registry } from '../../controller/metrics.ts';
import { HttpKube } from '../../kube/client.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { SINGLETON_CORRELATION } from '../../kube/event-correlation.ts';
import { EventWriter } from '../../kube/event-writer.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { getIfPresent } from '../../kube/get.ts';
import { findInvolvedObject } from '../../kube/involved-object.ts';
import { loadAccess } from '../../kube/kubeconfig.ts';
import type { LeaseOptions } from '../../kube/lease.ts';
import type { Kube } from '../../kube/port.ts';
import { PODS } from '../../kube/resource.ts';
import { type Verbosity, verbosityOfLog } from '../../staticpod/log-level.ts';
import { durationFrom, listenAddressFrom, logLevelFrom } from '../flag-values.ts';
import { UsageError } from '../usage-error.ts';

/** What every operator process takes. */
export interface OperatorFlags {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly listen: string;
  readonly leaderElect: boolean;
  readonly leaderElectLeaseDuration?: string | undefined;
  readonly leaderElectRenewDeadline?: string | undefined;
  readonly leaderElectRetryPeriod?: string | undefined;
  readonly logLevel: string;
}

export interface OperatorProcess {
  readonly name: string;
  /** Where its lease and its events live. */
  readonly namespace: string;
  /** Where only one may work at a time. */
  readonly lease?: string | undefined;
  /** Does the work until `signal` aborts. */
  work(tools: OperatorTools, signal: AbortSignal): Promise<void>;
}

export interface OperatorTools {
  /** Refuses writes after the leadership is lost. */
  readonly kube: Kube;
  readonly clock: Clock;
  readonly events: EventRecorder;
  /** A recorder for events about one object. */
  eventsAbout(involved: ObjectReference): EventRecorder;
  readonly log: Log;
  /** Of the log, for operators that are told how much to say while they run. */
  readonly verbosity: Verbosity;
  readonly registry: Registry;
  /** What `/livez` asks; work adds its checks, and a failing one has the process restarted. */
  readonly live: Record<string, Check>;
  /** Where this process finds the API. */
  readonly apiServer: URL;
  /** The image this process runs from; undefined outside a pod. */
  ownImage(): Promise<string | undefined>;
}

/**
 * Runs an operator against any cluster: waits for the leadership, works, and stops cleanly at SIGINT or SIGTERM. Losing the
 * leadership ends the process with an error, so that whatever runs it starts a fresh one.
 */
export async function runOperator(operator: OperatorProcess, flags: OperatorFlags): Promise<void> {
  const { host, port } = listenAddressFrom('--listen', flags.listen);
  const level = logLevelFrom(flags.logLevel);
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
  const live: Record<string, Check> = {};
  const onError = (check: string, error: unknown) => log.warn({ check, err: error }, 'a health check failed');
  const health = await startHealthServer({ clock: systemClock, live, metrics: registry, host, port, onError });
  log.info({ url: health.url }, 'serving health and metrics');
  try {
    const { reference, error } = await findInvolvedObject(kube, operator.namespace, process.env.POD_NAME);
    if (error !== undefined) log.debug({ err: error }, 'events will be about the namespace');
    const events = writer.recorder(operator.name, reference);
    const eventsAbout = (involved: ObjectReference) => writer.recorder(operator.name, involved);
    const apiServer = (await access.connection()).server;
    const ownImage = () => imageOf(kube, operator.namespace, process.env.POD_NAME);
    const verbosity = verbosityOfLog(log);
    const tools = { clock: systemClock, events, eventsAbout, log, verbosity, registry, live, apiServer, ownImage };
    if (flags.leaderElect && operator.lease !== undefined)
      await workAsLeader(operator, kube, tools, electionFrom(flags), stop);
    else await operator.work({ ...tools, kube }, stop);
  } catch (error) {
    // Work that is told to stop in the middle of something may say so by failing.
    if (!stop.aborted) throw error;
    if (error !== stop.reason) log.warn({ err: error }, 'failed while stopping');
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
  election: Election,
  stop: AbortSignal,
): Promise<void> {
  const { log, clock, events } = tools;
  const lease = { namespace: operator.namespace, name: operator.lease ?? '' };
  const identity = `${hostname()}_${randomUUID()}`;
  const work = (fenced: Kube, signal: AbortSignal) => operator.work({ ...tools, kube: fenced }, signal);
  await lead({ ...election, kube, lease, identity, clock, events, log }, work, stop);
}

/** What the pods that an operator starts run from is what it runs from itself. */
async function imageOf(kube: Kube, namespace: string, podName: string | undefined): Promise<string | undefined> {
  if (!podName) return undefined;
  const pod = await getIfPresent(kube, PODS, { namespace, name: podName });
  return pod?.spec?.containers[0]?.image;
}

type Election = Pick<LeaseOptions, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryMs'>;

/** Without this order a leader would act on after another one has begun. */
function electionFrom(flags: OperatorFlags): Election {
  const leaseDurationMs = electionTime('--leader-elect-lease-duration', flags.leaderElectLeaseDuration);
  const renewDeadlineMs = electionTime('--leader-elect-renew-deadline', flags.leaderElectRenewDeadline);
  const retryMs = electionTime('--leader-elect-retry-period', flags.leaderElectRetryPeriod);
  const [duration = Infinity, deadline = Infinity, retry = 0] = [leaseDurationMs, renewDeadlineMs, retryMs];
  if (duration <= deadline || deadline <= retry) {
    throw new UsageError('--leader-elect-retry-period, -renew-deadline and -lease-duration must grow in this order');
  }
  return { leaseDurationMs, renewDeadlineMs, retryMs };
}

function electionTime(flag: string, text: string | undefined): number | undefined {
  return text === undefined ? undefined : durationFrom(flag, text, '1s', '1h');
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
