import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { WAIVED } from '../../hand-over/names.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import {
  CONFIG_MAPS,
  DEPLOYMENTS,
  type KubeObject,
  keyOf,
  type Resource,
  SECRETS,
  SERVICES,
} from '../../kube/resource.ts';
import { DAEMON_SETS, type InstalledObject, objectsOf } from '../../kubeadm/adopt/objects.ts';
import { decideRelease, type ReleaseDecision } from '../../kubeadm/adopt/release.ts';
import { statusOf } from '../../kubeadm/cluster-record.ts';
import { CERTIFICATES_DIRECTORY, PKI_NAMESPACE, ROTUNDA_NAMESPACE } from '../../kubeadm/names.ts';
import { NODE_REPORT } from '../../kubeadm/report.ts';
import { decodeWanted, wantedKey } from '../../kubeadm/wanted.ts';
import { type AdoptionSight, readAdoption, reportedNodes } from './sight.ts';

export interface ReleaseSight {
  readonly nodes: readonly Node[];
  readonly adoption: AdoptionSight;
  /** What is there of all that adoption installs. */
  readonly present: readonly InstalledObject[];
  /** The nodes that have annotations of ours. */
  readonly noted: readonly string[];
  /** What others have in namespace rotunda, so that it has to stay. */
  readonly others: readonly string[];
  readonly decision: ReleaseDecision;
}

/** On Nodes: what agents report, and what people noted there for hand-overs. */
export const NODE_ANNOTATIONS = [NODE_REPORT, WAIVED];
/** Every object that any adoption installs; what it is told does not matter, names are all that is asked for. */
const EVERYTHING = objectsOf({
  image: '-',
  controlPlaneNodes: 1,
  certificatesDirectory: CERTIFICATES_DIRECTORY,
  restartsPods: true,
});
const SHARED_KINDS: readonly Resource[] = [DEPLOYMENTS, DAEMON_SETS, SERVICES];

export async function readRelease(kube: Kube, signal?: AbortSignal): Promise<ReleaseSight> {
  const options = { signal };
  const ours = { ...options, namespace: PKI_NAMESPACE };
  const [adoption, present, secrets, configMaps, ...shared] = await Promise.all([
    readAdoption(kube, signal),
    presentOf(kube, signal),
    listAll(kube, SECRETS, ours),
    listAll(kube, CONFIG_MAPS, ours),
    ...SHARED_KINDS.map(kind => listAll(kube, kind, { ...options, namespace: ROTUNDA_NAMESPACE })),
  ]);
  const { nodes, record } = adoption;
  const wanted = new Map(
    nodes.flatMap(({ metadata }) => {
      const name = metadata?.name ?? '';
      const key = wantedKey(name).name;
      const found = decodeWanted(configMaps.items.find(({ metadata }) => metadata?.name === key));
      return found === undefined ? [] : [[name, found.round] as const];
    }),
  );
  const decision = decideRelease({
    nodes: reportedNodes(adoption),
    status: statusOf(record),
    secrets: secrets.items.map(({ metadata, data }) => ({
      name: metadata?.name ?? '',
      hasKey: (data?.['tls.key'] ?? '') !== '',
    })),
    wanted,
  });
  const others = SHARED_KINDS.flatMap((kind, index) =>
    (shared[index]?.items ?? [])
      .filter(object => !isOurs(kind, object))
      .map(({ metadata }) => `${kind.kind.toLowerCase()}/${metadata?.name}`),
  );
  const noted = nodes
    .filter(({ metadata }) => NODE_ANNOTATIONS.some(name => Object.hasOwn(metadata?.annotations ?? {}, name)))
    .map(({ metadata }) => metadata?.name ?? '');
  return { nodes, adoption, present, noted, others, decision };
}

async function presentOf(kube: Kube, signal: AbortSignal | undefined): Promise<InstalledObject[]> {
  const found = await Promise.all(
    EVERYTHING.map(({ resource, object }) => getIfPresent(kube, resource, keyOf(object), { signal })),
  );
  return EVERYTHING.filter((_, index) => found[index] !== undefined);
}

function isOurs(kind: Resource, { metadata }: KubeObject): boolean {
  return EVERYTHING.some(({ resource, object }) => resource === kind && object.metadata?.name === metadata?.name);
}
