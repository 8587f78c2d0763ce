import { ensureCluster } from '../etcd/ensure-cluster.ts';
import { foundingPlan } from '../etcd/founding.ts';
import {
  ALL_BUNDLES,
  ENDPOINTS,
  ETCD_NAMESPACE,
  OPERATOR_LEASE,
  OPERATOR_NAMESPACE,
  POD_CONFIG_MAP,
} from '../etcd/names.ts';
import { profileLater } from '../etcd/profile.ts';
import { etcdProgram } from '../etcd/program.ts';
import { ETCDS } from '../etcd/resources.ts';
import { seconds } from '../kube/duration.ts';
import { VERSION } from '../kube/version.ts';
import type { ClusterPart } from './part.ts';
import { RolloutWatch } from './rollout-watch.ts';
import { standInMembers } from './stand-in-members.ts';

/** A member on the same machine answers at once or not at all. */
const LIMITS = { dialMs: seconds(2), requestMs: seconds(4) };
const MEMBER_CACHE_MS = seconds(1);

/** The etcd operator in this process, and a member of a real etcd on every control-plane node where the program is found. */
export const etcdPart: ClusterPart = {
  name: 'etcd',
  async start({ kube, controlPlane, programs, log, changed, lead, ...options }) {
    const isStandIn = programs.find('etcd')?.isStandIn !== false;
    const ownLog = log.child({ operator: 'etcd' });
    if (isStandIn) ownLog.warn({}, 'there is no etcd on this machine: a stand-in takes its place');
    const rollout = new RolloutWatch({
      kube,
      resource: ETCDS,
      namespace: ETCD_NAMESPACE,
      podName: 'etcd',
      revisioned: [POD_CONFIG_MAP, ENDPOINTS, ALL_BUNDLES],
      controlPlane,
      isStandIn,
      also: ({ conditions = [] }, read) => {
        if (foundingPlan(read(ENDPOINTS)) !== undefined) return 'a vote for every member';
        const found = conditions.find(({ type }) => type === 'EtcdMembersAvailable');
        return found?.status === 'True'
          ? undefined
          : `a majority of members: ${found?.message ?? 'nobody has asked yet'}`;
      },
      changed,
    });
    const { members, membership } = isStandIn ? standInMembers(controlPlane) : {};
    const events = options.events('etcd-operator', OPERATOR_NAMESPACE);
    const leading = lead(OPERATOR_LEASE, events, async (fenced, signal) => {
      await ensureCluster(fenced, signal);
      await etcdProgram({
        kube: fenced,
        events,
        log: ownLog,
        operand: {
          image: 'etcd',
          operatorImage: 'rotunda',
          command: ['rotunda'],
          listenOn: 'node',
          withMetricsProxy: true,
          version: VERSION,
          minReadyMs: options.minReadyMs,
        },
        profile: profileLater(options.dayMs),
        keyAlgorithm: options.keyAlgorithm,
        limits: LIMITS,
        memberCacheMs: MEMBER_CACHE_MS,
        members,
        membership,
      }).run(signal);
    });
    return { ended: rollout.during(leading.done), state: () => leading.state(rollout.state()) };
  },
};
