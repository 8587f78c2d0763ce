import type { ControllerConfig, ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import {
  GENERATED_BY_CONTROLLER_VERSION,
  MASTER_POOL,
  ROLE_LABEL,
  WORKER_POOL,
} from '../../machine-config-api/names.ts';
import { ignitionOfEntries, overlay } from './entry.ts';
import { platformDirectories } from './platform.ts';
import { type Platforms, TEMPLATES, type TemplateSet, type TemplateTree } from './templates.ts';
import { templateValues } from './values.ts';

/** The MachineConfigs of all roles, ready to be applied (spec 50, TM-2, TM-7). Throws `TemplateError`. */
export function generateMachineConfigs(
  controllerConfig: ControllerConfig,
  pullSecret: string,
  controllerHash: string,
  tree: TemplateTree = TEMPLATES,
): MachineConfig[] {
  const { name = '', uid = '' } = controllerConfig.metadata ?? {};
  const owner = {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'ControllerConfig',
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
  return Object.keys(tree.roles)
    .flatMap(role => generateForRole(role, controllerConfig.spec ?? {}, pullSecret, tree))
    .map(config => ({
      ...config,
      metadata: {
        ...config.metadata,
        annotations: { [GENERATED_BY_CONTROLLER_VERSION]: controllerHash },
        ownerReferences: [owner],
      },
    }));
}

/**
 * The MachineConfigs of one role. A custom pool has none of its own: asked for it, the worker's templates answer under its
 * name (spec 50, TM-9).
 */
export function generateForRole(
  role: string,
  spec: ControllerConfigSpec,
  pullSecret: string,
  tree: TemplateTree = TEMPLATES,
): MachineConfig[] {
  const directories = platformDirectories(spec.infra?.status ?? {});
  const values = templateValues(spec, pullSecret);
  const templates = tree.roles[role === MASTER_POOL ? MASTER_POOL : WORKER_POOL] ?? {};
  return Object.entries(templates).map(([name, platforms], index) => {
    // What is common to all roles goes into the first config of each.
    const sets = [...(index === 0 ? setsOf(tree.common, directories) : []), ...setsOf(platforms, directories)];
    const files = overlay(
      sets.map(set => set.files ?? {}),
      values,
    ).map(([, entry]) => entry);
    const units = overlay(
      sets.map(set => set.units ?? {}),
      values,
    ).map(([, entry]) => entry);
    return {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name, labels: { [ROLE_LABEL]: role } },
      spec: {
        config: ignitionOfEntries(files, units),
        osImageURL: spec.baseOSContainerImage ?? '',
        // Always given, so that an edit by hand is undone (spec 50, TM-8).
        extensions: [],
        fips: false,
        kernelArguments: [],
      },
    };
  });
}

function setsOf(platforms: Platforms, directories: readonly string[]): TemplateSet[] {
  return directories.flatMap(directory =>
    Object.hasOwn(platforms, directory) ? [platforms[directory] as TemplateSet] : [],
  );
}
