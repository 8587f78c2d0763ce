import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import {
  type ListedObject,
  LOCK_DIRECTORY,
  MANIFEST_DIRECTORY,
  RESOURCE_DIRECTORY,
  type StaticPodOperatorConfig,
} from '../config.ts';
import { nodePod } from '../node-pod.ts';
import type { NodeStatus } from '../node-status.ts';
import type { StaticPodOperatorSpec } from '../operator.ts';
import { verbosityOf } from '../verbosity.ts';
import { INSTALLER_LABELS, installerPodName } from './pod-name.ts';

export type InstallerPodConfig = Pick<
  StaticPodOperatorConfig,
  'operandNamespace' | 'staticPodName' | 'revisioned' | 'unrevisioned' | 'installer'
>;

export interface InstallerPodRequest {
  readonly node: NodeStatus;
  readonly spec: StaticPodOperatorSpec;
  readonly hasStartupMonitor: boolean;
  /** The status object of the target revision. */
  readonly owner: OwnerReference;
}

/** The pod that brings a node its target revision (spec 30, 9.9). */
export async function installerPod(config: InstallerPodConfig, request: InstallerPodRequest): Promise<Pod> {
  const { node, spec, owner } = request;
  const { command, image, mutatePod } = config.installer;
  const pod = nodePod({
    namespace: config.operandNamespace,
    name: installerPodName(node),
    nodeName: node.nodeName,
    owner,
    ...INSTALLER_LABELS,
    container: 'installer',
    image,
    command,
    args: installerArguments(config, request),
  });
  return mutatePod === undefined ? pod : mutatePod(pod, node.nodeName, spec, node.targetRevision);
}

/** What the installer program is told, in this order (spec 30, 9.9.4). */
export function installerArguments(
  { operandNamespace, staticPodName, revisioned, unrevisioned }: InstallerPodConfig,
  { node, spec, hasStartupMonitor }: Omit<InstallerPodRequest, 'owner'>,
): string[] {
  const [podConfigMap] = revisioned.configMaps;
  if (podConfigMap === undefined)
    throw new Error('expected a ConfigMap with the pod manifest first in the list, found none');
  if (podConfigMap.optional) throw new Error(`pod configmap ${podConfigMap.name} is required, cannot be optional`);
  return [
    `-v=${verbosityOf(spec.logLevel)}`,
    `--revision=${node.targetRevision}`,
    `--namespace=${operandNamespace}`,
    `--pod=${podConfigMap.name}`,
    `--resource-dir=${RESOURCE_DIRECTORY}`,
    `--pod-manifest-dir=${MANIFEST_DIRECTORY}`,
    ...(hasStartupMonitor ? [`--pod-manifests-lock-file=${LOCK_DIRECTORY}/${staticPodName}-installer.lock`] : []),
    ...flags('configmaps', revisioned.configMaps),
    ...flags('secrets', revisioned.secrets),
    ...(unrevisioned === undefined
      ? []
      : [
          `--cert-dir=${RESOURCE_DIRECTORY}/${unrevisioned.directory}`,
          ...flags('cert-configmaps', unrevisioned.configMaps),
          ...flags('cert-secrets', unrevisioned.secrets),
        ]),
  ];
}

function flags(name: string, objects: readonly ListedObject[]): string[] {
  return objects.map(object => `--${object.optional ? 'optional-' : ''}${name}=${object.name}`);
}
