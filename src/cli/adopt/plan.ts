import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { onlyWatched } from '../../kubeadm/adopt/compare.ts';
import type { Installation } from '../../kubeadm/adopt/objects.ts';
import { OLDEST_KUBERNETES } from '../../kubeadm/adopt/policies.ts';
import {
  CLUSTER_RECORD,
  type ClusterSettings,
  DEFAULT_REFRESH,
  encodeSettings,
  type PodsPolicy,
  readSettings,
  statusOf,
} from '../../kubeadm/cluster-record.ts';
import { CERTIFICATES_DIRECTORY, PKI_NAMESPACE } from '../../kubeadm/names.ts';
import { flagsOf } from '../../kubeadm/static-pods.ts';
import { type AdoptionSight, isControlPlane, isReady, reportedNodes } from './sight.ts';

/** What somebody asked for; absent: as it was agreed on before, or as usual. */
export interface AdoptionWishes {
  readonly image?: string | undefined;
  readonly keysOnNodes?: boolean | undefined;
  readonly refresh?: number | undefined;
  readonly pods?: PodsPolicy | undefined;
}

export interface AdoptionPlan {
  readonly settings: ClusterSettings;
  readonly installation: Installation;
  readonly isAdopted: boolean;
  /** One sentence: whether it can be done. */
  readonly answer: string;
  readonly would: readonly string[];
  /** What a person ought to know before. */
  readonly notes: readonly string[];
}

export type PlannedAdoption = { readonly plan: AdoptionPlan } | { readonly refusal: string };

/** Whether and how a cluster can be adopted (spec 80, 4); what is on its nodes is compared when agents have told of it. */
export function planAdoption(sight: AdoptionSight, wishes: AdoptionWishes): PlannedAdoption {
  const { nodes, configuration, record, knowsPolicies } = sight;
  const controlPlane = nodes.filter(isControlPlane).toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const [first] = controlPlane;
  if (first === undefined)
    return {
      refusal: 'no node has the label node-role.kubernetes.io/control-plane: kubeadm sets it on the control plane',
    };
  if (!knowsPolicies)
    return {
      refusal: `Kubernetes ${OLDEST_KUBERNETES} or newer is needed: agents are kept to their own Nodes by a ValidatingAdmissionPolicy`,
    };
  const before = record === undefined ? undefined : readSettings(record);
  if (before !== undefined && !before.ok) return { refusal: before.problem };
  const earlier = before?.settings;
  const isAdopted = statusOf(record)?.adopted ?? false;
  const keysOnNodes = wishes.keysOnNodes ?? earlier?.keysOnNodes ?? false;
  if (isAdopted && earlier !== undefined && keysOnNodes !== earlier.keysOnNodes)
    return {
      refusal: 'whether keys stay on the nodes was decided at adoption: rotunda release kubeadm, and adopt again',
    };
  const image = wishes.image ?? installedImage(sight);
  if (image === undefined)
    return {
      refusal: 'say --image: where the nodes of this cluster get the image of Rotunda from (docs/install.md builds it)',
    };
  const settings: ClusterSettings = {
    certificatesDirectory: configuration?.certificatesDirectory ?? CERTIFICATES_DIRECTORY,
    keysOnNodes,
    refresh: wishes.refresh ?? earlier?.refresh ?? DEFAULT_REFRESH,
    pods: wishes.pods ?? earlier?.pods ?? 'wait',
    publishFrom:
      controlPlane.map(nameOf).find(name => name === earlier?.publishFrom) ??
      nameOf(controlPlane.find(isReady) ?? first),
    ...(sight.dayMs !== undefined && { dayMs: sight.dayMs }),
  };
  const installation = {
    image,
    controlPlaneNodes: controlPlane.length,
    certificatesDirectory: settings.certificatesDirectory,
    restartsPods: settings.pods === 'restart',
  };
  const version = configuration?.kubernetesVersion;
  const others = nodes.length - controlPlane.length;
  const size = `${count(controlPlane.length, 'control-plane node')} and ${count(others, 'other')}${version === undefined ? '' : `, Kubernetes ${version}`}`;
  const answer = isAdopted ? `This cluster is adopted: ${size}.` : `This cluster can be adopted: ${size}.`;
  return {
    plan: {
      settings,
      installation,
      isAdopted,
      answer,
      would: wouldOf(sight, settings, installation),
      notes: notesOf(sight, settings),
    },
  };
}

/** ConfigMap with what was agreed on; the operator's status in it stays. */
export function recordOf(settings: ClusterSettings): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...CLUSTER_RECORD }, data: encodeSettings(settings) };
}

function wouldOf({ nodes }: AdoptionSight, settings: ClusterSettings, { image }: Installation): string[] {
  const percent = Math.round(settings.refresh * 100);
  const pods = {
    wait: 'a new CA signs when all pods that are older than it have been started anew by others',
    restart: 'for a new CA, workloads whose pods have not read it are restarted, within disruption budgets',
    ignore: 'for a new CA, pods that have not read it are not waited for',
  }[settings.pods];
  return [
    `an agent is installed on ${nodes.length === 1 ? 'the node' : `each of ${nodes.length} nodes`}, as root, and an operator; image ${image}`,
    settings.keysOnNodes
      ? `the certificates of its CAs are copied into namespace ${PKI_NAMESPACE}; their keys stay on the nodes`
      : `its CAs are copied with their keys from ${settings.publishFrom} into Secrets of namespace ${PKI_NAMESPACE}`,
    'no certificate is changed, and nothing is restarted',
    `from then on every leaf is renewed after ${percent} % of its life, node by node`,
    ...(settings.keysOnNodes ? ['CAs are not replaced: that needs their keys in Secrets'] : [pods]),
  ];
}

function notesOf(sight: AdoptionSight, { keysOnNodes }: ClusterSettings): string[] {
  const { apiServers, nodes, configuration } = sight;
  const plain = apiServers.filter(pod => !flagsOf(pod).has('encryption-provider-config'));
  const silent = nodes.filter(node => !isReady(node)).map(nameOf);
  const watched = onlyWatched(reportedNodes(sight));
  return [
    ...(keysOnNodes
      ? []
      : apiServers.length === 0
        ? ['Whether Secrets are encrypted at rest cannot be seen: no mirror pod of kube-apiserver is there.']
        : plain.length > 0
          ? [
              'Secrets are not encrypted at rest (kube-apiserver has no --encryption-provider-config): who reads the disk or a backup of etcd reads the keys of the CAs. --keys-on-nodes leaves them where they are.',
            ]
          : []),
    ...(silent.length > 0 ? [`Not ready, so that agents there cannot report: ${silent.join(', ')}.`] : []),
    ...watched,
    ...(configuration?.etcd === 'external' && !watched.some(text => text.startsWith('etcd is external'))
      ? ['etcd is external: its certificates are only watched.']
      : []),
  ];
}

/** The image of what is installed already. */
function installedImage({ daemonSets, deployment }: AdoptionSight): string | undefined {
  const [found] = [...daemonSets, ...(deployment === undefined ? [] : [deployment])];
  return found?.spec?.template.spec?.containers[0]?.image;
}

function nameOf({ metadata }: { metadata?: { name?: string } }): string {
  return metadata?.name ?? '';
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
