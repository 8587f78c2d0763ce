import { healthyMembers, type MemberHealth, memberName, votingMembers } from './member.ts';

/** How many of so many members must agree. Throws for a number no cluster can have (spec 40, Q-6). */
export function quorumOf(memberCount: number): number {
  if (memberCount <= 0) throw new RangeError(`invalid etcd member length: ${memberCount}`);
  return Math.floor(memberCount / 2) + 1;
}

export interface FaultTolerance {
  readonly quorum: number;
  readonly healthy: number;
  /** Why the cluster would not survive the loss of one more member; undefined: it would. */
  readonly problem: string | undefined;
}

export interface CountingOptions {
  /** Upstream counts members that have no vote, on both sides of the sum (spec 40, T-3). We do not. */
  readonly countLearners?: boolean | undefined;
}

/**
 * Whether one member may go down: there must be one healthy member more than a majority needs (spec 40, Q-6). Members that have
 * not started count as members, and as down.
 */
export function faultTolerance(
  health: readonly MemberHealth[],
  { countLearners = false }: CountingOptions = {},
): FaultTolerance {
  const counted = countLearners ? health : health.filter(({ member }) => !member.isLearner);
  const healthy = healthyMembers(counted).length;
  if (counted.length === 0) return { quorum: 0, healthy, problem: `invalid etcd member length: ${counted.length}` };
  const quorum = quorumOf(counted.length);
  const what = `etcd cluster has quorum of ${quorum}`;
  const dump = describeHealth(health);
  if (counted.length - quorum < 1) return { quorum, healthy, problem: `${what} which is not fault tolerant: ${dump}` };
  if (healthy - quorum < 1) {
    return { quorum, healthy, problem: `${what} and ${healthy} healthy members which is not fault tolerant: ${dump}` };
  }
  return { quorum, healthy, problem: undefined };
}

/** Whether the members that answer are a majority (spec 40, Q-10). */
export function hasQuorum(memberCount: number, healthyCount: number): boolean {
  return memberCount > 0 && healthyCount >= quorumOf(memberCount);
}

/** How many voters there are. */
export function voterCount(health: readonly MemberHealth[]): number {
  return votingMembers(health.map(({ member }) => member)).length;
}

const LONGEST_ERROR = 200;

/** The members in a line: who they are, where, and what was wrong. */
export function describeHealth(health: readonly MemberHealth[]): string {
  const texts = health.map(({ member, healthy, error }) => {
    const role = member.isLearner ? ' learner' : '';
    const why = error === undefined ? '' : `: ${error.slice(0, LONGEST_ERROR)}`;
    return `${memberName(member)} ${member.peerURLs.join(' ')}${role} ${healthy ? 'healthy' : `unhealthy${why}`}`;
  });
  return `[${texts.join('; ')}]`;
}
