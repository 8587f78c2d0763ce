import { isDeepStrictEqual } from 'node:util';
import type { Condition } from '../../controller/condition.ts';
import type { Reconcile, ReconcileContext, Result } from '../../controller/reconcile.ts';
import { updateStatus } from '../../controller/status.ts';
import { seconds } from '../../kube/duration.ts';
import { isNotFound } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import {
  MACHINE_CONFIG_POOLS,
  MACHINE_CONFIGS,
  type MachineConfig,
  type MachineConfigPool,
} from '../../machine-config-api/machine-config.ts';
import {
  CONTROLLER_CONFIG_NAME,
  GENERATED_BY_CONTROLLER_VERSION,
  OS_IMAGE_URL_OVERRIDDEN,
  RELEASE_IMAGE_VERSION,
} from '../../machine-config-api/names.ts';
import { conditionIs, placeCondition } from '../conditions.ts';
import type { ControllerCaches } from '../controller/caches.ts';
import { whyIncomplete } from '../controller-config/status.ts';
import { type EventsAbout, involvedObject } from '../events.ts';
import { type ControllerGauges, noGauges } from '../metrics.ts';
import { isEmptySelector, SelectorError, selectorProblem, selects } from '../selector.ts';
import { type ControllerVersion, type RenderedMachineConfig, renderPool } from './decide.ts';
import { ensureMachineConfig } from './ensure-config.ts';
import { unreferencedConfigs } from './garbage.ts';
import { RenderError } from './merge.ts';
import { configsOfPool, unfinishedSubConfig } from './select.ts';

export interface RenderParts {
  readonly kube: Kube;
  readonly caches: Pick<
    ControllerCaches,
    'controllerConfigs' | 'machineConfigs' | 'pools' | 'kubeletConfigs' | 'runtimeConfigs' | 'nodes'
  >;
  readonly version: ControllerVersion;
  readonly eventsAbout: EventsAbout;
  readonly gauges?: ControllerGauges | undefined;
}

/** Looked at again after so long although nothing changed: what is waited for may have been missed. */
const WAIT_MS = seconds(30);
const SELECTING_ALL = 'This machineconfigpool is selecting all machineconfigs. A non-empty selector is required.';

/** Merges the MachineConfigs of a pool into one and points the pool to it (spec 50, section 6). A paused pool is rendered too. */
export function renderReconcile(parts: RenderParts): Reconcile {
  const { kube, caches, version } = parts;
  return async (name, context): Promise<Result | void> => {
    const pool = caches.pools.get({ name });
    if (pool === undefined || pool.metadata?.deletionTimestamp !== undefined) return;
    const selector = pool.spec?.machineConfigSelector;
    if (selector !== undefined && isEmptySelector(selector)) {
      parts.eventsAbout(involvedObject(MACHINE_CONFIG_POOLS, pool)).event('Warning', 'SelectingAll', SELECTING_ALL);
      return;
    }
    const controllerConfig = caches.controllerConfigs.get({ name: CONTROLLER_CONFIG_NAME });
    const unfinished = whyIncomplete(controllerConfig) ?? unfinishedSource(pool, caches);
    if (controllerConfig === undefined || unfinished !== undefined) {
      context.log.debug({ pool: name, why: unfinished }, 'rendering waits');
      return { againAt: new Date(context.clock.now().getTime() + WAIT_MS) };
    }
    try {
      const configs = configsOfPool(pool, caches.machineConfigs.list());
      if (configs.length === 0) throw new RenderError('no MachineConfigs found matching selector');
      const current = caches.machineConfigs.get({ name: pool.spec?.configuration?.name ?? '' });
      const isThere = (config: string) => caches.machineConfigs.get({ name: config }) !== undefined;
      const rendered = renderPool(pool, configs, controllerConfig, version, current, isThere);
      await publish(parts, pool, rendered, configs, context);
    } catch (error) {
      if (error instanceof RenderError || error instanceof SelectorError) {
        await setRenderDegraded(
          kube,
          pool,
          { status: 'True', message: `Failed to render configuration for pool ${name}: ${error.message}` },
          context,
        );
      }
      throw error;
    }
    if (!conditionIs(pool.status?.conditions, 'RenderDegraded', 'False')) {
      await setRenderDegraded(kube, pool, { status: 'False', message: '' }, context);
    }
    await collectGarbage(parts, name, context);
  };
}

/** A pool that has no configuration yet is rendered without waiting: others wait for that (spec 50, RN-5). */
function unfinishedSource(pool: MachineConfigPool, caches: RenderParts['caches']): string | undefined {
  if (!pool.spec?.configuration?.name) return undefined;
  return unfinishedSubConfig(pool, { kubelet: caches.kubeletConfigs.list(), runtime: caches.runtimeConfigs.list() });
}

/** Writes the rendered config, then the pool: whoever sees the name finds the config (spec 50, RN-17). */
async function publish(
  { kube, caches, eventsAbout, gauges = noGauges }: RenderParts,
  pool: MachineConfigPool,
  rendered: RenderedMachineConfig,
  configs: readonly MachineConfig[],
  { clock, signal, log }: ReconcileContext,
): Promise<void> {
  const poolName = pool.metadata?.name ?? '';
  const { name, annotations } = rendered.metadata;
  const isOverridden = annotations[OS_IMAGE_URL_OVERRIDDEN] !== undefined;
  gauges.osImageOverridden(poolName, isOverridden);
  if ((await ensureMachineConfig(kube, caches.machineConfigs, rendered, signal)) === 'created') {
    const made = `${name} successfully generated (release version: ${annotations[RELEASE_IMAGE_VERSION]}, controller version: ${annotations[GENERATED_BY_CONTROLLER_VERSION]})`;
    eventsAbout(involvedObject(MACHINE_CONFIG_POOLS, pool)).event('Normal', 'RenderedConfigGenerated', made);
    if (isOverridden) {
      const message = `OSImageURL was overridden via machineconfig in ${name} (is: ${rendered.spec.osImageURL})`;
      eventsAbout(involvedObject(MACHINE_CONFIGS, rendered)).event('Normal', 'OSImageURLOverridden', message);
    }
  }
  const source = configs.map(config => ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    name: config.metadata?.name ?? '',
  }));
  const configuration = { name, source };
  if (pool.spec?.configuration?.name === name && isDeepStrictEqual(pool.spec.configuration.source, source)) return;
  const { resourceVersion } = pool.metadata ?? {};
  const body = { metadata: { resourceVersion }, spec: { configuration } };
  caches.pools.remember(
    await kube.patch(MACHINE_CONFIG_POOLS, { name: poolName }, { type: 'merge', body }, { signal }),
  );
  if (pool.spec?.configuration?.name !== name) {
    log.info({ pool: poolName, config: name }, 'pool is heading for a new config');
    gauges.state(
      'machine-config-controller-render',
      'Sync Machine Config Pool with new MC',
      poolName,
      clock.now().getTime() / 1000,
    );
  }
}

async function setRenderDegraded(
  kube: Kube,
  pool: MachineConfigPool,
  { status, message }: { status: Condition['status']; message: string },
  { clock, signal }: ReconcileContext,
): Promise<void> {
  const name = pool.metadata?.name ?? '';
  await updateStatus(
    kube,
    MACHINE_CONFIG_POOLS,
    { name },
    current => ({
      ...current,
      status: {
        ...current.status,
        conditions: placeCondition(
          current.status?.conditions ?? [],
          { type: 'RenderDegraded', status, message },
          clock.now(),
          'with-message',
        ),
      },
    }),
    { clock, signal },
  );
}

/** Deletes rendered configs that nothing points to, as far as the API itself agrees. */
async function collectGarbage(
  { kube, caches }: RenderParts,
  poolName: string,
  { log, signal }: ReconcileContext,
): Promise<void> {
  const pool = caches.pools.get({ name: poolName });
  if (pool === undefined) return;
  const garbage = unreferencedConfigs(pool, caches.machineConfigs.list(), caches.pools.list(), caches.nodes.list());
  for (const { metadata = {} } of garbage) {
    const { name = '', uid } = metadata;
    try {
      await kube.delete(MACHINE_CONFIGS, { name }, { signal, preconditions: { uid } });
      log.info({ pool: poolName, config: name }, 'unreferenced rendered config deleted');
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

/** Which pools a MachineConfig matters to: the one that owns it, else all that select it (spec 50, RN-1). */
export function poolsOfConfig(config: MachineConfig, pools: readonly MachineConfigPool[]): string[] {
  const owner = config.metadata?.ownerReferences?.find(({ controller }) => controller === true);
  const owning = pools.find(({ metadata }) => owner?.kind === 'MachineConfigPool' && metadata?.uid === owner.uid);
  if (owning !== undefined) return [owning.metadata?.name ?? ''];
  return pools
    .filter(({ spec }) => selectorProblem(spec?.machineConfigSelector) === undefined)
    .filter(({ spec }) => selects(spec?.machineConfigSelector, config.metadata?.labels))
    .map(({ metadata }) => metadata?.name ?? '');
}
