import { type BootstrapStatus, isBootstrapComplete } from './bootstrap.ts';
import { faultTolerance, voterCount } from './fault-tolerance.ts';
import { healthyMembers, type MemberHealth } from './member.ts';
import { hasEverRun, isRevisionStable, type RolloutStatus } from './rollout.ts';
import type { ScalingStrategy } from './strategy.ts';

/** Something that was asked for: what it is, or why it is not known. */
export type Known<T> = { readonly value: T } | { readonly error: string };

export interface QuorumQuestion {
  readonly bootstrap: BootstrapStatus;
  readonly rollout: RolloutStatus;
  readonly strategy: Known<ScalingStrategy>;
  readonly health: Known<readonly MemberHealth[]>;
}

export type QuorumAnswer =
  | { readonly safe: true; readonly because: string }
  | { readonly safe: false; readonly error: string };

/** Which answers of section 4 are given. The differences to upstream are its gaps. */
export interface QuorumRule {
  /**
   * When an installation opens the gate. `unless complete`: also for ever after somebody has deleted the ConfigMap (spec 40,
   * T-16); `while it runs`: as long as the installer says so or its member is there; `never`: nobody asks.
   */
  readonly installation: 'unless complete' | 'while it runs' | 'never';
  /** A rollout under way opens the gate, whoever is down (spec 40, T-2). */
  readonly rolloutOpens: boolean;
  /** Fewer than three healthy members are told as such, before fault tolerance is asked for (spec 40, N-9). */
  readonly tellsMinimum: boolean;
  /** Members without a vote count (spec 40, T-3). */
  readonly countsLearners: boolean;
}

/** What 4.16 answers. */
export const RULE_4_16: QuorumRule = {
  installation: 'unless complete',
  rolloutOpens: true,
  tellsMinimum: false,
  countsLearners: true,
};

/** What 4.17 and later answer. */
export const RULE_LATER: QuorumRule = {
  installation: 'never',
  rolloutOpens: true,
  tellsMinimum: true,
  countsLearners: true,
};

/** Before a certificate is changed: nothing but an installation opens it. */
export const RULE_FOR_ROTATION: QuorumRule = {
  installation: 'while it runs',
  rolloutOpens: false,
  tellsMinimum: false,
  countsLearners: false,
};

/**
 * Before a manifest, an endpoint or a revision is made. A rollout opens it, because what a bad revision broke is mended by
 * the next one and a new node needs its own; what is taken down is decided node by node (`guard.ts`).
 */
export const RULE_FOR_REVISIONS: QuorumRule = { ...RULE_FOR_ROTATION, rolloutOpens: true };

/** Whether the cluster would survive the loss of one member, as far as that matters now (spec 40, Q-2 to Q-6). */
export function decideQuorum(question: QuorumQuestion, rule: QuorumRule): QuorumAnswer {
  return (
    openedByInstallation(question, rule) ??
    openedByRollout(question, rule) ??
    openedByBootstrapMember(question, rule) ??
    decideByMembers(question, rule)
  );
}

/** The answer where the members need not be asked; undefined: they must. */
export function decideWithoutMembers(
  question: Omit<QuorumQuestion, 'health'>,
  rule: QuorumRule,
): QuorumAnswer | undefined {
  const answer = decideQuorum({ ...question, health: { error: 'nobody has been asked' } }, rule);
  return answer.safe ? answer : undefined;
}

function openedByInstallation({ bootstrap, rollout }: QuorumQuestion, rule: QuorumRule): QuorumAnswer | undefined {
  if (rule.installation === 'never') return undefined;
  const isStrict = rule.installation === 'while it runs';
  if (isStrict ? bootstrap !== undefined && bootstrap !== 'complete' : bootstrap !== 'complete') {
    return safe('the installation is not complete');
  }
  return (isStrict ? !hasEverRun(rollout) : !isRevisionStable(rollout))
    ? safe('no revision has settled yet')
    : undefined;
}

function openedByRollout({ rollout }: QuorumQuestion, rule: QuorumRule): QuorumAnswer | undefined {
  return rule.rolloutOpens && !isRevisionStable(rollout) ? safe('a rollout is under way') : undefined;
}

/** An etcd that cannot be asked is not safe, not even where one member is enough (spec 40, section 4, special topologies). */
function openedByBootstrapMember({ health }: QuorumQuestion, rule: QuorumRule): QuorumAnswer | undefined {
  if (rule.installation === 'never') return undefined;
  if ('error' in health) {
    return unsafe(
      `failed to determine bootstrap status: IsBootstrapComplete couldn't list the etcd cluster members: ${health.error}`,
    );
  }
  const names = health.value.map(({ member }) => member.name);
  return isBootstrapComplete('complete', names) ? undefined : safe('the member of the installer is still there');
}

const MINIMUM: Record<Exclude<ScalingStrategy, 'UnsafeScalingStrategy'>, number> = {
  HAScalingStrategy: 3,
  DelayedHAScalingStrategy: 3,
  TwoNodeScalingStrategy: 2,
  DelayedTwoNodeScalingStrategy: 2,
};

function decideByMembers({ strategy, health }: QuorumQuestion, rule: QuorumRule): QuorumAnswer {
  if ('error' in strategy) return unsafe(`failed to get bootstrap scaling strategy: ${strategy.error}`);
  if (strategy.value === 'UnsafeScalingStrategy') return safe('nobody asks for more than one member');
  if ('error' in health) return unsafe(`couldn't determine member health: ${health.error}`);
  const minimum = MINIMUM[strategy.value];
  const isTwoNode = minimum === 2;
  const healthy = healthyMembers(health.value).filter(({ isLearner }) => rule.countsLearners || !isLearner).length;
  if (healthy < minimum && (rule.tellsMinimum || isTwoNode)) {
    return unsafe(`found ${healthy} healthy member(s) out of the ${minimum} required by the ${strategy.value}`);
  }
  // Two members are never fault tolerant; a cluster that is meant to have two lives with that, at exactly two (N-9).
  const count = rule.countsLearners ? health.value.length : voterCount(health.value);
  if (isTwoNode && count === 2) return safe('both members are healthy');
  const { problem } = faultTolerance(health.value, { countLearners: rule.countsLearners });
  return problem === undefined ? safe('one member can be lost') : { safe: false, error: problem };
}

function safe(because: string): QuorumAnswer {
  return { safe: true, because };
}

function unsafe(what: string): QuorumAnswer {
  return { safe: false, error: `CheckSafeToScaleCluster ${what}` };
}
