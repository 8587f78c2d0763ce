import { runAll } from '../controller/controller.ts';
import type { Check } from '../controller/health.ts';
import type { Log } from '../controller/log.ts';
import { type ControllerMetrics, controllerMetrics, type Registry } from '../controller/metrics.ts';
import { handOverMetrics } from '../hand-over/metrics.ts';
import { aborted } from '../kube/aborted.ts';
import { type Clock, systemClock } from '../kube/clock.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Kube } from '../kube/port.ts';
import { type KeyAlgorithm, type Keys, systemKeys } from '../pki/keys.ts';
import type { Verbosity } from '../staticpod/log-level.ts';
import { staticPodMetrics } from '../staticpod/metrics.ts';
import { etcdCaches, informersOfEtcd } from './caches.ts';
import { readEndpoints } from './client/endpoints.ts';
import type { ConnectEtcd, GatewayLimits } from './client/gateway.ts';
import { type MaterialSource, materialFromCluster } from './client/material.ts';
import { cachedMembers, EtcdGateway } from './client/members.ts';
import { expirationMetrics, noExpirationMetrics, raftTermMetrics } from './metrics.ts';
import { parseMetricsProxyOptions, startMetricsProxy } from './operand/metrics-proxy.ts';
import { parseReadyzOptions, startReadyz } from './operand/readyz.ts';
import type { ReloadingServer } from './operand/reloading-server.ts';
import { type EtcdOperand, type EtcdOperator, etcdOperator } from './operator.ts';
import { type Profile, profileLater } from './profile.ts';
import type { EtcdMembers, EtcdMembership } from './quorum/member.ts';
import { CLUSTER } from './resources.ts';

export interface EtcdProgramOptions {
  readonly kube: Kube;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly operand: EtcdOperand;
  /** The later layout, with signers that change by themselves, unless told otherwise. */
  readonly profile?: Profile | undefined;
  readonly clock?: Clock | undefined;
  readonly keys?: Keys | undefined;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
  /** Where metrics are told; nowhere when absent. */
  readonly registry?: Registry | undefined;
  /** The metrics of the controllers, where others in the process have registered them already. */
  readonly controllerMetrics?: ((controller: string) => ControllerMetrics) | undefined;
  readonly verbosity?: Verbosity | undefined;
  /** The liveness checks of the process, to which `run` adds its own; nobody asks when absent. */
  readonly live?: Record<string, Check> | undefined;
  /** The client certificate and CAs for etcd; read from the cluster when absent. */
  readonly material?: MaterialSource | undefined;
  readonly limits?: GatewayLimits | undefined;
  /** How members are asked; over HTTPS when absent. */
  readonly connect?: ConnectEtcd | undefined;
  readonly memberCacheMs?: number | undefined;
  /** Who is a member, where no etcd can be asked; a client for the real one when absent. */
  readonly members?: EtcdMembers | undefined;
  readonly membership?: EtcdMembership | undefined;
}

export interface EtcdProgram {
  readonly operator: EtcdOperator;
  readonly gateway: EtcdGateway;
  /** Works until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>;
}

/** The name of the check that fails when a controller hangs (spec 40, A-5). */
export const LIVENESS_CHECK = 'controller-aliveness';

/** `rotunda etcd-operator`: the operator with its caches and a client for the real etcd. To be run by whoever leads. */
export function etcdProgram(options: EtcdProgramOptions): EtcdProgram {
  const {
    kube,
    log,
    events,
    operand,
    clock = systemClock,
    keys = systemKeys,
    profile = profileLater(),
    registry,
  } = options;
  const onError = (what: string, error: unknown) => log.warn({ err: error }, what);
  const gateway = new EtcdGateway({
    endpoints: signal => readEndpoints(kube, signal),
    material: options.material ?? materialFromCluster(kube),
    clock,
    limits: options.limits,
    connect: options.connect,
    onError,
    onHealth: registry && raftTermMetrics(registry),
  });
  const caches = etcdCaches(kube, { clock });
  if (registry !== undefined) staticPodMetrics(registry, 'etcd', () => caches.staticPod.operator.get(CLUSTER)?.status);
  const operator = etcdOperator({
    kube,
    caches,
    clock,
    keys,
    keyAlgorithm: options.keyAlgorithm,
    events,
    log,
    profile,
    operand,
    members: options.members ?? cachedMembers(gateway, clock, options.memberCacheMs),
    membership: options.membership ?? gateway,
    expiration: registry === undefined ? noExpirationMetrics : expirationMetrics(registry),
    metrics: options.controllerMetrics ?? (registry && controllerMetrics(registry)),
    verbosity: options.verbosity,
  });
  if (registry !== undefined) handOverMetrics(registry, clock, () => operator.handOvers.standings());
  return {
    operator,
    gateway,
    async run(signal) {
      const informers = informersOfEtcd(caches);
      for (const informer of informers) informer.start();
      if (options.live !== undefined) options.live[LIVENESS_CHECK] = operator.liveness.check;
      try {
        await runAll(operator.controllers, signal);
      } finally {
        await Promise.all(informers.map(informer => informer.stop()));
        gateway.close();
      }
    },
  };
}

/** `rotunda etcd-readyz`. */
export function readyzProgram(argv: readonly string[], log: Log, signal: AbortSignal): Promise<void> {
  return serveUntil(signal, startReadyz(parseReadyzOptions(argv), log));
}

/** `rotunda etcd-metrics-proxy`. */
export function metricsProxyProgram(argv: readonly string[], log: Log, signal: AbortSignal): Promise<void> {
  return serveUntil(signal, startMetricsProxy(parseMetricsProxyOptions(argv), log));
}

async function serveUntil(signal: AbortSignal, starting: Promise<ReloadingServer>): Promise<void> {
  const server = await starting;
  await aborted(signal);
  await server.stop();
}
