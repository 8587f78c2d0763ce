import { CLIENT_PORT, ETCD_NAMESPACE, PEER_PORT } from '../etcd/names.ts';
import type { EtcdMembers, EtcdMembership, Member } from '../etcd/quorum/member.ts';
import type { LocalNode } from './node.ts';

/**
 * The membership of an etcd that is only stood in for: who has been started is a member with a vote, and healthy while its process
 * runs. Stand-ins keep no data and do not know of each other, so nobody can ask them.
 */
export function standInMembers(controlPlane: readonly LocalNode[]): {
  members: EtcdMembers;
  membership: EtcdMembership;
} {
  const known = new Set<LocalNode>();
  const container = (node: LocalNode) =>
    node.runner(ETCD_NAMESPACE, `etcd-${node.name}`)?.container('etcd')?.snapshot().state;
  return {
    members: {
      async health() {
        for (const node of controlPlane) if (container(node) !== undefined) known.add(node);
        const list = controlPlane.flatMap((node, index) => (known.has(node) ? [{ node, index }] : []));
        if (list.length === 0) throw new Error('no etcd stand-in has been started');
        return list.map(({ node, index }) => ({
          member: memberOn(node, index),
          healthy: container(node)?.running !== undefined,
        }));
      },
    },
    membership: {
      async addLearner() {},
      async promote() {},
      async remove(memberId) {
        known.delete(controlPlane[Number(memberId) - 1] as LocalNode);
      },
    },
  };
}

function memberOn({ name, address }: LocalNode, index: number): Member {
  return {
    id: String(index + 1),
    name,
    peerURLs: [`https://${address}:${PEER_PORT}`],
    clientURLs: [`https://${address}:${CLIENT_PORT}`],
    isLearner: false,
  };
}
