import type { Registry } from '@prometheus-io/client';
import type { Event } from 'kubernetes-types/core/v1.d.ts';
import type { RotationUnit } from '../certrotation/config.ts';
import { readRotationScale, rotationDay } from '../certrotation/scale.ts';
import {
  CLUSTER_OPERATOR_RESYNC_MS,
  clusterOperatorReconcile,
  VersionRecorder,
} from '../controller/cluster-operator.ts';
import { CLUSTER_OPERATORS } from '../controller/cluster-operator-status.ts';
import { inertiaOf } from '../controller/condition-union.ts';
import { Controller, runAll } from '../controller/controller.ts';
import { reportingDegraded } from '../controller/degraded.ts';
import type { Log } from '../controller/log.ts';
import { controllerMetrics } from '../controller/metrics.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { named, onChange, type Trigger } from '../controller/trigger.ts';
import { Evidence, type EvidenceSources } from '../hand-over/evidence.ts';
import { familiesOf, nextKey } from '../hand-over/family.ts';
import { handOverMetrics } from '../hand-over/metrics.ts';
import { HAND_OVER_CONDITION, HandOverReport } from '../hand-over/report.ts';
import { type HandOverMode, syncByReceipts } from '../hand-over/sync.ts';
import { onReceipts } from '../hand-over/trigger.ts';
import type { Clock } from '../kube/clock.ts';
import { minutes } from '../kube/duration.ts';
import type { EventRecorder } from '../kube/events.ts';
import { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, EVENTS, NODES } from '../kube/resource.ts';
import type { KeyAlgorithm, Keys } from '../pki/keys.ts';
import { cachedResources, informersOf, staticPodCaches } from '../staticpod/caches.ts';
import { staticPodControllers } from '../staticpod/controllers.ts';
import type { Verbosity } from '../staticpod/log-level.ts';
import { staticPodMetrics } from '../staticpod/metrics.ts';
import { cachedObjects } from '../staticpod/objects.ts';
import { StaticPodOperator } from '../staticpod/operator.ts';
import { onSteering } from '../staticpod/operator-trigger.ts';
import { RESOURCE_SYNC_RESYNC_MS, resourceSyncReconcile, SyncRules } from '../staticpod/resource-sync.ts';
import { staleConditionsReconcile } from '../staticpod/stale-conditions.ts';
import { countedTopology } from '../staticpod/topology.ts';
import type { TrustGraph } from '../trust/graph.ts';
import type { ObjectRef } from '../trust/object.ts';
import { auditPolicyReconcile } from './audit-policy.ts';
import { type AnyInformer, type CacheOptions, configCaches, configResources, ObjectCaches } from './caches.ts';
import { connectivityCheckReconcile } from './connectivity/checks.ts';
import { type CopyRule, FIXED_COPIES } from './copies.ts';
import { ensureCluster } from './ensure-cluster.ts';
import { noteHandOverMode } from './hand-over-mode.ts';
import { boundKeyReconcile } from './keys/bound-key-controller.ts';
import { ACTIVE_SIGNING_KEY, NEXT_SIGNING_KEY, PUBLIC_KEYS } from './keys/bound-keys.ts';
import { issuerReconcile } from './keys/issuer-controller.ts';
import { kubeletVersionCondition } from './kubelet-version.ts';
import { certificateMetrics } from './metrics/certificates.ts';
import { clusterMetrics, terminationMetrics } from './metrics/cluster.ts';
import { reportCertificates } from './metrics/managed-certificates.ts';
import {
  CONFIG_NAMESPACE,
  ETCD_NAMESPACE,
  MANAGED_NAMESPACE,
  OPERAND_NAMESPACE,
  OPERATOR_NAMESPACE,
  WATCHED_NAMESPACES,
} from './namespaces.ts';
import { nodeKubeconfigReconcile } from './node-kubeconfigs.ts';
import { configObserverReconcile, ETCD_ENDPOINTS, register } from './observe/controller.ts';
import { RELATED_OBJECTS } from './related-objects.ts';
import { CLUSTER, KUBE_API_SERVERS, type KubeAPIServer } from './resources.ts';
import { ensureRotationBase, ROTATION_BASE, rotationBaseCondition } from './rotation/base.ts';
import { rotationControllers } from './rotation/controllers.ts';
import { kubeApiserverEvidence } from './rotation/evidence.ts';
import { followHostnames, hostnameReconcile, hostnameSources } from './rotation/follow-hostnames.ts';
import { rotationUnits } from './rotation/units.ts';
import { staticPodConfig, topologyOf, wantsStartupMonitor } from './static-pod.ts';
import { staticResourceReconcile } from './static-resources.ts';
import { type OperandProgram, targetConfigReconcile } from './target-config/controller.ts';
import { kubeApiserverTrust } from './trust.ts';

export interface KubeApiserverOperatorDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly keys: Keys;
  readonly events: EventRecorder;
  readonly log: Log;
  /** What runs on the nodes. */
  readonly program: OperandProgram;
  /** How long a day of rotation lasts, for all chains. */
  readonly dayMs: number;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
  /** Where metrics go; nowhere when absent. */
  readonly registry?: Registry | undefined;
  /** Of the kube-apiserver that is rolled out; its skew to the kubelets is watched where it is known. */
  readonly kubernetesVersion?: string | undefined;
  readonly versions?: { readonly operand: string; readonly operator: string } | undefined;
  readonly verbosity?: Verbosity | undefined;
  /** How a new signer comes to sign: when everybody has loaded it (spec 90), or by upstream's clock. `receipts` unless told otherwise. */
  readonly handOver?: HandOverMode | undefined;
  /** How long servers must have been ready before the next node is touched; 30 s unless told otherwise. */
  readonly minReadyMs?: number | undefined;
  /** How servers are asked what they have loaded and what they show; over TLS unless told otherwise. */
  readonly servers?: Pick<EvidenceSources, 'ask' | 'show' | 'look'> | undefined;
}

export interface KubeApiserverOperator {
  readonly controllers: readonly Controller[];
  /** The trust graph with the copies that are made at this moment. */
  trust(): TrustGraph;
  /** Works until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>;
}

const DEFAULT_HAND_OVER: HandOverMode = 'receipts';
const MINUTE = minutes(1);
const NODE_KUBECONFIG_RESYNC_MS = minutes(5);
/** Written by earlier releases under these names. */
const STALE_CONDITIONS = [
  'Available',
  'Progressing',
  'MutatingAdmissionWebhookConfigurationDegraded',
  'ValidatingAdmissionWebhookConfigurationDegraded',
  'CRDConversionWebhookConfigurationDegraded',
  'VirtualResourceAdmissionDegraded',
];

/** Reads how long a day is, makes sure of what has to be there, and works until `signal` aborts: `rotunda kube-apiserver-operator`. */
export async function runKubeApiserverOperator(
  deps: Omit<KubeApiserverOperatorDeps, 'dayMs'> & { readonly dayMs?: number | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { kube, clock, log } = deps;
  await ensureCluster(kube, signal);
  await noteHandOverMode(kube, deps.handOver ?? DEFAULT_HAND_OVER, signal);
  if (deps.dayMs !== undefined) await ensureRotationBase(kube, deps.dayMs, signal);
  const scale = await readRotationScale(kube, CONFIG_NAMESPACE, clock, message => log.warn({}, message));
  const dayMs = rotationDay(scale);
  if (deps.dayMs !== undefined && deps.dayMs !== dayMs) {
    log.warn(
      { dayMs, given: deps.dayMs },
      `${ROTATION_BASE.name} in ${ROTATION_BASE.namespace} says otherwise, and counts`,
    );
  }
  await kubeApiserverOperator({ ...deps, dayMs }).run(signal);
}

/** All controllers of the kube-apiserver operator (spec 20, 0.1). */
export function kubeApiserverOperator(deps: KubeApiserverOperatorDeps): KubeApiserverOperator {
  const { kube, clock, keys, events, log, registry, versions, minReadyMs, keyAlgorithm } = deps;
  const program = { ...deps.program, keyAlgorithm };
  const byReceipts = (deps.handOver ?? DEFAULT_HAND_OVER) === 'receipts';
  const metrics = registry && controllerMetrics(registry);
  const cacheOptions: CacheOptions = { clock, onError: error => log.warn({ err: error }, 'watching failed') };

  const pods = staticPodCaches({ operator: KUBE_API_SERVERS, operandNamespace: OPERAND_NAMESPACE }, kube, cacheOptions);
  const objects = new ObjectCaches(kube, cacheOptions, { [OPERAND_NAMESPACE]: pods });
  const config = configCaches(kube, cacheOptions);
  const etcdEndpoints = new Informer(kube, CONFIG_MAPS, { ...cacheOptions, selection: { namespace: ETCD_NAMESPACE } });
  const clusterOperators = new Informer(kube, CLUSTER_OPERATORS, {
    ...cacheOptions,
    selection: { fieldSelector: 'metadata.name=kube-apiserver' },
  });
  const nodes = new Informer(kube, NODES, cacheOptions);
  const podEvents = new Informer<Event>(kube, EVENTS, { ...cacheOptions, selection: { namespace: OPERAND_NAMESPACE } });
  const informers = new Set<AnyInformer>([
    ...informersOf(pods),
    ...objects.informers,
    ...Object.values(config),
    etcdEndpoints,
    clusterOperators,
    ...(deps.kubernetesVersion === undefined && !byReceipts ? [] : [nodes]),
    ...(registry === undefined ? [] : [podEvents]),
  ]);
  const cached = cachedObjects(kube, [
    ...cachedResources(pods, OPERAND_NAMESPACE),
    ...objects.resources,
    ...configResources(config),
    { resource: CONFIG_MAPS, namespace: ETCD_NAMESPACE, lister: etcdEndpoints },
  ]);
  const operator = new StaticPodOperator({ kube, resource: KUBE_API_SERVERS, clock, cache: pods.operator });
  const operatorSpec = () => (pods.operator.get(CLUSTER) as KubeAPIServer | undefined)?.spec ?? {};
  const topology = topologyOf(config.infrastructures, countedTopology(cached));
  const hasStartupMonitor = () => wantsStartupMonitor(config.infrastructures.get(CLUSTER), operatorSpec());

  const controller = (name: string, reconcile: Reconcile, triggers: Trigger[], resyncMs = MINUTE) =>
    new Controller({ name, reconcile, triggers, resyncMs, clock, events, log, metrics: metrics?.(name) });
  const degraded = (name: string, reconcile: Reconcile) =>
    reportingDegraded(reconcile, { name, write: condition => operator.setConditions([condition]), removable: true });
  const on = {
    operator: onSteering(pods.operator),
    conditions: onChange(pods.operator),
    configMaps: (...namespaces: string[]) => namespaces.map(namespace => onChange(objects.in(namespace).configMaps)),
    secrets: (...namespaces: string[]) => namespaces.map(namespace => onChange(objects.in(namespace).secrets)),
    configMap: ({ namespace, name }: Named) => onChange(objects.in(namespace).configMaps, { when: named(name) }),
    secret: ({ namespace, name }: Named) => onChange(objects.in(namespace).secrets, { when: named(name) }),
    config: [
      onChange(config.networks),
      onChange(config.infrastructures),
      onChange(config.apiServers),
      onChange(config.authentications),
      onChange(config.proxies),
    ],
  };
  const shared = { kube, operator, cached };

  const rules = new SyncRules(WATCHED_NAMESPACES);
  register(rules, FIXED_COPIES);
  const resourceSync = controller(
    'ResourceSyncController',
    resourceSyncReconcile({ ...shared, rules, events: events.withComponent('resource-sync-controller') }),
    [on.operator, ...on.configMaps(...WATCHED_NAMESPACES), ...on.secrets(...WATCHED_NAMESPACES)],
    RESOURCE_SYNC_RESYNC_MS,
  );
  rules.onChange = () => resourceSync.enqueue();

  const hostnames = hostnameSources();
  const units = rotationUnits({ dayMs: deps.dayMs, hostnames, keyAlgorithm });
  const hostnamesKnown = Promise.all([config.networks.synced, config.infrastructures.synced]);
  hostnamesKnown.catch(() => {});

  const evidence = kubeApiserverEvidence({
    kube,
    clock,
    units,
    graph: () => kubeApiserverTrust(copiesIn(rules)),
    nodes: () => nodes.list(),
    nodeStatuses: () => pods.operator.get(CLUSTER)?.status?.nodeStatuses ?? [],
    configMap: key => objects.in(key.namespace ?? '').configMaps.get(key),
    secret: key => objects.in(key.namespace ?? '').secrets.get(key),
  });
  const handOvers = new HandOverReport(
    familiesOf(units).map(({ signer }) => signer.name),
    { clock, events },
  );
  const handOver = byReceipts && {
    sync: syncByReceipts(units, {
      receipts: handOvers.listening(new Evidence({ ...evidence, ...deps.servers })),
      dayMs: deps.dayMs,
      onDecision: (...decided) => handOvers.decided(...decided),
    }),
    triggers: ({ signer }: RotationUnit) => [on.secret(nextKey(signer)), onReceipts(nodes)],
  };

  const recorder = new VersionRecorder(() => clusterStatus.enqueue());
  const clusterStatus = controller(
    'StatusSyncer_kube-apiserver',
    clusterOperatorReconcile({
      name: 'kube-apiserver',
      kube,
      policy: { inertia: inertiaOf(), relatedObjects: RELATED_OBJECTS },
      operator: () => operator.reported(recorder.versions),
      cached: () => clusterOperators.get({ name: 'kube-apiserver' }),
    }),
    [on.conditions, onChange(clusterOperators)],
    CLUSTER_OPERATOR_RESYNC_MS,
  );
  if (versions !== undefined) recorder.record('raw-internal', versions.operator);

  const handOverStatus = controller(
    'HandOverController',
    async (_key, { signal }) => {
      const condition = handOvers.condition();
      if (condition !== undefined) await operator.setConditions([condition], signal);
    },
    [on.conditions],
  );
  handOvers.onChange = () => handOverStatus.enqueue();

  const controllers = [
    ...(byReceipts ? [handOverStatus] : []),
    ...rotationControllers(units, objects.forRotation(hostnamesKnown), {
      kube,
      clock,
      keys,
      events,
      log,
      metrics,
      ...handOver,
    }),
    controller(
      'CertRotationHostnames',
      degraded(
        'CertRotationHostnames',
        hostnameReconcile(() => ({
          network: config.networks.get(CLUSTER),
          infrastructure: config.infrastructures.get(CLUSTER),
        })),
      ),
      [onChange(config.networks), onChange(config.infrastructures)],
    ),
    controller(
      'CertRotationTimeUpgradeableController',
      async (_key, { signal }) => {
        await operator.setConditions([rotationBaseCondition(await cached.get(CONFIG_MAPS, ROTATION_BASE))], signal);
      },
      [on.operator, on.configMap(ROTATION_BASE)],
    ),
    controller('TargetConfigController', targetConfigReconcile({ ...shared, program, hasStartupMonitor }), [
      on.operator,
      ...on.configMaps(...WATCHED_NAMESPACES),
      ...on.secrets(OPERAND_NAMESPACE),
      onChange(pods.serviceAccounts),
      onChange(config.infrastructures),
    ]),
    resourceSync,
    controller('ConfigObserver', configObserverReconcile({ ...shared, rules }), [
      on.operator,
      ...on.config,
      ...on.secrets(CONFIG_NAMESPACE, OPERAND_NAMESPACE),
      ...on.configMaps(MANAGED_NAMESPACE),
      onChange(etcdEndpoints, { when: named(ETCD_ENDPOINTS.name) }),
    ]),
    controller('KubeAPIServerStaticResources', staticResourceReconcile(shared), [
      on.operator,
      ...on.configMaps(OPERAND_NAMESPACE),
      onChange(pods.serviceAccounts),
      onChange(pods.roleBindings),
    ]),
    controller('auditPolicyController', auditPolicyReconcile(shared), [
      on.operator,
      onChange(config.apiServers),
      ...on.configMaps(OPERAND_NAMESPACE),
    ]),
    controller(
      'NodeKubeconfigController',
      degraded('NodeKubeconfigController', nodeKubeconfigReconcile(shared)),
      [
        on.operator,
        on.secret({ namespace: OPERATOR_NAMESPACE, name: 'node-system-admin-client' }),
        on.secret({ namespace: OPERAND_NAMESPACE, name: 'node-kubeconfigs' }),
        on.configMap({ namespace: OPERAND_NAMESPACE, name: 'kube-apiserver-server-ca' }),
        onChange(config.infrastructures),
      ],
      NODE_KUBECONFIG_RESYNC_MS,
    ),
    controller('BoundSATokenSignerController', boundKeyReconcile({ kube, operator, keys }), [
      on.operator,
      on.secret(NEXT_SIGNING_KEY),
      on.secret(ACTIVE_SIGNING_KEY),
      onChange(objects.in(OPERAND_NAMESPACE).configMaps, {
        when: ({ metadata }) => metadata?.name?.startsWith(PUBLIC_KEYS.name) ?? false,
      }),
    ]),
    controller(
      'RemoveStaleConditionsController',
      staleConditionsReconcile(operator, [...STALE_CONDITIONS, ...(byReceipts ? [] : [HAND_OVER_CONDITION])]),
      [on.conditions],
    ),
    controller('ServiceAccountIssuerController', issuerReconcile(shared), [
      on.operator,
      onChange(config.authentications),
    ]),
    controller('ConnectivityCheckController', connectivityCheckReconcile(shared), [
      on.operator,
      onChange(pods.nodes),
      onChange(config.infrastructures),
    ]),
    ...(deps.kubernetesVersion === undefined
      ? []
      : [
          controller(
            'KubeletVersionSkewController',
            async (_key, { signal }) => {
              const condition = kubeletVersionCondition(deps.kubernetesVersion ?? '', nodes.list());
              await operator.setConditions([condition], signal);
            },
            [onChange(nodes)],
          ),
        ]),
    ...staticPodControllers(staticPodConfig({ program, topology, hasStartupMonitor, versions, minReadyMs }), {
      kube,
      caches: pods,
      clock,
      events,
      log,
      metrics,
      versions: recorder,
      verbosity: deps.verbosity,
    }),
    clusterStatus,
  ];

  const read = ({ kind, namespace, name }: ObjectRef) => {
    const caches = objects.in(namespace);
    return kind === 'Secret' ? caches.secrets.get({ namespace, name }) : caches.configMaps.get({ namespace, name });
  };
  if (registry !== undefined) {
    certificateMetrics(registry, {
      report: () => reportCertificates(units, read, clock.now()),
      isUp: () => objects.informers.every(informer => informer.hasSynced),
    });
    if (byReceipts) handOverMetrics(registry, clock, () => handOvers.standings());
    clusterMetrics(registry, program.version, {
      infrastructure: () => config.infrastructures.get(CLUSTER),
      proxy: () => config.proxies.get(CLUSTER),
    });
    staticPodMetrics(registry, 'kube-apiserver', () => pods.operator.get(CLUSTER)?.status);
    const terminations = terminationMetrics(registry);
    pods.pods.subscribe({ add: pod => terminations.pod(pod), update: (_, pod) => terminations.pod(pod) });
    podEvents.subscribe({ add: event => terminations.event(event), update: (_, event) => terminations.event(event) });
  }

  return {
    controllers,
    trust: () => kubeApiserverTrust(copiesIn(rules)),
    async run(signal) {
      const stopFollowing = followHostnames(hostnames, config.networks, config.infrastructures);
      for (const informer of informers) informer.start();
      try {
        await runAll(controllers, signal);
      } finally {
        stopFollowing();
        await Promise.all([...informers].map(informer => informer.stop()));
      }
    },
  };
}

type Named = { readonly namespace: string; readonly name: string };

function copiesIn(rules: SyncRules): CopyRule[] {
  return (['configmap', 'secret'] as const).flatMap(kind => rules.get(kind).map(rule => ({ kind, ...rule })));
}
