import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP } from 'node:net';
import { performance } from 'node:perf_hooks';
import { connect as connectTls } from 'node:tls';
import { dataText, TLS_CERT, TLS_KEY } from '../../certrotation/secret.ts';
import type { Log } from '../../controller/log.ts';
import { updateStatus } from '../../controller/status.ts';
import { aborted } from '../../kube/aborted.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { getIfPresent } from '../../kube/get.ts';
import { Informer } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import { SECRETS } from '../../kube/resource.ts';
import { isReachable, type Probe, withProbe } from '../connectivity/status.ts';
import type { ConnectivityMetrics } from '../metrics/connectivity.ts';
import { CONNECTIVITY_CHECKS, type PodNetworkConnectivityCheck } from '../resources.ts';

export interface CheckEndpointsDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly namespace: string;
  /** Checks of other pods are not ours. */
  readonly podName: string;
  readonly metrics?: ConnectivityMetrics | undefined;
  /** Tries to reach an endpoint; replaced in tests that act out an outage. */
  readonly probe?: typeof probeEndpoint | undefined;
}

const PERIOD_MS = seconds(1);
const TIMEOUT_MS = seconds(10);
/** A connection that simply works is written down this often; every change at once. */
const ROUTINE_MS = minutes(1);
/** More checks for one pod are not made by anybody. */
const MOST_CHECKS = 100;

/** `check-endpoints`: tries every second whether the endpoints this node depends on can be reached, and writes down when not. */
export async function runCheckEndpoints(deps: CheckEndpointsDeps, signal: AbortSignal): Promise<void> {
  const { kube, clock, log, namespace, podName } = deps;
  const checks = new Informer<PodNetworkConnectivityCheck>(kube, CONNECTIVITY_CHECKS, {
    selection: { namespace },
    clock,
    mostObjects: 10_000,
    onError: error => log.warn({ err: error }, 'watching the checks failed'),
  });
  const running = new Map<string, AbortController>();
  const loops = new Set<Promise<void>>();
  const follow = () => {
    const own = checks.list().filter(({ spec }) => spec?.sourcePod === podName && spec.targetEndpoint);
    if (own.length > MOST_CHECKS) log.warn({ checks: own.length, most: MOST_CHECKS }, 'too many checks for one pod');
    const wanted = new Set(own.slice(0, MOST_CHECKS).map(({ metadata }) => metadata?.name ?? ''));
    for (const [name, stop] of running) {
      if (wanted.has(name)) continue;
      stop.abort();
      running.delete(name);
    }
    for (const name of wanted) {
      if (running.has(name)) continue;
      const stop = new AbortController();
      running.set(name, stop);
      const read = () => checks.get({ namespace, name });
      const loop = checkForever(name, read, deps, AbortSignal.any([signal, stop.signal])).finally(() =>
        loops.delete(loop),
      );
      loops.add(loop);
    }
  };
  const unsubscribe = checks.subscribe({ add: follow, update: follow, delete: follow });
  checks.start();
  await aborted(signal);
  unsubscribe();
  for (const stop of running.values()) stop.abort();
  await Promise.all(loops);
  await checks.stop();
}

async function checkForever(
  name: string,
  read: () => PodNetworkConnectivityCheck | undefined,
  deps: CheckEndpointsDeps,
  signal: AbortSignal,
): Promise<void> {
  const { kube, clock, log, events, namespace, metrics, probe = probeEndpoint } = deps;
  const target = name.replace(/^.*-to-/, '');
  /** What has not been written yet, oldest first. */
  let waiting: Probe[] = [];
  let writtenMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const check = read();
    const endpoint = check?.spec?.targetEndpoint;
    if (check !== undefined && endpoint !== undefined) {
      const identity = await clientIdentity(kube, namespace, check.spec?.tlsClientCert?.name ?? '');
      const result = await probe(endpoint, clock.now(), identity, signal);
      if (signal.aborted) return;
      metrics?.probed(name, result);
      const isNews = isReachable(check.status ?? {}) !== (result.failure === undefined);
      // In quiet times the newest attempt stands for those before it; an outage is written down step by step.
      waiting = isNews || result.failure !== undefined ? [...waiting, result].slice(-MOST_WAITING) : [result];
      if (isNews || clock.now().getTime() - writtenMs >= ROUTINE_MS) {
        try {
          await write(kube, clock, events, namespace, name, target, waiting, signal);
          waiting = [];
          writtenMs = clock.now().getTime();
        } catch (error) {
          log.warn({ err: error, check: name }, 'the outcome of a check could not be written; it is kept');
        }
      }
    }
    await sleep(clock, PERIOD_MS, signal).catch(() => {});
  }
}

/** So much of an outage is remembered while the API cannot be reached. */
const MOST_WAITING = 20;

async function write(
  kube: Kube,
  clock: Clock,
  events: EventRecorder,
  namespace: string,
  name: string,
  target: string,
  probes: readonly Probe[],
  signal: AbortSignal,
): Promise<void> {
  let news: ReturnType<typeof withProbe>['events'] = [];
  const mutate = (check: PodNetworkConnectivityCheck): PodNetworkConnectivityCheck => {
    news = [];
    let status = check.status ?? {};
    for (const probe of probes) {
      const next = withProbe(status, probe, target);
      status = next.status;
      news.push(...next.events);
    }
    return { ...check, status };
  };
  await updateStatus(kube, CONNECTIVITY_CHECKS, { namespace, name }, mutate, { clock, signal });
  for (const { type, reason, message } of news) events.event(type, reason, message);
}

export interface ClientIdentity {
  readonly cert: string;
  readonly key: string;
}

/** The pair shown to endpoints that ask for one; without it they would fill their logs with failed handshakes. */
async function clientIdentity(kube: Kube, namespace: string, name: string): Promise<ClientIdentity | undefined> {
  if (name === '') return undefined;
  const secret = await getIfPresent(kube, SECRETS, { namespace, name }).catch(() => undefined);
  const [cert, key] = secret === undefined ? [] : [dataText(secret, TLS_CERT), dataText(secret, TLS_KEY)];
  return cert && key ? { cert, key } : undefined;
}

/** Resolves the name, connects, and says goodbye with a TLS handshake whose outcome does not matter. */
export async function probeEndpoint(
  endpoint: string,
  at: Date,
  identity: ClientIdentity | undefined,
  signal: AbortSignal,
): Promise<Probe> {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(endpoint) ?? [];
  const name = host.replace(/^\[|\]$/g, '');
  let address = name;
  let dnsMs: number | undefined;
  if (isIP(name) === 0) {
    const start = performance.now();
    try {
      ({ address } = await lookup(name));
    } catch (error) {
      return {
        at,
        endpoint,
        dnsMs: performance.now() - start,
        failure: { part: 'dns', message: (error as Error).message },
      };
    }
    dnsMs = performance.now() - start;
  }
  const start = performance.now();
  try {
    await reach(address, Number(port), name, identity, signal);
    return { at, endpoint, dnsMs, connectMs: performance.now() - start };
  } catch (error) {
    const failure = { part: 'connect', message: (error as Error).message } as const;
    return { at, endpoint, dnsMs, connectMs: performance.now() - start, failure };
  }
}

function reach(
  host: string,
  port: number,
  name: string,
  identity: ClientIdentity | undefined,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ host, port, timeout: TIMEOUT_MS });
    const onAbort = () => socket.destroy(new Error('stopped'));
    const end = (error?: Error) => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      if (error === undefined) resolve();
      else reject(error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('timeout', () => socket.destroy(new Error(`no connection within ${TIMEOUT_MS} ms`)));
    socket.once('error', end);
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      const servername = isIP(name) === 0 ? { servername: name } : {};
      const tls = connectTls({ socket, rejectUnauthorized: false, ...servername, ...identity });
      tls.once('secureConnect', () => end());
      tls.once('error', () => end());
      socket.once('close', () => end());
    });
  });
}
