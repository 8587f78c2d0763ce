import type {
  ContainerRuntimeConfig,
  KubeletConfig,
  MachineConfig,
  MachineConfigPool,
  SubConfig,
} from '../../machine-config-api/machine-config.ts';
import { selectorProblem, selects } from '../selector.ts';

/** The MachineConfigs a pool selects, by name. A selector that is missing or empty selects none (spec 50, RN-2). */
export function configsOfPool(pool: MachineConfigPool, configs: readonly MachineConfig[]): MachineConfig[] {
  const selector = pool.spec?.machineConfigSelector;
  return configs
    .filter(({ metadata }) => metadata?.deletionTimestamp === undefined && selects(selector, metadata?.labels))
    .sort((a, b) => ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1));
}

/** What a pool still waits for before it may be rendered anew, undefined if for nothing (spec 50, RN-5). */
export function unfinishedSubConfig(
  pool: MachineConfigPool,
  subConfigs: { readonly kubelet: readonly KubeletConfig[]; readonly runtime: readonly ContainerRuntimeConfig[] },
): string | undefined {
  const ofPool = ({ spec }: SubConfig) =>
    selectorProblem(spec?.machineConfigPoolSelector) === undefined &&
    selects(spec?.machineConfigPoolSelector, pool.metadata?.labels);
  return (
    subConfigs.runtime
      .filter(ofPool)
      .map(config => whyUnfinished('ContainerRuntimeConfig', config))
      .find(isText) ??
    subConfigs.kubelet
      .filter(ofPool)
      .map(config => whyUnfinished('KubeletConfig', config))
      .find(isText)
  );
}

function whyUnfinished(kind: string, { metadata = {}, status = {} }: SubConfig): string | undefined {
  const [generation, observed] = [metadata.generation ?? 0, status.observedGeneration ?? 0];
  if (generation !== observed) {
    return `status for ${kind} ${metadata.name ?? ''} is being reported for ${observed}, expecting it for ${generation}`;
  }
  return status.conditions?.at(-1)?.type === 'Success' ? undefined : `${kind} ${metadata.name ?? ''} has not completed`;
}

function isText(text: string | undefined): text is string {
  return text !== undefined;
}
