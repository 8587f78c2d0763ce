import { isManaged } from '../controller/management-state.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import type { Kube } from '../kube/port.ts';
import type { StaticPodOperator } from '../staticpod/operator.ts';
import { BOOTSTRAP_MEMBER } from './names.ts';
import { bootstrapStatusOf, decideBootstrapRemoval, readInstallerBootstrap } from './quorum/bootstrap.ts';
import { type EtcdMembers, type EtcdMembership, unhealthyNames } from './quorum/member.ts';
import type { QuorumReader } from './quorum/reader.ts';
import { hasEverRun } from './quorum/rollout.ts';

export interface BootstrapTeardownOptions {
  readonly kube: Kube;
  readonly members: EtcdMembers;
  readonly membership: EtcdMembership;
  readonly quorum: QuorumReader;
  readonly operator: StaticPodOperator;
}

/** Removes the member of the installer when the others are enough (spec 40, B-5). */
export function bootstrapTeardownReconcile(options: BootstrapTeardownOptions): Reconcile {
  const { kube, members, membership, quorum, operator } = options;
  return async (_key, { signal, events }) => {
    const { spec = {}, status = {} } = await operator.read(signal);
    if (!isManaged(spec.managementState) || !hasEverRun(status)) return;
    const health = await members.health({ signal });
    const bootstrapMember = health.find(({ member }) => member.name === BOOTSTRAP_MEMBER)?.member;
    if (bootstrapMember === undefined) {
      const running = runningInCluster('True', 'BootstrapAlreadyRemoved', 'etcd-bootstrap member is already removed');
      await operator.setConditions([REMOVED, running], signal);
      return;
    }
    const names = health.map(({ member }) => member.name);
    const { safeToRemove } = decideBootstrapRemoval(names, unhealthyNames(health), await quorum.strategy(signal));
    if (!safeToRemove) {
      const message = `${names.length - 1} members besides etcd-bootstrap are not enough, or not all of them are healthy`;
      await operator.setConditions([runningInCluster('False', 'NotEnoughEtcdMembers', message)], signal);
      return;
    }
    await operator.setConditions([runningInCluster('True', 'EnoughEtcdMembers', 'enough members found')], signal);
    const bootstrap = await readInstallerBootstrap(kube, signal);
    if (bootstrapStatusOf(bootstrap) !== 'complete') return;
    await membership.remove(bootstrapMember.id, signal);
    events.event('Normal', 'BootstrapMemberRemoved', 'removed the member etcd-bootstrap');
    await operator.setConditions([REMOVED], signal);
  };
}

const REMOVED = {
  type: 'EtcdBootstrapMemberRemoved',
  status: 'True',
  reason: 'BootstrapMemberRemoved',
  message: 'etcd bootstrap member is removed',
} as const;

function runningInCluster(status: 'True' | 'False', reason: string, message: string) {
  return { type: 'EtcdRunningInCluster', status, reason, message } as const;
}
