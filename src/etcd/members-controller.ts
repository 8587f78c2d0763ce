import { errorText } from '../controller/aggregate-error.ts';
import type { Condition } from '../controller/condition.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import type { StaticPodOperator } from '../staticpod/operator.ts';
import { hasQuorum } from './quorum/fault-tolerance.ts';
import { type EtcdMembers, healthText, type MemberHealth, unhealthyMembers, unstartedNames } from './quorum/member.ts';
import { hasEverRun } from './quorum/rollout.ts';

/** What the members are in the operator's conditions (spec 40, Q-10). */
export function memberConditions(health: readonly MemberHealth[]): Condition[] {
  const text = healthText(health);
  const unhealthy = unhealthyMembers(health).length;
  const isStarting = unstartedNames(health).length > 0;
  return [
    {
      type: 'EtcdMembersDegraded',
      status: unhealthy > 0 ? 'True' : 'False',
      reason: unhealthy > 0 ? 'UnhealthyMembers' : 'AsExpected',
      message: unhealthy > 0 ? text : 'No unhealthy members found',
    },
    {
      type: 'EtcdMembersProgressing',
      status: isStarting ? 'True' : 'False',
      reason: isStarting ? 'MembersNotStarted' : 'AsExpected',
      message: isStarting ? text : 'No unstarted etcd members found',
    },
    availability(health.length, health.length - unhealthy, text),
  ];
}

/** Whether a majority answers. */
export function availability(total: number, healthy: number, text = ''): Condition {
  const isQuorate = hasQuorum(total, healthy);
  return {
    type: 'EtcdMembersAvailable',
    status: isQuorate ? 'True' : 'False',
    reason: isQuorate ? 'EtcdQuorate' : 'NoQuorum',
    message: text,
  };
}

export interface MembersControllerOptions {
  readonly members: EtcdMembers;
  readonly operator: StaticPodOperator;
}

export function membersReconcile({ members, operator }: MembersControllerOptions): Reconcile {
  return async (_key, { signal }) => {
    if (!hasEverRun((await operator.read(signal)).status ?? {})) return;
    const type = 'EtcdMembersControllerDegraded';
    let health: readonly MemberHealth[];
    try {
      health = await members.health({ signal });
    } catch (error) {
      const message = `getting member health: ${errorText(error)}`;
      await operator.setConditions(
        [{ type, status: 'True', reason: 'ErrorUpdatingReportEtcdMembers', message }],
        signal,
      );
      throw error;
    }
    await operator.setConditions(
      [{ type, status: 'False', reason: 'AsExpected' }, ...memberConditions(health)],
      signal,
    );
  };
}
