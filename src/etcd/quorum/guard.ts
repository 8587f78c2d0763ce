import type { Permission } from '../../staticpod/config.ts';
import type { Known } from './decide.ts';
import { describeHealth, quorumOf } from './fault-tolerance.ts';
import { hostOf, type MemberHealth } from './member.ts';
import type { ScalingStrategy } from './strategy.ts';

export interface GuardQuestion {
  readonly nodeName: string;
  readonly nodeAddresses: readonly string[];
  readonly strategy: Known<ScalingStrategy>;
  readonly health: Known<readonly MemberHealth[]>;
  /** Whether any node has ever run etcd. */
  readonly hasEverRun: boolean;
  /** Whether the operand on this node is ready: without one there is nothing to lose here. */
  readonly isOperandReady: boolean;
}

/**
 * Whether the member on a node may be restarted: the others must be a majority without it. One that does not run is always let go:
 * whatever is done to it can only help. One that runs and is not healthy may only lack the others; it is spared, so that nothing
 * moves while there is no majority. This is the guard between the nodes of a rollout.
 */
export function decideRestart(question: GuardQuestion): Permission {
  const { nodeName, nodeAddresses, strategy, health, hasEverRun, isOperandReady } = question;
  if (!hasEverRun) return { allowed: true };
  if ('error' in strategy) return refused(strategy.error);
  if (strategy.value === 'UnsafeScalingStrategy') return { allowed: true };
  if ('error' in health) {
    // Nobody answers. A node without a working member is where the recovery begins.
    return isOperandReady ? refused(`the health of the members is not known: ${health.error}`) : { allowed: true };
  }
  const own = health.value.find(({ member }) => isOn(member, nodeName, nodeAddresses));
  if (!isOperandReady && !own?.healthy) return { allowed: true };
  if (own?.member.isLearner) return { allowed: true };
  const voters = health.value.filter(({ member }) => !member.isLearner);
  // A running member that cannot be told from the others may be any of them.
  const others = voters.filter(({ healthy }) => healthy).length - (own === undefined || own.healthy ? 1 : 0);
  const isTwoNode = strategy.value === 'TwoNodeScalingStrategy' || strategy.value === 'DelayedTwoNodeScalingStrategy';
  if (isTwoNode && voters.length === 2 && others === 1) return { allowed: true };
  const quorum = quorumOf(voters.length);
  if (others >= quorum) return { allowed: true };
  return refused(`etcd would have ${others} healthy members left and needs ${quorum}: ${describeHealth(health.value)}`);
}

function isOn(member: MemberHealth['member'], nodeName: string, nodeAddresses: readonly string[]): boolean {
  return member.name === nodeName || member.peerURLs.some(url => nodeAddresses.includes(hostOf(url)));
}

function refused(reason: string): Permission {
  return { allowed: false, reason };
}
