import assert from 'node:assert/strict';
import { availability, memberConditions } from '../../../src/etcd/members-controller.ts';
import { decideBootstrapRemoval, isBootstrapComplete } from '../../../src/etcd/quorum/bootstrap.ts';
import { decideQuorum, type Known, type QuorumRule, RULE_4_16, RULE_FOR_ROTATION, RULE_LATER } from '../../../src/etcd/quorum/decide.ts';
import { faultTolerance, quorumOf } from '../../../src/etcd/quorum/fault-tolerance.ts';
import { healthText, type MemberHealth, unhealthyNames, unstartedNames } from '../../../src/etcd/quorum/member.ts';
import { currentRevision, isRevisionStable, isRolloutInProgress } from '../../../src/etcd/quorum/rollout.ts';
import { isUnsafeOverride, type ScalingStrategy, scalingStrategy } from '../../../src/etcd/quorum/strategy.ts';
import { type Adapter, attempt, checkError, healthOf, type Json, type Version } from './case.ts';

const ROLLOUT = ['latestAvailableRevision', 'nodeStatuses'];

export function ruleOf(version: Version): QuorumRule {
  return version === '4.16' ? RULE_4_16 : RULE_LATER;
}

export const quorumAdapters: Record<string, Adapter> = {
  health: {
    given: ['members'],
    expected: ['status', 'unstartedNames', 'unhealthyNames'],
    run({ given, expected }) {
      const health = healthOf(given.members);
      if (expected.status !== undefined) assert.equal(healthText(health), expected.status);
      if (expected.unstartedNames !== undefined) assert.deepEqual(unstartedNames(health), expected.unstartedNames);
      if (expected.unhealthyNames !== undefined) assert.deepEqual(unhealthyNames(health), expected.unhealthyNames);
    },
  },

  quorum: {
    given: ['members', 'memberCount'],
    expected: ['faultTolerant', 'quorum', 'healthy', 'errorPrefix', 'error'],
    async run({ given, expected }) {
      if (given.members === undefined) {
        let quorum = 0;
        const error = await attempt(() => (quorum = quorumOf(given.memberCount)));
        assert.equal(quorum, expected.quorum);
        checkError(error, expected);
        return;
      }
      const health = healthOf(given.members);
      const upstream = faultTolerance(health, { countLearners: true });
      assert.equal(upstream.problem === undefined, expected.faultTolerant);
      if (expected.quorum !== undefined) assert.equal(upstream.quorum, expected.quorum);
      if (expected.healthy !== undefined) assert.equal(upstream.healthy, expected.healthy);
      if (expected.errorPrefix !== undefined) assert.ok(upstream.problem?.startsWith(expected.errorPrefix), upstream.problem);
      // Ours counts those who vote (spec 40, T-3): the same answer wherever there is no learner.
      const ours = faultTolerance(health);
      const voters = health.filter(({ member }) => !member.isLearner);
      assert.deepEqual(ours.problem === undefined, faultTolerance(voters, { countLearners: true }).problem === undefined);
    },
  },

  'members-conditions': {
    given: ['total', 'healthy', 'unstarted', 'members'],
    expected: ['condition', 'status', 'reason', 'message'],
    run({ given, expected }) {
      const health = given.members === undefined ? membersOf(given) : healthOf(given.members);
      const found = memberConditions(health).find(({ type }) => type === expected.condition);
      assert.ok(found, `no condition ${expected.condition}`);
      assert.deepEqual([found.status, found.reason], [expected.status, expected.reason]);
      if (expected.message !== undefined) assert.equal(found.message, expected.message);
      if (expected.condition === 'EtcdMembersAvailable' && given.total !== undefined) {
        assert.equal(availability(given.total, given.healthy).status, expected.status);
      }
    },
  },

  bootstrap: {
    given: ['bootstrapConfigMapStatus', 'memberNames', ...ROLLOUT],
    expected: ['complete', 'stable', 'error'],
    run({ given, expected }, version) {
      if (expected.stable !== undefined) assert.equal(isRevisionStable(given), expected.stable);
      if (expected.complete === undefined) return;
      const rollout = version === '4.16' ? given : undefined;
      assert.equal(isBootstrapComplete(given.bootstrapConfigMapStatus ?? undefined, given.memberNames, rollout), expected.complete);
      assert.equal(expected.error ?? null, null);
    },
  },

  'bootstrap-teardown': {
    given: ['memberNames', 'strategy', 'unhealthy'],
    expected: ['safeToRemove', 'hasBootstrap'],
    run({ given, expected }) {
      assert.deepEqual(decideBootstrapRemoval(given.memberNames, given.unhealthy, given.strategy), expected);
    },
  },

  strategy: {
    given: ['etcdNamespaceAnnotations', 'unsupportedConfigOverrides', 'controlPlaneTopology', 'unsupportedConfigOverridesRaw'],
    expected: ['strategy', 'unsafe', 'isError', 'error', 'errorPrefix'],
    async run({ given, expected }) {
      let found: string | boolean | undefined;
      const error = await attempt(() => {
        if (given.unsupportedConfigOverridesRaw !== undefined) found = isUnsafeOverride(given.unsupportedConfigOverridesRaw);
        else {
          const annotations = given.etcdNamespaceAnnotations ?? [];
          found = scalingStrategy({
            controlPlaneTopology: given.controlPlaneTopology ?? '',
            namespaceAnnotations: Array.isArray(annotations) ? Object.fromEntries(annotations.map((key: string) => [key, ''])) : annotations,
            unsupportedConfigOverrides: given.unsupportedConfigOverrides,
          });
        }
      });
      checkError(error, expected);
      if (expected.strategy !== undefined) assert.equal(found, expected.strategy);
      if (expected.unsafe !== undefined) assert.equal(found ?? false, expected.unsafe);
    },
  },

  revision: {
    given: ROLLOUT,
    expected: ['inProgress', 'currentRevision', 'error'],
    run({ given, expected }) {
      if (expected.inProgress !== undefined) assert.equal(isRolloutInProgress(given), expected.inProgress);
      if (expected.currentRevision === undefined) return;
      const found = currentRevision(given);
      assert.equal('revision' in found ? found.revision : 0, expected.currentRevision);
      assert.equal('error' in found ? found.error : null, expected.error ?? null);
    },
  },

  'quorum-gate': {
    given: ['strategy', 'strategyError', 'memberListError', 'memberHealthError', 'bootstrapConfigMapStatus', 'members', ...ROLLOUT],
    expected: ['safe', 'errorPrefix', 'error'],
    run({ given, expected }, version) {
      const answer = decideQuorum(questionOf(given), ruleOf(version));
      assert.equal(answer.safe, expected.safe);
      checkError(answer.safe ? undefined : new Error(answer.error), expected);
      // Whatever opens upstream's gate while a member is down does not open ours, unless something is being installed (T-2, T-16).
      const ours = decideQuorum(questionOf(given), RULE_FOR_ROTATION);
      const isInstalling = given.bootstrapConfigMapStatus !== null && given.bootstrapConfigMapStatus !== 'complete';
      const isSmall = given.strategy === 'UnsafeScalingStrategy' || String(given.strategy).includes('TwoNode');
      const hasRun = (given.nodeStatuses ?? []).some(({ currentRevision: current }: Json) => current > 0);
      const health = healthOf(given.members ?? []);
      const hasBootstrap = health.some(({ member }) => member.name === 'etcd-bootstrap');
      if (ours.safe && !isInstalling && !isSmall && hasRun && !hasBootstrap) {
        assert.equal(faultTolerance(health).problem, undefined);
      }
    },
  },
};

export function questionOf(given: Json): Parameters<typeof decideQuorum>[0] {
  const { strategy = 'HAScalingStrategy', strategyError, memberListError, memberHealthError } = given;
  const health: Known<MemberHealth[]> =
    (memberListError ?? memberHealthError) ? { error: memberListError ?? memberHealthError } : { value: healthOf(given.members ?? []) };
  const known: Known<ScalingStrategy> = strategyError ? { error: strategyError } : { value: strategy };
  return { bootstrap: given.bootstrapConfigMapStatus ?? undefined, rollout: given, strategy: known, health };
}

function membersOf({ total, healthy, unstarted = 0 }: Json): MemberHealth[] {
  return Array.from({ length: total }, (_, index) => {
    const url = `https://10.0.0.${index + 1}:238`;
    const hasStarted = index < total - unstarted;
    return {
      member: {
        id: String(index),
        name: hasStarted ? `etcd-${index}` : '',
        peerURLs: [`${url}0`],
        clientURLs: hasStarted ? [`${url}9`] : [],
        isLearner: false,
      },
      healthy: index < healthy,
    };
  });
}
