import type { ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import { mergeIgnition } from '../../machine-config-api/ignition/merge.ts';
import { readIgnition } from '../../machine-config-api/ignition/read.ts';
import { emptyIgnition, type IgnitionConfig, IgnitionError } from '../../machine-config-api/ignition/types.ts';
import type { MachineConfig, MachineConfigSpec } from '../../machine-config-api/machine-config.ts';
import { ROLE_LABEL, WORKER_POOL } from '../../machine-config-api/names.ts';

/** The merged spec: all seven members are set. */
export type RenderedSpec = Required<Omit<MachineConfigSpec, 'config' | 'kernelArguments'>> & {
  config: IgnitionConfig;
  kernelArguments: readonly string[];
};

/** MachineConfigs that cannot be rendered: which one, which field, why. */
export class RenderError extends Error {
  override readonly name = 'RenderError';
}

const KERNEL_DEFAULT = 'default';
const OTHER_KERNELS = new Set(['realtime', '64k-pages']);
const EXTENSIONS = new Set(['wasm', 'ipsec', 'usbguard', 'kerberos', 'kernel-devel', 'sandboxed-containers']);

/**
 * The MachineConfigs of a pool as one (spec 50, RN-10 to RN-13). Undefined when there are none. Throws `RenderError`, which names
 * the MachineConfig and the field.
 */
export function mergeMachineConfigs(
  configs: readonly MachineConfig[],
  defaults: Pick<ControllerConfigSpec, 'baseOSContainerImage' | 'baseOSExtensionsContainerImage'>,
): RenderedSpec | undefined {
  if (configs.length === 0) return undefined;
  const ordered = inMergeOrder(configs);
  const specs = ordered.map(({ spec = {} }) => spec);
  const ignition = ordered.reduce((merged, config) => {
    const read = ignitionOf(config);
    return read === undefined ? merged : mergeIgnition(merged, read);
  }, emptyIgnition());
  const kernelType = specs.findLast(spec => OTHER_KERNELS.has(spec.kernelType ?? ''))?.kernelType ?? KERNEL_DEFAULT;
  const extensions = specs.flatMap(spec => spec.extensions ?? []);
  if (kernelType !== KERNEL_DEFAULT && extensions.includes('kernel-devel')) {
    throw new RenderError(`installing kernel-devel extension is not supported with kernelType: ${kernelType}`);
  }
  return {
    baseOSExtensionsContainerImage:
      specs.findLast(spec => spec.baseOSExtensionsContainerImage)?.baseOSExtensionsContainerImage ??
      defaults.baseOSExtensionsContainerImage ??
      '',
    config: overwriting(ignition),
    extensions,
    fips: specs.some(spec => spec.fips === true),
    kernelArguments: specs.flatMap(spec => spec.kernelArguments ?? []),
    kernelType,
    osImageURL: specs.findLast(spec => spec.osImageURL)?.osImageURL ?? defaults.baseOSContainerImage ?? '',
  };
}

/** Configs of the role `worker` by name, then all others by name: a custom pool's own beat the worker's (RN-10). */
export function inMergeOrder(configs: readonly MachineConfig[]): MachineConfig[] {
  const unlabelled = configs.find(({ metadata }) => Object.keys(metadata?.labels ?? {}).length === 0);
  if (unlabelled !== undefined) throw new RenderError(`machineconfig ${nameOf(unlabelled)}: metadata.labels: is empty`);
  const isWorker = ({ metadata }: MachineConfig) => metadata?.labels?.[ROLE_LABEL] === WORKER_POOL;
  return [...configs].sort((a, b) => Number(isWorker(b)) - Number(isWorker(a)) || compareBytes(nameOf(a), nameOf(b)));
}

/** Throws `RenderError` for a spec that no machine could follow (spec 50, RN-8 and RN-9). */
export function checkMachineConfig(config: MachineConfig): void {
  const { kernelType = '', extensions = [] } = config.spec ?? {};
  if (kernelType !== '' && kernelType !== KERNEL_DEFAULT && !OTHER_KERNELS.has(kernelType)) {
    throw new RenderError(`machineconfig ${nameOf(config)}: spec.kernelType: ${JSON.stringify(kernelType)} is invalid`);
  }
  const unknown = extensions.filter(extension => !EXTENSIONS.has(extension));
  if (unknown.length > 0) {
    throw new RenderError(
      `machineconfig ${nameOf(config)}: spec.extensions: invalid extensions found: ${unknown.join(', ')}`,
    );
  }
  ignitionOf(config);
}

/** The Ignition document of a MachineConfig as 3.4, undefined if it says nothing. Throws `RenderError`. */
export function ignitionOf(config: MachineConfig): IgnitionConfig | undefined {
  try {
    return readIgnition(config.spec?.config);
  } catch (error) {
    if (!(error instanceof IgnitionError)) throw error;
    throw new RenderError(`machineconfig ${nameOf(config)}: spec.config.${error.message}`);
  }
}

/** Files are overwritten unless a config says otherwise: agents always do, and first boot must do the same (RN-13). */
function overwriting(config: IgnitionConfig): IgnitionConfig {
  const files = config.storage?.files;
  if (files === undefined) return config;
  return {
    ...config,
    storage: { ...config.storage, files: files.map(file => ({ ...file, overwrite: file.overwrite ?? true })) },
  };
}

function nameOf({ metadata }: MachineConfig): string {
  return metadata?.name ?? '';
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
