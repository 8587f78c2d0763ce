import { errorText } from '../../controller/aggregate-error.ts';
import type { Reconcile, ReconcileContext, Result } from '../../controller/reconcile.ts';
import { seconds } from '../../kube/duration.ts';
import { isNotFound } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import type { KubeObject, Resource } from '../../kube/resource.ts';
import { CLUSTER_VERSIONS, FEATURE_GATES, IMAGES, NODE_CONFIGS } from '../../machine-config-api/cluster-config.ts';
import type { ControllerConfig } from '../../machine-config-api/controller-config.ts';
import { MACHINE_CONFIGS, type MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import {
  BUILT_IN_POOL_LABEL,
  CLUSTER,
  CONTROLLER_CONFIG_NAME,
  GENERATED_BY_CONTROLLER_VERSION,
  RELEASE_IMAGE_VERSION,
} from '../../machine-config-api/names.ts';
import { RegistriesError, registriesOf } from '../container-runtime/registries.ts';
import type { ControllerCaches } from '../controller/caches.ts';
import { whyIncomplete } from '../controller-config/status.ts';
import { type EventsAbout, involvedObject } from '../events.ts';
import {
  featureGateParts,
  featureGatesOf,
  type GeneratedParts,
  nodeConfigParts,
} from '../kubelet-config/cluster-settings.ts';
import { KubeletConfigError, type KubeletDefaults } from '../kubelet-config/render.ts';
import type { ControllerVersion } from '../render/decide.ts';
import { ensureMachineConfig } from '../render/ensure-config.ts';
import { controllerReference, generatedConfig } from '../sub-config/generated.ts';

export interface ClusterSettingsParts {
  readonly kube: Kube;
  readonly caches: ControllerCaches;
  readonly version: ControllerVersion;
  readonly eventsAbout: EventsAbout;
}

const WAIT_MS = seconds(30);
const VERSION = { name: 'version' };

/**
 * Keeps what is made for a pool from settings of the whole cluster (spec 50, section 7): `97-` from how it wants its nodes, `98-`
 * from its feature gates, `99-...-registries` from where it has its images. Built-in pools only: the others take it over from
 * worker, and one of their own would outdo what users say about workers.
 */
export function clusterSettingsReconcile(parts: ClusterSettingsParts): Reconcile {
  const { caches } = parts;
  return async (name, context): Promise<Result | void> => {
    const pool = caches.pools.get({ name });
    if (pool === undefined || pool.metadata?.deletionTimestamp !== undefined) return;
    const controllerConfig = caches.controllerConfigs.get({ name: CONTROLLER_CONFIG_NAME });
    if (controllerConfig === undefined || whyIncomplete(controllerConfig) !== undefined) {
      return { againAt: new Date(context.clock.now().getTime() + WAIT_MS) };
    }
    const version = await getIfPresent(parts.kube, CLUSTER_VERSIONS, VERSION, { signal: context.signal });
    for (const setting of settingsOf(pool, controllerConfig, caches, version?.status?.desired?.image))
      await ensureSetting(parts, name, setting, context);
  };
}

interface Setting {
  /** The name of its config. */
  readonly config: string;
  readonly resource: Resource;
  /** The object that the config belongs to, and that a refusal is told about. */
  readonly source: KubeObject | undefined;
  /** Throws where the objects say something that must not reach a node; undefined where they say nothing. */
  parts(): GeneratedParts | undefined;
}

function settingsOf(
  pool: MachineConfigPool,
  { metadata, spec = {} }: ControllerConfig,
  caches: ControllerCaches,
  releaseImage: string | undefined,
): Setting[] {
  const name = pool.metadata?.name ?? '';
  const isBuiltIn = pool.metadata?.labels?.[BUILT_IN_POOL_LABEL] !== undefined;
  const cluster = { name: CLUSTER };
  const [nodeConfig, featureGate, image] = [
    caches.nodeConfigs.get(cluster),
    caches.featureGates.get(cluster),
    caches.images.get(cluster),
  ];
  const defaults: KubeletDefaults = {
    pool: name,
    controllerConfig: spec,
    nodeConfig,
    tlsProfile: caches.apiServers.get(cluster)?.spec?.tlsSecurityProfile,
    featureGates: featureGatesOf(featureGate, metadata?.annotations?.[RELEASE_IMAGE_VERSION] ?? ''),
  };
  const registries = () => {
    const { files, open } = registriesOf({
      image,
      contentPolicies: caches.contentPolicies.list(),
      digestMirrors: caches.digestMirrors.list(),
      tagMirrors: caches.tagMirrors.list(),
      releaseImage,
    });
    const warning =
      open.length === 0 ? undefined : `${open.join(', ')}: not blocked, the cluster's own release comes from there`;
    return files.length + open.length === 0 ? undefined : { files, kernelArguments: [], warning };
  };
  const ifBuiltIn = (made: () => GeneratedParts | undefined) => (isBuiltIn ? made : () => undefined);
  return [
    {
      config: `97-${name}-generated-kubelet`,
      resource: NODE_CONFIGS,
      source: nodeConfig,
      parts: ifBuiltIn(() => nodeConfigParts(defaults)),
    },
    {
      config: `98-${name}-generated-kubelet`,
      resource: FEATURE_GATES,
      source: featureGate,
      parts: ifBuiltIn(() => featureGateParts(defaults)),
    },
    { config: `99-${name}-generated-registries`, resource: IMAGES, source: image, parts: ifBuiltIn(registries) },
  ];
}

/** Makes, changes or deletes one config. What is refused leaves the last good one in force, and holds back no other. */
async function ensureSetting(
  { kube, caches, version, eventsAbout }: ClusterSettingsParts,
  pool: string,
  { config, resource, source, parts }: Setting,
  { log, signal }: ReconcileContext,
): Promise<void> {
  let made: GeneratedParts | undefined;
  try {
    made = parts();
  } catch (error) {
    if (!(error instanceof RegistriesError) && !(error instanceof KubeletConfigError)) throw error;
    log.warn({ config, why: errorText(error) }, 'settings of the cluster were refused');
    if (source !== undefined)
      eventsAbout(involvedObject(resource, source)).event('Warning', 'SettingsRefused', errorText(error));
    return;
  }
  if (made === undefined || source === undefined) {
    const isGenerated =
      caches.machineConfigs.get({ name: config })?.metadata?.annotations?.[GENERATED_BY_CONTROLLER_VERSION] !==
      undefined;
    if (!isGenerated) return;
    await kube.delete(MACHINE_CONFIGS, { name: config }, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    return;
  }
  const { files, kernelArguments, warning } = made;
  if (warning !== undefined)
    eventsAbout(involvedObject(resource, source)).event('Warning', 'SettingsIncomplete', warning);
  const owner = controllerReference(resource, source);
  const required = generatedConfig(config, pool, files, owner, version.hash, kernelArguments);
  await ensureMachineConfig(kube, caches.machineConfigs, required, signal);
}
