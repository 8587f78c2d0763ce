import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { canonicalHost } from '../pki/hosts.ts';
import { readNodeStatus } from '../staticpod/node-status.ts';
import { ENDPOINTS, ETCD_NAMESPACE, FOUNDING } from './names.ts';
import { preferredAddress } from './node-address.ts';
import { hostOf, type Member } from './quorum/member.ts';
import type { RolloutStatus } from './quorum/rollout.ts';

/**
 * Where there is no installer with a member of its own, the first listed node begins the cluster and the others join it in the order
 * in which they are listed, which is the order in which they are installed. So one revision tells every node with whom it will be
 * when it starts. The plan does not change any more once a revision has it. Undefined: nothing is to be written.
 */
export function foundingEndpoints(
  nodes: readonly Node[],
  { latestAvailableRevision = 0, nodeStatuses = [] }: RolloutStatus,
  existing: ConfigMap | undefined,
): ConfigMap | undefined {
  const byName = new Map(nodes.map(node => [node.metadata?.name ?? '', node]));
  const planned = nodeStatuses.flatMap(({ nodeName }) => {
    const node = byName.get(nodeName);
    return node === undefined ? [] : [{ nodeName, address: preferredAddress(node, undefined) }];
  });
  const isFirstThere = planned[0] !== undefined && planned[0].nodeName === nodeStatuses[0]?.nodeName;
  if (!isFirstThere || (existing !== undefined && latestAvailableRevision > 0)) return undefined;
  const annotations = { [FOUNDING]: planned.map(({ nodeName }) => nodeName).join(',') };
  return {
    metadata: { namespace: ETCD_NAMESPACE, name: ENDPOINTS, annotations },
    data: Object.fromEntries(planned.map(({ nodeName, address }) => [nodeName, address])),
  };
}

/** The nodes of the plan in its order; undefined: nothing is being founded. */
export function foundingPlan(endpoints: ConfigMap | undefined): readonly string[] | undefined {
  return endpoints?.metadata?.annotations?.[FOUNDING]?.split(',');
}

/**
 * Whether the founding is still under way and goes as planned. If not, the members that are there are published: either all of them
 * have their vote, or a revision must tell the nodes how things really are.
 */
export function isFoundingOnPlan(
  endpoints: ConfigMap | undefined,
  members: readonly Member[],
  { nodeStatuses = [] }: RolloutStatus,
): boolean {
  const plan = foundingPlan(endpoints);
  if (plan === undefined) return false;
  const listed = nodeStatuses.map(readNodeStatus);
  if (listed.some(({ lastFailedRevision }) => lastFailedRevision > 0)) return false;
  if (!plan.every(name => listed.some(({ nodeName }) => nodeName === name))) return false;
  const addresses = plan.map(name => canonicalHost(endpoints?.data?.[name] ?? ''));
  const found = members.map(({ peerURLs }) => canonicalHost(hostOf(peerURLs[0] ?? '')));
  const isPrefix = found.every(address => addresses.slice(0, found.length).includes(address));
  const haveAllVotes = found.length === plan.length && members.every(({ isLearner }) => !isLearner);
  return isPrefix && !haveAllVotes;
}
