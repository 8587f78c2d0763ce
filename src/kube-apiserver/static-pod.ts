import { seconds } from '../kube/duration.ts';
import type { StaticPodOperatorConfig, Topology } from '../staticpod/config.ts';
import { unloadable } from '../staticpod/loadable.ts';
import { OPERAND_NAMESPACE } from './namespaces.ts';
import { REVISION_DIRECTORY_PREFIX, REVISIONED, UNREVISIONED } from './operand-objects.ts';
import { ETCDS, type Infrastructure, KUBE_API_SERVERS, type KubeAPIServerSpec } from './resources.ts';
import type { OperandProgram } from './target-config/controller.ts';
import { valueAt } from './target-config/merge.ts';
import { API_PORT } from './target-config/pod.ts';

export interface StaticPodDetails {
  readonly program: OperandProgram;
  readonly topology: Topology;
  readonly hasStartupMonitor: () => boolean | Promise<boolean>;
  /** How long all ready pods must have been ready for before the next node is touched. */
  readonly minReadyMs?: number | undefined;
  /** Versions that are told once all pods run them. */
  readonly versions?: { readonly operand: string; readonly operator: string } | undefined;
}

/** Unless told otherwise (spec 20, 3.5.7). */
const MIN_READY_MS = seconds(30);

/** kube-apiserver as a static-pod operator (spec 30, 1.2). */
export function staticPodConfig(details: StaticPodDetails): StaticPodOperatorConfig {
  const { program, topology, hasStartupMonitor, versions, minReadyMs = MIN_READY_MS } = details;
  const { operatorCommand, operatorImage } = program;
  return {
    operandName: 'kube-apiserver',
    operandNamespace: OPERAND_NAMESPACE,
    staticPodName: 'kube-apiserver',
    operandLabels: { apiserver: 'true' },
    operator: KUBE_API_SERVERS,
    revisioned: REVISIONED,
    unrevisioned: UNREVISIONED,
    contentCheck: unloadable,
    installer: { command: [...operatorCommand, 'installer'], image: operatorImage, minReadyMs },
    pruner: { command: [...operatorCommand, 'prune'], directoryPrefix: REVISION_DIRECTORY_PREFIX },
    guard: {
      port: API_PORT,
      path: 'readyz',
      evictionPolicy: 'AlwaysAllow',
      // A single node cannot spare its only server anyway.
      wanted: async () => {
        const isSingle = await topology();
        return isSingle === undefined ? undefined : !isSingle;
      },
    },
    topology,
    startupMonitor: hasStartupMonitor,
    neighbour: { operator: ETCDS, comesFirst: false },
    ...(versions === undefined ? {} : { versions: { operandImage: program.image, ...versions } }),
  };
}

/** On single nodes, or where somebody insists (spec 20, 5.4). */
export function wantsStartupMonitor(infrastructure: Infrastructure | undefined, spec: KubeAPIServerSpec): boolean {
  if (infrastructure === undefined) return false;
  if (infrastructure.status?.controlPlaneTopology === 'SingleReplica') return true;
  return valueAt(spec.unsupportedConfigOverrides, ['startupMonitor']) === true;
}

/** What the Infrastructure says of the control plane, else what the nodes say. */
export function topologyOf(
  infrastructures: { readonly hasSynced: boolean; get(key: { name: string }): Infrastructure | undefined },
  counted: Topology,
): Topology {
  return () => {
    if (!infrastructures.hasSynced) return undefined;
    const stated = infrastructures.get({ name: 'cluster' })?.status?.controlPlaneTopology ?? '';
    return stated === '' ? counted() : stated === 'SingleReplica';
  };
}
