import {
  CLUSTER_OPERATOR_RESYNC_MS,
  clusterOperatorReconcile,
  VersionRecorder,
} from '../controller/cluster-operator.ts';
import type { ObjectReference } from '../controller/cluster-operator-status.ts';
import { type Inertia, inertiaOf } from '../controller/condition-union.ts';
import { Controller } from '../controller/controller.ts';
import { reportingDegraded } from '../controller/degraded.ts';
import type { Log } from '../controller/log.ts';
import type { ControllerMetrics } from '../controller/metrics.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { named, onChange, type Trigger } from '../controller/trigger.ts';
import { HandOverReport } from '../hand-over/report.ts';
import type { Clock } from '../kube/clock.ts';
import { hours, minutes } from '../kube/duration.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Kube } from '../kube/port.ts';
import type { KeyAlgorithm, Keys } from '../pki/keys.ts';
import type { StaticPodOperatorConfig } from '../staticpod/config.ts';
import { staticPodControllers } from '../staticpod/controllers.ts';
import { unloadable } from '../staticpod/loadable.ts';
import type { Verbosity } from '../staticpod/log-level.ts';
import { cachedObjects } from '../staticpod/objects.ts';
import { StaticPodOperator } from '../staticpod/operator.ts';
import { RESOURCE_SYNC_RESYNC_MS, resourceSyncReconcile } from '../staticpod/resource-sync.ts';
import { bootstrapTeardownReconcile } from './bootstrap-teardown.ts';
import { cachedByEtcd, type EtcdCaches } from './caches.ts';
import { CLEANER_RESYNC_MS, certCleanerReconcile } from './cert-cleaner.ts';
import { CERT_SIGNER_RESYNC_MS, certSignerReconcile } from './cert-signer/controller.ts';
import { CERT_SIGNER, type QuorumCheck } from './cert-signer/options.ts';
import { FAMILY_TABLE } from './cert-table.ts';
import { endpointsReconcile } from './endpoints.ts';
import { Liveness } from './liveness.ts';
import { membersReconcile } from './members-controller.ts';
import { clusterMemberReconcile } from './membership.ts';
import type { ExpirationMetrics } from './metrics.ts';
import {
  BOOTSTRAP_CONFIG_MAP,
  CONFIG_NAMESPACE,
  ETCD_NAMESPACE,
  OPERATOR_NAMESPACE,
  READYZ_PORT,
  SYSTEM_NAMESPACE,
} from './names.ts';
import { CERTS_DIRECTORY_NAME, OPERAND_LABELS, type PodOptions } from './operand/pod.ts';
import { targetConfigReconcile } from './operand/target-config.ts';
import type { Profile } from './profile.ts';
import { RULE_FOR_REVISIONS, RULE_FOR_ROTATION } from './quorum/decide.ts';
import type { EtcdMembers, EtcdMembership } from './quorum/member.ts';
import { QuorumReader } from './quorum/reader.ts';
import { syncRules } from './resource-sync.ts';
import { ETCDS, KUBE_API_SERVERS } from './resources.ts';

/** What the etcd operator is made of. */
export interface EtcdOperatorDependencies {
  readonly kube: Kube;
  readonly caches: EtcdCaches;
  readonly clock: Clock;
  readonly keys: Keys;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly profile: Profile;
  /** Cached or not; `EtcdGateway` behind `cachedMembers` in production. */
  readonly members: EtcdMembers;
  readonly membership: EtcdMembership;
  readonly expiration: ExpirationMetrics;
  readonly operand: EtcdOperand;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
  readonly metrics?: ((controller: string) => ControllerMetrics) | undefined;
  readonly verbosity?: Verbosity | undefined;
}

export interface EtcdOperand
  extends Pick<PodOptions, 'image' | 'operatorImage' | 'command' | 'listenOn' | 'withMetricsProxy'> {
  readonly version: string;
  /** How long a member must have been ready before the next one is touched. */
  readonly minReadyMs?: number | undefined;
  /** Whether each member has a guard pod, where there is more than one; no guards when absent (spec 40, section 8). */
  readonly guards?: boolean | undefined;
}

export interface EtcdOperator {
  readonly controllers: readonly Controller[];
  /** Fails when a controller hangs. */
  readonly liveness: Liveness;
  readonly staticPod: StaticPodOperatorConfig;
  readonly quorum: QuorumReader;
  /** Where the signers stand. */
  readonly handOvers: HandOverReport;
}

const RESYNC_MS = minutes(1);
const CLEANER_ALIVE_LIMIT_MS = hours(6);
/** How long a condition may be bad before the cluster is told; what restarts with every revision longer (spec 40, A-4). */
const INERTIA: Record<Profile['release'], Inertia> = {
  '4.16': inertiaOf([{ match: /^(NodeController|EtcdMembers|DefragController)Degraded$/, ms: minutes(5) }]),
  later: inertiaOf([{ match: /Degraded$/, ms: minutes(10) }]),
};
/** What to look at when etcd is in trouble. */
const RELATED_OBJECTS: readonly ObjectReference[] = [
  { group: 'operator.openshift.io', resource: 'etcds', name: 'cluster' },
  ...[OPERATOR_NAMESPACE, ETCD_NAMESPACE].map(name => ({ group: '', resource: 'namespaces', name })),
];

/** The etcd operator: all of its controllers, to be run by whoever leads. */
export function etcdOperator(deps: EtcdOperatorDependencies): EtcdOperator {
  const { kube, caches, clock, keys, events, log, profile, members, membership, operand, keyAlgorithm } = deps;
  const operator = new StaticPodOperator({ kube, resource: ETCDS, clock, cache: caches.staticPod.operator });
  const quorum = new QuorumReader({ kube, members });
  const liveness = new Liveness(clock);
  const forRevisions: QuorumCheck = request => quorum.check(RULE_FOR_REVISIONS, request);
  const staticPod = staticPodConfig(deps, quorum);

  const controller = (
    name: string,
    reconcile: Reconcile,
    triggers: Trigger[],
    resyncMs = RESYNC_MS,
    aliveLimitMs?: number,
  ) =>
    new Controller({
      name,
      reconcile: liveness.watch(name, reconcile, aliveLimitMs),
      clock,
      events,
      log,
      metrics: deps.metrics?.(name),
      triggers,
      resyncMs,
    });
  const reporting = (name: string, reconcile: Reconcile) =>
    reportingDegraded(reconcile, { name, write: condition => operator.setConditions([condition]), removable: true });
  const { staticPod: own, configMaps, secrets } = caches;
  const on = {
    operator: onChange(own.operator),
    nodes: onChange(own.nodes),
    ownSecrets: onChange(own.secrets),
    ownConfigMaps: onChange(own.configMaps),
    configSecrets: onChange(secrets[CONFIG_NAMESPACE]),
    bootstrap: onChange(configMaps[SYSTEM_NAMESPACE], { when: named(BOOTSTRAP_CONFIG_MAP) }),
  };

  const signers = Object.values(FAMILY_TABLE).map(({ signer }) => signer);
  const handOvers = new HandOverReport(signers, { clock, events });
  const certSigner = certSignerReconcile({
    kube,
    clock,
    keys,
    keyAlgorithm,
    profile,
    operator,
    events: events.withComponent('etcd-cert-signer-controller'),
    log: log.child({ controller: CERT_SIGNER }),
    quorum: request => quorum.check(RULE_FOR_ROTATION, request),
    metrics: deps.expiration,
    handOvers,
  });
  const handOverStatus = controller(
    'HandOverController',
    async (_key, { signal }) => {
      const condition = handOvers.condition();
      if (condition !== undefined) await operator.setConditions([condition], signal);
    },
    [on.operator],
  );
  handOvers.onChange = () => handOverStatus.enqueue();
  const cached = cachedObjects(kube, cachedByEtcd(caches));
  const resourceSync = resourceSyncReconcile({
    rules: syncRules(profile, cached),
    operator,
    kube,
    cached,
    events: events.withComponent('resource-sync-controller'),
  });
  const targetConfig = targetConfigReconcile({ ...operand, kube, profile, operator, quorum: forRevisions });
  const recorder = new VersionRecorder(() => clusterStatus.enqueue());
  const clusterStatus = controller(
    'StatusSyncer_etcd',
    clusterOperatorReconcile({
      name: 'etcd',
      kube,
      policy: { inertia: INERTIA[profile.release], relatedObjects: RELATED_OBJECTS },
      operator: () => operator.reported(recorder.versions),
    }),
    [on.operator],
    CLUSTER_OPERATOR_RESYNC_MS,
  );
  recorder.record('raw-internal', operand.version);
  const membershipParts = { kube, members, membership, quorum, operator };

  return {
    liveness,
    staticPod,
    quorum,
    handOvers,
    controllers: [
      handOverStatus,
      controller(
        CERT_SIGNER,
        certSigner,
        [
          on.nodes,
          on.configSecrets,
          on.ownConfigMaps,
          on.ownSecrets,
          on.operator,
          on.bootstrap,
          withoutWaiting(onChange(caches.kubeApiServers)),
        ],
        CERT_SIGNER_RESYNC_MS,
      ),
      controller(
        'EtcdCertCleanerController',
        certCleanerReconcile(kube),
        [],
        CLEANER_RESYNC_MS,
        CLEANER_ALIVE_LIMIT_MS,
      ),
      controller(
        'ResourceSyncController',
        resourceSync,
        [
          on.operator,
          on.ownConfigMaps,
          on.ownSecrets,
          on.configSecrets,
          onChange(configMaps[CONFIG_NAMESPACE]),
          onChange(configMaps[OPERATOR_NAMESPACE]),
          onChange(secrets[OPERATOR_NAMESPACE]),
          onChange(configMaps[SYSTEM_NAMESPACE], { when: named('cluster-config-v1') }),
        ],
        RESOURCE_SYNC_RESYNC_MS,
      ),
      controller('EtcdEndpointsController', endpointsReconcile({ kube, members, operator, quorum: forRevisions }), [
        on.operator,
        on.nodes,
        on.ownConfigMaps,
        on.bootstrap,
      ]),
      controller('TargetConfigController', targetConfig, [on.operator, on.nodes, on.ownConfigMaps, on.ownSecrets]),
      controller('EtcdMembersController', membersReconcile({ members, operator }), [on.operator]),
      controller(
        'ClusterMemberController',
        reporting('ClusterMemberController', clusterMemberReconcile(membershipParts)),
        [on.nodes, onChange(own.pods), on.operator],
      ),
      controller(
        'BootstrapTeardownController',
        reporting('BootstrapTeardownController', bootstrapTeardownReconcile(membershipParts)),
        [on.operator, on.bootstrap],
      ),
      clusterStatus,
      ...staticPodControllers(staticPod, {
        kube,
        caches: own,
        clock,
        events,
        log,
        metrics: deps.metrics,
        versions: recorder,
        verbosity: deps.verbosity,
      }),
    ],
  };
}

/** A cluster need not have such objects, nor even know the kind: nobody waits for them. */
function withoutWaiting(trigger: Trigger): Trigger {
  return { ...trigger, synced: Promise.resolve() };
}

/** etcd as the static-pod framework sees it (spec 40, section 8), with the guard between the nodes. */
export function staticPodConfig(
  { profile, operand, log }: Pick<EtcdOperatorDependencies, 'profile' | 'operand' | 'log'>,
  quorum: QuorumReader,
): StaticPodOperatorConfig {
  const { command, operatorImage, image, version, minReadyMs, guards = false } = operand;
  return {
    operandName: 'etcd',
    operandNamespace: ETCD_NAMESPACE,
    staticPodName: 'etcd',
    contentCheck: unloadable,
    operandLabels: OPERAND_LABELS,
    operator: ETCDS,
    revisioned: profile.revisioned,
    unrevisioned: { ...profile.unrevisioned, directory: CERTS_DIRECTORY_NAME },
    installer: { command: [...command, 'installer'], image: operatorImage, minReadyMs },
    pruner: { command: [...command, 'prune'], directoryPrefix: 'etcd-pod' },
    // A single member cannot be spared anyway.
    ...(guards ? { guard: { port: READYZ_PORT, path: 'readyz', wanted: () => quorum.isSeveral() } } : {}),
    versions: { operandImage: image, operand: version, operator: version },
    revisionPrecondition: async () => {
      const answer = await quorum.check(RULE_FOR_REVISIONS);
      if (!answer.safe) log.warn({ why: answer.error }, 'no new revision while the quorum is not fault tolerant');
      return answer.safe;
    },
    mayDisrupt: disruption => quorum.mayRestart(disruption),
    // A server can do without its own member for a while; a member that waits for servers could keep the whole cluster waiting.
    neighbour: { operator: KUBE_API_SERVERS, comesFirst: true },
  };
}
