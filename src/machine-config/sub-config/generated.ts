import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../../kube/resource.ts';
import { base64DataUrl } from '../../machine-config-api/ignition/data-url.ts';
import { emptyIgnition, type IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { GENERATED_BY_CONTROLLER_VERSION, ROLE_LABEL } from '../../machine-config-api/names.ts';

/** A file of a generated config; the empty compression says that the content is plain, whatever was there before. */
export function generatedFile(path: string, contents: string): IgnitionFile {
  return { path, mode: 0o644, overwrite: true, contents: { compression: '', source: base64DataUrl(contents) } };
}

/** A MachineConfig that is made from another object and goes with it. */
export function generatedConfig(
  name: string,
  role: string,
  files: readonly IgnitionFile[],
  owner: OwnerReference,
  controllerHash: string,
  kernelArguments: readonly string[] = [],
): MachineConfig {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: {
      name,
      labels: { [ROLE_LABEL]: role },
      annotations: { [GENERATED_BY_CONTROLLER_VERSION]: controllerHash },
      ownerReferences: [owner],
    },
    spec: {
      config: { ...emptyIgnition(), ...(files.length > 0 && { storage: { files: [...files] } }) },
      ...(kernelArguments.length > 0 && { kernelArguments }),
    },
  };
}

/** A reference that makes the object the controller of what is made from it. */
export function controllerReference(resource: Resource, object: KubeObject): OwnerReference {
  const { name = '', uid = '' } = object.metadata ?? {};
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}
