import type { ObjectMeta, OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import type { Reconcile, ReconcileContext, Result } from '../../controller/reconcile.ts';
import { updateStatus } from '../../controller/status.ts';
import { seconds } from '../../kube/duration.ts';
import { isNotFound } from '../../kube/error.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import type { Resource } from '../../kube/resource.ts';
import type { ControllerConfig } from '../../machine-config-api/controller-config.ts';
import type { IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import { MACHINE_CONFIGS, type MachineConfigPool, type SubConfig } from '../../machine-config-api/machine-config.ts';
import { CONTROLLER_CONFIG_NAME, NAME_SUFFIX } from '../../machine-config-api/names.ts';
import type { ControllerCaches } from '../controller/caches.ts';
import { whyIncomplete } from '../controller-config/status.ts';
import { type ControllerGauges, noGauges } from '../metrics.ts';
import type { ControllerVersion } from '../render/decide.ts';
import { ensureMachineConfig } from '../render/ensure-config.ts';
import { selectorProblem, selects } from '../selector.ts';
import { controllerReference, generatedConfig } from './generated.ts';
import { type ManagedName, managedName, namesMadeFrom, type SubConfigKind, subConfigsOfPool } from './managed-name.ts';
import { syncedStatus } from './status.ts';

/** A kind of object from which a MachineConfig is made for each pool it selects. */
export interface SubConfigParts<T extends SubConfig> {
  readonly kind: SubConfigKind;
  readonly resource: Resource<T>;
  readonly kube: Kube;
  readonly cache: Informer<T>;
  readonly caches: Pick<ControllerCaches, 'controllerConfigs' | 'machineConfigs' | 'pools'>;
  readonly version: ControllerVersion;
  readonly gauges?: ControllerGauges | undefined;
  /** Throws for an object that must not reach a node. */
  readonly check: (object: T) => void;
  readonly files: (object: T, pool: MachineConfigPool, controllerConfig: ControllerConfig) => IgnitionFile[];
}

const WAIT_MS = seconds(30);

/** Keeps the MachineConfigs that are made from a KubeletConfig or ContainerRuntimeConfig (spec 50, section 7). */
export function subConfigReconcile<T extends SubConfig>(parts: SubConfigParts<T>): Reconcile {
  const { kube, resource, cache, caches } = parts;
  return async (name, context): Promise<Result | void> => {
    const object = cache.get({ name });
    if (object === undefined) return;
    if (object.metadata?.deletionTimestamp !== undefined) {
      await release(parts, object, context);
      return;
    }
    const controllerConfig = caches.controllerConfigs.get({ name: CONTROLLER_CONFIG_NAME });
    if (controllerConfig === undefined || whyIncomplete(controllerConfig) !== undefined) {
      return { againAt: new Date(context.clock.now().getTime() + WAIT_MS) };
    }
    let problem: string | undefined;
    try {
      await generate(parts, object, controllerConfig, context);
    } catch (error) {
      if (isTheirs(error)) throw error;
      problem = errorText(error);
    }
    const mutate = (current: T) => ({ ...current, status: syncedStatus(current, problem, context.clock.now()) });
    const { object: reported } = await updateStatus<T>(kube, resource, { name }, mutate, {
      clock: context.clock,
      signal: context.signal,
    });
    cache.remember(reported);
    if (problem !== undefined)
      context.log.warn({ object: name, kind: resource.kind, why: problem }, 'config was refused');
  };
}

/** Failures of the API are tried again; everything else is the object's, and stays until it is changed. */
function isTheirs(error: unknown): boolean {
  return (
    error instanceof Error &&
    (error.name === 'KubeError' || error.name === 'ConnectionError' || error.name === 'AbortError')
  );
}

async function generate<T extends SubConfig>(
  parts: SubConfigParts<T>,
  object: T,
  controllerConfig: ControllerConfig,
  context: ReconcileContext,
): Promise<void> {
  const { kube, resource, caches, version, gauges = noGauges } = parts;
  parts.check(object);
  const pools = poolsOf(object, caches.pools.list());
  if (pools.length === 0)
    throw new Error(
      `${resource.kind} ${object.metadata?.name ?? ''}: spec.machineConfigPoolSelector: does not match any MachineConfigPools`,
    );
  const made = new Set<string>();
  let claimed = object;
  for (const pool of pools) {
    const role = pool.metadata?.name ?? '';
    const { name, suffix } = managedName(parts.kind, role, claimed, subConfigsOfPool(pool, parts.cache.list()));
    const files = parts.files(object, pool, controllerConfig);
    claimed = await claim(parts, claimed, { name, suffix }, context);
    const owner = controllerReference(resource, claimed);
    await ensureMachineConfig(
      kube,
      caches.machineConfigs,
      generatedConfig(name, role, files, owner, version.hash),
      context.signal,
    );
    made.add(name);
    const now = context.clock.now().getTime() / 1000;
    gauges.state(`machine-config-controller-${parts.kind}`, `Sync ${resource.kind}`, role, now);
  }
  // What was made for a pool that is not selected any more goes, and with it the name, which may be given to another then.
  for (const { metadata = {} } of caches.machineConfigs.list()) {
    const owner = controllerOf(metadata);
    const isOurs = owner !== undefined && owner.uid === object.metadata?.uid;
    if (isOurs && !made.has(metadata.name ?? '')) await deleteConfig(kube, metadata.name ?? '', context);
  }
  const left = namesMadeFrom(claimed).filter(name => !made.has(name));
  if (left.length > 0) parts.cache.remember(await dropFinalizers(parts, claimed, left, context));
}

function controllerOf(metadata: ObjectMeta | undefined): OwnerReference | undefined {
  return metadata?.ownerReferences?.find(({ controller }) => controller === true);
}

/** Remembers on the object what is made from it, before it is made: the finalizer has it deleted again (spec 50, section 7). */
async function claim<T extends SubConfig>(
  { kube, resource, cache }: SubConfigParts<T>,
  object: T,
  { name, suffix }: ManagedName,
  { signal }: ReconcileContext,
): Promise<T> {
  const current = cache.get({ name: object.metadata?.name ?? '' }) ?? object;
  const { annotations = {}, finalizers = [], resourceVersion } = current.metadata ?? {};
  if (finalizers.includes(name) && annotations[NAME_SUFFIX] !== undefined) return current;
  const body = {
    metadata: {
      resourceVersion,
      annotations: { [NAME_SUFFIX]: annotations[NAME_SUFFIX] ?? suffix },
      finalizers: finalizers.includes(name) ? finalizers : [...finalizers, name],
    },
  };
  const claimed = await kube.patch(
    resource,
    { name: object.metadata?.name ?? '' },
    { type: 'merge', body },
    { signal },
  );
  cache.remember(claimed);
  return claimed;
}

/** Deletes what was made from an object that is being deleted, then lets it go. */
async function release<T extends SubConfig>(
  parts: SubConfigParts<T>,
  object: T,
  context: ReconcileContext,
): Promise<void> {
  const names = namesMadeFrom(object);
  if (names.length === 0) return;
  for (const name of names) {
    const owner = controllerOf(parts.caches.machineConfigs.get({ name })?.metadata);
    if (owner === undefined || owner.uid === object.metadata?.uid) await deleteConfig(parts.kube, name, context);
  }
  await dropFinalizers(parts, object, names, context).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}

function dropFinalizers<T extends SubConfig>(
  { kube, resource }: SubConfigParts<T>,
  { metadata }: T,
  dropped: readonly string[],
  { signal }: ReconcileContext,
): Promise<T> {
  const { name = '', finalizers = [], resourceVersion } = metadata ?? {};
  const body = {
    metadata: { resourceVersion, finalizers: finalizers.filter(finalizer => !dropped.includes(finalizer)) },
  };
  return kube.patch(resource, { name }, { type: 'merge', body }, { signal });
}

async function deleteConfig(kube: Kube, name: string, { signal }: ReconcileContext): Promise<void> {
  await kube.delete(MACHINE_CONFIGS, { name }, { signal }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}

/** The pools an object selects by their labels; without a selector none (spec 50, 2.4). */
function poolsOf({ spec }: SubConfig, pools: readonly MachineConfigPool[]): MachineConfigPool[] {
  const selector = spec?.machineConfigPoolSelector;
  const problem = selectorProblem(selector);
  if (problem !== undefined) throw new Error(`spec.machineConfigPoolSelector: ${problem}`);
  return pools
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined && selects(selector, metadata?.labels))
    .sort((a, b) => ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1));
}
