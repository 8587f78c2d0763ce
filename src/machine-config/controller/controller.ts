import type { Registry } from '@prometheus-io/client';
import { Controller } from '../../controller/controller.ts';
import type { Log } from '../../controller/log.ts';
import { controllerMetrics } from '../../controller/metrics.ts';
import type { Reconcile } from '../../controller/reconcile.ts';
import { objectKey, onChange, type Source, type Trigger, waitFor } from '../../controller/trigger.ts';
import type { Clock } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import type { KubeObject } from '../../kube/resource.ts';
import {
  CONTAINER_RUNTIME_CONFIGS,
  type ContainerRuntimeConfig,
  KUBELET_CONFIGS,
  type KubeletConfig,
  MACHINE_CONFIG_POOLS,
  type MachineConfigPool,
  type SubConfig,
} from '../../machine-config-api/machine-config.ts';
import { CLUSTER, CONTROLLER_CONFIG_NAME, MASTER_POOL, RELEASE_IMAGE_VERSION } from '../../machine-config-api/names.ts';
import { clusterSettingsReconcile } from '../cluster-settings/controller.ts';
import { checkContainerRuntimeConfig, containerRuntimeFiles } from '../container-runtime/render.ts';
import { delayed, onTransition } from '../delayed-trigger.ts';
import { drainReconcile } from '../drain/controller.ts';
import { isDrainEvent } from '../drain/decide.ts';
import { type EventsAbout, involvedObject } from '../events.ts';
import { featureGatesOf } from '../kubelet-config/cluster-settings.ts';
import { checkKubeletConfig, kubeletFiles } from '../kubelet-config/render.ts';
import { controllerGauges, noGauges } from '../metrics.ts';
import { type Assembly, assembly } from '../operator/operator.ts';
import { nodeReconcile } from '../pool/controller.ts';
import { annotationChanges, poolsToSync } from '../pool/triggers.ts';
import { poolsOfConfig, renderReconcile } from '../render/controller.ts';
import type { ControllerVersion } from '../render/decide.ts';
import { PULL_SECRET } from '../source/pull-secret.ts';
import { type SubConfigParts, subConfigReconcile } from '../sub-config/controller.ts';
import { templateReconcile } from '../template/controller.ts';
import { type ControllerCaches, controllerCaches, controllerInformers } from './caches.ts';

export interface MachineConfigControllerDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly events: EventRecorder;
  /** A recorder for events about one object; those of `events` when absent. */
  readonly eventsAbout?: EventsAbout | undefined;
  readonly log: Log;
  readonly version: ControllerVersion;
  readonly registry?: Registry | undefined;
  /** How long changes are gathered before something is done about them; 5 s when absent (spec 50, section 16). */
  readonly delayMs?: number | undefined;
}

const DELAY_MS = seconds(5);
const SAFETY_NET_MS = minutes(10);
const WORKERS = 2;
const DRAIN_WORKERS = 5;
/** One after the other: two objects that are named at the same time would get the same name (spec 50, section 7). */
const NAMING_WORKERS = 1;

/** `rotunda machine-config-controller`: to be run by whoever leads the lease `machine-config-controller`. */
export function machineConfigController(deps: MachineConfigControllerDeps): Assembly {
  const { kube, clock, events, log, version, registry, delayMs = DELAY_MS } = deps;
  const eventsAbout = deps.eventsAbout ?? (() => events);
  const caches = controllerCaches(kube, { clock, onError: error => log.warn({ err: error }, 'watching failed') });
  const gauges = registry === undefined ? noGauges : controllerGauges(registry);
  const metrics = registry && controllerMetrics(registry);
  const parts = { kube, caches, version, eventsAbout, gauges };
  const controller = (
    name: string,
    reconcile: Reconcile,
    triggers: Trigger[],
    keys: () => Iterable<string>,
    workers = WORKERS,
  ) =>
    new Controller({
      name,
      reconcile,
      clock,
      events,
      log,
      triggers,
      workers,
      resyncMs: SAFETY_NET_MS,
      resyncKeys: keys,
      metrics: metrics?.(name),
    });
  const names = (informer: { list(): KubeObject[] }) => () => informer.list().map(objectKey);
  const allPools = () => caches.pools.list().map(objectKey);
  const inTime = (triggers: Trigger[]) => delayed(triggers, clock, delayMs);
  const controllers = [
    controller('TemplateController', templateReconcile(parts), templateTriggers(caches), () => [
      CONTROLLER_CONFIG_NAME,
    ]),
    controller(
      'KubeletConfigController',
      subConfigReconcile(kubeletParts(parts)),
      subConfigTriggers(caches.kubeletConfigs, caches, [caches.apiServers, caches.nodeConfigs, caches.featureGates]),
      names(caches.kubeletConfigs),
      NAMING_WORKERS,
    ),
    controller(
      'ContainerRuntimeConfigController',
      subConfigReconcile(runtimeParts(parts)),
      subConfigTriggers(caches.runtimeConfigs, caches, []),
      names(caches.runtimeConfigs),
      NAMING_WORKERS,
    ),
    controller('ClusterSettingsController', clusterSettingsReconcile(parts), clusterSettingsTriggers(caches), allPools),
    controller('RenderController', renderReconcile(parts), inTime(renderTriggers(caches)), allPools),
    controller('NodeController', nodeReconcile(parts), inTime(nodeTriggers(caches, eventsAbout)), allPools),
    controller(
      'DrainController',
      drainReconcile(parts),
      inTime([
        onTransition(caches.nodes, (before, after) =>
          after !== undefined && isDrainEvent(before, after)
            ? [objectKey(after)]
            : after === undefined && before !== undefined
              ? [objectKey(before)]
              : [],
        ),
      ]),
      names(caches.nodes),
      DRAIN_WORKERS,
    ),
  ];
  return assembly(controllers, controllerInformers(caches));
}

type SharedParts = Pick<MachineConfigControllerDeps, 'kube' | 'version'> & {
  readonly caches: ControllerCaches;
  readonly gauges: typeof noGauges;
};

function kubeletParts(parts: SharedParts): SubConfigParts<KubeletConfig> {
  const { caches } = parts;
  return {
    ...parts,
    kind: 'kubelet',
    resource: KUBELET_CONFIGS,
    cache: caches.kubeletConfigs,
    check: checkKubeletConfig,
    files: (object, pool, controllerConfig) =>
      kubeletFiles(object, {
        pool: pool.metadata?.name ?? '',
        controllerConfig: controllerConfig.spec ?? {},
        nodeConfig: caches.nodeConfigs.get({ name: CLUSTER }),
        tlsProfile: caches.apiServers.get({ name: CLUSTER })?.spec?.tlsSecurityProfile,
        featureGates: featureGatesOf(
          caches.featureGates.get({ name: CLUSTER }),
          controllerConfig.metadata?.annotations?.[RELEASE_IMAGE_VERSION] ?? '',
        ),
      }),
  };
}

function runtimeParts(parts: SharedParts): SubConfigParts<ContainerRuntimeConfig> {
  return {
    ...parts,
    kind: 'containerruntime',
    resource: CONTAINER_RUNTIME_CONFIGS,
    cache: parts.caches.runtimeConfigs,
    check: checkContainerRuntimeConfig,
    files: containerRuntimeFiles,
  };
}

/** ControllerConfig, what was made from it, and the pull secret; a pull secret that is deleted changes nothing (spec 50, 5.1). */
function templateTriggers({ controllerConfigs, machineConfigs, secrets }: ControllerCaches): Trigger[] {
  const key = () => [CONTROLLER_CONFIG_NAME];
  return [
    onChange(controllerConfigs, { keys: objectKey }),
    onChange(machineConfigs, {
      when: ({ metadata }) =>
        metadata?.ownerReferences?.some(({ kind, controller }) => kind === 'ControllerConfig' && controller === true) ??
        false,
      keys: key,
    }),
    onTransition(secrets, (_before, after) => (after?.metadata?.name === PULL_SECRET ? key() : [])),
  ];
}

/** An object, what was made from it, the pools, and what all of them are made from. */
function subConfigTriggers<T extends SubConfig>(
  own: Informer<T>,
  caches: ControllerCaches,
  inputs: readonly Source<KubeObject>[],
): Trigger[] {
  const all = () => own.list().map(objectKey);
  return [
    onChange(own, { keys: objectKey }),
    onChange(caches.machineConfigs, {
      when: ({ metadata }) =>
        metadata?.ownerReferences?.some(({ kind, controller }) => kind === own.resource.kind && controller === true) ??
        false,
      keys: ({ metadata }) => metadata?.ownerReferences?.find(({ controller }) => controller === true)?.name ?? [],
    }),
    onTransition(caches.pools, (before, after) => (isSamePool(before, after) ? [] : all())),
    onChange(caches.controllerConfigs, { keys: all }),
    ...inputs.map(source => onChange(source, { keys: all })),
  ];
}

/** What of a pool matters to the configs that select it. */
function isSamePool(before: MachineConfigPool | undefined, after: MachineConfigPool | undefined): boolean {
  return (
    before !== undefined &&
    after !== undefined &&
    JSON.stringify(before.metadata?.labels) === JSON.stringify(after.metadata?.labels)
  );
}

/** The settings themselves, the pools, and what was made for them. */
function clusterSettingsTriggers(caches: ControllerCaches): Trigger[] {
  const { pools, machineConfigs, controllerConfigs, nodeConfigs, featureGates, apiServers, images } = caches;
  const { contentPolicies, digestMirrors, tagMirrors } = caches;
  const all = () => pools.list().map(objectKey);
  const sources: readonly Source<KubeObject>[] = [
    controllerConfigs,
    nodeConfigs,
    featureGates,
    apiServers,
    images,
    contentPolicies,
    digestMirrors,
    tagMirrors,
  ];
  return [
    onTransition(pools, (before, after) =>
      isSamePool(before, after) || after === undefined ? [] : [objectKey(after)],
    ),
    onChange(machineConfigs, {
      when: ({ metadata }) => /^(?:9[78]-.*-generated-kubelet|99-.*-generated-registries)$/.test(metadata?.name ?? ''),
      keys: all,
    }),
    ...sources.map(source => onChange(source, { keys: all })),
  ];
}

function renderTriggers({
  pools,
  machineConfigs,
  controllerConfigs,
  kubeletConfigs,
  runtimeConfigs,
  nodes,
}: ControllerCaches): Trigger[] {
  const all = () => pools.list().map(objectKey);
  return [
    onChange(pools, { keys: objectKey }),
    onChange(machineConfigs, { keys: config => poolsOfConfig(config, pools.list()) }),
    onChange(controllerConfigs, { keys: all }),
    onChange(kubeletConfigs, { keys: all }),
    onChange(runtimeConfigs, { keys: all }),
    waitFor(nodes),
  ];
}

function nodeTriggers(
  { pools, nodes, controllerConfigs, schedulers, operatorPods }: ControllerCaches,
  eventsAbout: EventsAbout,
): Trigger[] {
  return [
    onChange(pools, { keys: objectKey }),
    onTransition(nodes, (before, after) => {
      const keys = poolsToSync(before, after, pools.list());
      const master = keys.includes(MASTER_POOL) ? pools.get({ name: MASTER_POOL }) : undefined;
      if (master !== undefined && before !== undefined && after !== undefined) {
        const recorder = eventsAbout(involvedObject(MACHINE_CONFIG_POOLS, master));
        for (const change of annotationChanges(before, after)) recorder.event('Normal', 'AnnotationChange', change);
      }
      return keys;
    }),
    onChange(controllerConfigs, { keys: () => pools.list().map(objectKey) }),
    onChange(schedulers, { keys: () => [MASTER_POOL] }),
    waitFor(operatorPods),
  ];
}
