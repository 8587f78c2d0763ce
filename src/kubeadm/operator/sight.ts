import type { ConfigMap, Node, Secret } from 'kubernetes-types/core/v1.d.ts';
import { isWaived } from '../../hand-over/waiver.ts';
import { CONTROL_PLANE_LABEL } from '../names.ts';
import { reportOf } from '../report.ts';
import { decodeWanted, wantedKey } from '../wanted.ts';
import type { SeenNode } from './evidence.ts';

/** The nodes with what their agents say and what is asked of them. */
export function nodesSeen(nodes: readonly Node[], configMaps: readonly ConfigMap[]): readonly SeenNode[] {
  return nodes.map(node => {
    const name = node.metadata?.name ?? '';
    return {
      name,
      node,
      isControlPlane: node.metadata?.labels?.[CONTROL_PLANE_LABEL] !== undefined,
      isReady: node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false,
      isWaived: isWaived(node),
      report: reportOf(node),
      wanted: decodeWanted(configMaps.find(({ metadata }) => metadata?.name === wantedKey(name).name)),
    };
  });
}

/** What is asked of nodes that are not there any more. */
export function leftOver(nodes: readonly Node[], configMaps: readonly ConfigMap[]): readonly ConfigMap[] {
  const known = new Set(nodes.map(({ metadata }) => wantedKey(metadata?.name ?? '').name));
  const isForNode = ({ metadata }: ConfigMap) => metadata?.name?.startsWith(wantedKey('').name) ?? false;
  return configMaps.filter(configMap => isForNode(configMap) && !known.has(configMap.metadata?.name ?? ''));
}

export function namedIn<T extends Secret | ConfigMap>(objects: readonly T[], { name }: { readonly name: string }) {
  return objects.find(({ metadata }) => metadata?.name === name);
}
