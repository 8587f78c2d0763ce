import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { Controller } from '../controller/controller.ts';
import { reportingDegraded } from '../controller/degraded.ts';
import type { Log } from '../controller/log.ts';
import type { ControllerMetrics } from '../controller/metrics.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { onChange, type Trigger, waitFor } from '../controller/trigger.ts';
import type { Clock } from '../kube/clock.ts';
import { minutes } from '../kube/duration.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import { backingResourceReconcile } from './backing-resource.ts';
import { cachedResources, type StaticPodCaches } from './caches.ts';
import type { StaticPodOperatorConfig } from './config.ts';
import { guardReconcile } from './guard/controller.ts';
import { installerReconcile } from './installer/controller.ts';
import { logLevelReconcile, type Verbosity } from './log-level.ts';
import { nodeReconcile } from './nodes.ts';
import { cachedObjects } from './objects.ts';
import { StaticPodOperator, type StaticPodOperatorResource } from './operator.ts';
import { onSteering } from './operator-trigger.ts';
import { pruneReconcile } from './prune/controller.ts';
import { fallbackReconcile } from './report/fallback.ts';
import { installerStateReconcile } from './report/installer-state.ts';
import { missingStaticPodReconcile } from './report/missing-static-pod.ts';
import { startupMonitorConditionReconcile } from './report/startup-monitor.ts';
import { staticPodStateReconcile } from './report/static-pod-state.ts';
import { RESOURCE_SYNC_RESYNC_MS, resourceSyncReconcile, type SyncRules } from './resource-sync.ts';
import { revisionReconcile } from './revision/controller.ts';
import { countedTopology } from './topology.ts';
import { unsupportedOverridesReconcile } from './unsupported-overrides.ts';

export interface StaticPodDependencies {
  readonly kube: Kube;
  readonly caches: StaticPodCaches;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly metrics?: ((controller: string) => ControllerMetrics) | undefined;
  /** Hears which versions run; nobody when absent. */
  readonly versions?: { record(operand: string, version: string): void } | undefined;
  /** The process's own; its log level stays as it is when absent. */
  readonly verbosity?: Verbosity | undefined;
}

/** A description that no operator can be made from. */
export class InvalidConfig extends Error {
  override readonly name = 'InvalidConfig';
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    super(errors.join('\n'));
    this.errors = errors;
  }
}

/** Passes that no change asked for: the safety net below the triggers. */
const SAFETY_NET_MS = minutes(10);
const CONDITION_RESYNC_MS = minutes(1);
const STARTUP_MONITOR_RESYNC_MS = minutes(6);

/** All controllers of a static-pod operator (spec 30, 1.3). Throws `InvalidConfig`. */
export function staticPodControllers(config: StaticPodOperatorConfig, deps: StaticPodDependencies): Controller[] {
  warnOfMissingParts(config, deps.events);
  const errors = problemsOf(config);
  if (errors.length > 0) throw new InvalidConfig(errors);
  const { kube, caches, clock } = deps;
  const cached = cachedObjects(kube, cachedResources(caches, config.operandNamespace));
  const operator = new StaticPodOperator({ kube, resource: config.operator, clock, cache: caches.operator });
  const topology = config.topology ?? countedTopology(cached);
  const parts = { config: { ...config, topology }, operator, kube, cached };
  const { guard, startupMonitor } = config;

  const controller = (name: string, reconcile: Reconcile, triggers: Trigger[], resyncMs = SAFETY_NET_MS) => {
    const { events, log, metrics } = deps;
    return new Controller({ name, reconcile, clock, events, log, metrics: metrics?.(name), triggers, resyncMs });
  };
  const reporting = (name: string, reconcile: Reconcile) =>
    reportingDegraded(reconcile, { name, write: condition => operator.setConditions([condition]), removable: true });
  const on = {
    operator: onSteering(caches.operator),
    configMaps: onChange(caches.configMaps),
    secrets: onChange(caches.secrets),
    pods: onChange(caches.pods),
    nodes: onChange(caches.nodes),
  };
  const installerEvents = deps.events.withComponent('installer-controller');

  return [
    controller('RevisionController', revisionReconcile(parts), [on.operator, on.configMaps, on.secrets]),
    controller('InstallerController', installerReconcile({ ...parts, events: installerEvents }), [
      on.operator,
      on.pods,
      on.configMaps,
      on.secrets,
      waitFor(caches.nodes),
    ]),
    controller('InstallerStateController', installerStateReconcile(parts), [on.pods], CONDITION_RESYNC_MS),
    ...(config.operandName === ''
      ? []
      : [
          controller(
            'StaticPodStateController',
            staticPodStateReconcile({ ...parts, versions: deps.versions ?? { record: () => {} } }),
            [on.operator, on.pods],
            CONDITION_RESYNC_MS,
          ),
        ]),
    ...(hasPruner(config)
      ? [controller('PruneController', pruneReconcile(parts), [on.operator, on.pods, waitFor(caches.configMaps)])]
      : []),
    ...(startupMonitor === undefined
      ? []
      : [
          controller(
            'StartupMonitorPodCondition',
            startupMonitorConditionReconcile(parts),
            [on.pods, on.operator],
            STARTUP_MONITOR_RESYNC_MS,
          ),
          controller('StaticPodStateFallback', fallbackReconcile(parts), [on.pods], STARTUP_MONITOR_RESYNC_MS),
        ]),
    controller('NodeController', nodeReconcile(parts), [on.operator, on.nodes]),
    controller(
      'BackingResourceController',
      backingResourceReconcile(parts),
      [on.operator, onChange(caches.serviceAccounts), onChange(caches.roleBindings)],
      CONDITION_RESYNC_MS,
    ),
    controller('UnsupportedConfigOverridesController', unsupportedOverridesReconcile(parts), [on.operator]),
    ...(deps.verbosity === undefined
      ? []
      : [controller('LoggingSyncer', logLevelReconcile({ operator, verbosity: deps.verbosity }), [on.operator])]),
    ...(guard === undefined
      ? []
      : [
          controller(
            'GuardController',
            reporting('GuardController', guardReconcile({ ...parts, config: { ...config, guard } })),
            [on.pods, on.nodes, onChange(caches.budgets)],
          ),
        ]),
    controller(
      'MissingStaticPodController',
      reporting('MissingStaticPodController', missingStaticPodReconcile(parts)),
      [on.operator, on.pods, waitFor(caches.configMaps), waitFor(caches.nodes)],
      CONDITION_RESYNC_MS,
    ),
  ];
}

export interface ResourceSyncDependencies
  extends Pick<StaticPodDependencies, 'kube' | 'clock' | 'events' | 'log' | 'metrics'> {
  readonly operator: Informer<StaticPodOperatorResource>;
  /** ConfigMaps and Secrets of every namespace that the rules speak of. */
  readonly sources: readonly { readonly namespace: string; readonly informer: Informer<ConfigMap | Secret> }[];
}

/** Keeps copies between namespaces as the rules say; a new rule is followed at once (spec 30, section 7). */
export function resourceSyncController(rules: SyncRules, deps: ResourceSyncDependencies): Controller {
  const { kube, clock, log, metrics, operator: cache, sources } = deps;
  const name = 'ResourceSyncController';
  const caches = sources.map(({ namespace, informer }) => ({
    resource: informer.resource,
    namespace,
    lister: informer,
  }));
  const controller = new Controller({
    name,
    reconcile: resourceSyncReconcile({
      rules,
      operator: new StaticPodOperator({ kube, resource: cache.resource, clock, cache }),
      kube,
      cached: cachedObjects(kube, caches),
      events: deps.events.withComponent('resource-sync-controller'),
    }),
    clock,
    events: deps.events,
    log,
    metrics: metrics?.(name),
    triggers: [onSteering(cache), ...sources.map(({ informer }) => onChange(informer))],
    resyncMs: RESOURCE_SYNC_RESYNC_MS,
  });
  rules.onChange = () => controller.enqueue();
  return controller;
}

function problemsOf(config: StaticPodOperatorConfig): string[] {
  const hasLabels = Object.keys(config.operandLabels).length > 0;
  const policy: string | undefined = config.guard?.evictionPolicy;
  return [
    ...(config.operandNamespace === '' ? ['missing revisionController; cannot proceed'] : []),
    ...(config.installer.command.length === 0 ? ['missing installerController; cannot proceed'] : []),
    ...(config.startupMonitor !== undefined && !hasLabels
      ? ['StaticPodFallbackConditionController: missing required podLabelSelector']
      : []),
    ...(config.guard !== undefined && !hasLabels ? ['GuardController: missing required operandPodLabelSelector'] : []),
    ...(policy === undefined || policy === 'IfHealthyBudget' || policy === 'AlwaysAllow'
      ? []
      : [
          'GuardController: only <nil>, "IfHealthyBudget" and "AlwaysAllow" pdbUnhealthyPodEvictionPolicy values are supported',
        ]),
  ];
}

const NOT_ENOUGH = 'not enough information provided, not all functionality is present';

function warnOfMissingParts(config: StaticPodOperatorConfig, events: EventRecorder): void {
  if (config.operandName === '') events.event('Warning', 'StaticPodStateControllerMissing', NOT_ENOUGH);
  if (!hasPruner(config)) events.event('Warning', 'PruningControllerMissing', NOT_ENOUGH);
}

function hasPruner({ pruner }: StaticPodOperatorConfig): boolean {
  return pruner !== undefined && pruner.command.length > 0;
}
