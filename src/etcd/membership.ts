import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { errorText, throwIfAny } from '../controller/aggregate-error.ts';
import { isManaged } from '../controller/management-state.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { seconds } from '../kube/duration.ts';
import { isNotFound } from '../kube/error.ts';
import { getIfPresent } from '../kube/get.ts';
import { listAll } from '../kube/list.ts';
import type { Kube } from '../kube/port.ts';
import { type KubeObject, PODS, type Resource, resource } from '../kube/resource.ts';
import { canonicalHost } from '../pki/hosts.ts';
import type { StaticPodOperator } from '../staticpod/operator.ts';
import { controlPlaneNodes } from './cert-signer/state.ts';
import { ETCD_NAMESPACE, PEER_PORT } from './names.ts';
import { internalAddresses, preferredAddress, preferredFamily, urlHost } from './node-address.ts';
import { readInstallerBootstrap } from './quorum/bootstrap.ts';
import {
  type EtcdMembers,
  type EtcdMembership,
  hostOf,
  type Member,
  memberName,
  unhealthyMembers,
  unhealthyNames,
} from './quorum/member.ts';
import { hasEverRun } from './quorum/rollout.ts';
import { CLUSTER, NETWORKS } from './resources.ts';

/** A node that may become a member. */
export interface Candidate {
  readonly name: string;
  /** The address its member is reached at. */
  readonly address: string;
  readonly isDeleting: boolean;
  /** What the machine API says of it; undefined: there is no machine API that works. */
  readonly machine: Machine | 'missing' | undefined;
  /** etcd waits on the node for being let in: it runs and is not ready. */
  readonly container: { readonly running: boolean; readonly ready: boolean };
}

export interface Machine {
  readonly isDeleting: boolean;
  /** Deleting it waits for us (spec 40, P-9). */
  readonly hasDeletionHook: boolean;
}

/** The peer URL of the next learner; undefined: nobody is to be let in now (spec 40, P-9). */
export function nextLearner(candidates: readonly Candidate[], members: readonly Member[]): string | undefined {
  const taken = new Set(members.flatMap(({ peerURLs }) => peerURLs.map(url => canonicalHost(hostOf(url)))));
  const next = candidates.find(
    ({ address, isDeleting, machine, container }) =>
      !isDeleting && !taken.has(canonicalHost(address)) && isStable(machine) && container.running && !container.ready,
  );
  return next === undefined ? undefined : `https://${urlHost(canonicalHost(next.address))}:${PEER_PORT}`;
}

function isStable(machine: Candidate['machine']): boolean {
  return machine === undefined || (machine !== 'missing' && !machine.isDeleting && machine.hasDeletionHook);
}

/** The learners that may be given a vote. */
export function promotable(candidates: readonly Candidate[], members: readonly Member[]): Member[] {
  const byAddress = new Map(candidates.map(candidate => [canonicalHost(candidate.address), candidate]));
  return members.filter(({ isLearner, peerURLs }) => {
    const candidate = byAddress.get(canonicalHost(hostOf(peerURLs[0] ?? '')));
    return isLearner && candidate !== undefined && isStable(candidate.machine);
  });
}

export interface MembershipOptions {
  readonly kube: Kube;
  readonly members: EtcdMembers;
  readonly membership: EtcdMembership;
  readonly operator: StaticPodOperator;
}

/** Who is let in is decided on a list of now. */
export const MEMBERSHIP_MAX_AGE_MS: number = seconds(1);
const LOOK_AGAIN_MS = seconds(1);
/**
 * What etcd says as long as a learner has not caught up or a change of the membership is younger than five seconds, and when
 * the list we decided on is no longer true.
 */
const NOT_NOW =
  /can only promote a learner member|unhealthy cluster|too many learner members|Peer URLs already exists|member ID already exist/;

/** Lets new nodes in, first as learners, then with a vote; nothing moves while a member is unhealthy (spec 40, P-9). */
export function clusterMemberReconcile({ kube, members, membership, operator }: MembershipOptions): Reconcile {
  return async (_key, { signal, log, clock }) => {
    const { spec = {}, status = {} } = await operator.read(signal);
    if (!isManaged(spec.managementState)) return undefined;
    // Where an installer has a member of its own there is somebody to join; otherwise the first node has to run.
    if (!hasEverRun(status) && (await readInstallerBootstrap(kube, signal)) === undefined) return undefined;
    const soon = { againAt: new Date(clock.now().getTime() + LOOK_AGAIN_MS) };
    const health = await members.health({ maxAgeMs: MEMBERSHIP_MAX_AGE_MS, signal });
    if (unhealthyMembers(health).length > 0) {
      log.info({ unhealthy: unhealthyNames(health) }, 'the membership stays as it is while members are unhealthy');
      return soon;
    }
    const list = health.map(({ member }) => member);
    const candidates = await readCandidates(kube, signal);
    const failures: unknown[] = [];
    const peerURL = nextLearner(candidates, list);
    if (peerURL !== undefined) {
      await membership.addLearner(peerURL, signal).catch((error: unknown) => {
        if (NOT_NOW.test(errorText(error))) return;
        failures.push(new Error(`failed to add learner member: ${errorText(error)}`, { cause: error }));
      });
    }
    for (const member of promotable(candidates, list)) {
      await membership.promote(member.id, signal).catch((error: unknown) => {
        if (NOT_NOW.test(errorText(error))) return;
        failures.push(
          new Error(`failed to promote learner member (${memberName(member)}): ${errorText(error)}`, { cause: error }),
        );
      });
    }
    throwIfAny(failures);
    // etcd tells nobody that a learner has caught up.
    return peerURL !== undefined || list.some(({ isLearner }) => isLearner) ? soon : undefined;
  };
}

async function readCandidates(kube: Kube, signal: AbortSignal): Promise<Candidate[]> {
  const [nodes, network, machines] = await Promise.all([
    controlPlaneNodes(kube, signal),
    getIfPresent(kube, NETWORKS, CLUSTER, { signal }),
    readMachines(kube, signal),
  ]);
  const family = preferredFamily(network);
  return Promise.all(
    nodes.map(async node => {
      const name = node.metadata?.name ?? '';
      const pod = await getIfPresent(kube, PODS, { namespace: ETCD_NAMESPACE, name: `etcd-${name}` }, { signal });
      return {
        name,
        address: preferredAddress(node, family),
        isDeleting: node.metadata?.deletionTimestamp !== undefined,
        machine:
          machines === undefined
            ? undefined
            : (machines.find(({ addresses }) => internalAddresses(node).some(a => addresses.includes(a))) ?? 'missing'),
        container: etcdContainer(pod),
      };
    }),
  );
}

/** An etcd that is not let in ends at once and is started again and again: that counts as running. */
function etcdContainer(pod: Pod | undefined): Candidate['container'] {
  const { state, ready = false } = pod?.status?.containerStatuses?.find(({ name }) => name === 'etcd') ?? {};
  return { running: state?.running !== undefined || state?.waiting?.reason === 'CrashLoopBackOff', ready };
}

interface MachineResource extends KubeObject {
  spec?: {
    readonly lifecycleHooks?: { readonly preDrain?: readonly { readonly name: string; readonly owner: string }[] };
  };
  status?: {
    readonly phase?: string;
    readonly addresses?: readonly { readonly type: string; readonly address: string }[];
  };
}

const MACHINES: Resource<MachineResource> = resource<MachineResource>(
  'machine.openshift.io/v1beta1',
  'Machine',
  'machines',
);
const MASTER_MACHINES = {
  namespace: 'openshift-machine-api',
  labelSelector: 'machine.openshift.io/cluster-api-machine-role=master',
};
const DELETION_HOOK = { name: 'EtcdQuorumOperator', owner: 'clusteroperator/etcd' };

/** The machines of the control plane; undefined where there is no machine API, or none that has ever made one. */
async function readMachines(
  kube: Kube,
  signal: AbortSignal,
): Promise<(Machine & { addresses: string[] })[] | undefined> {
  let items: MachineResource[];
  try {
    ({ items } = await listAll(kube, MACHINES, { ...MASTER_MACHINES, signal }));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
  if (!items.some(({ status }) => status?.phase === 'Running')) return undefined;
  return items.map(({ metadata, spec, status }) => ({
    isDeleting: metadata?.deletionTimestamp !== undefined,
    hasDeletionHook: (spec?.lifecycleHooks?.preDrain ?? []).some(
      ({ name, owner }) => name === DELETION_HOOK.name && owner === DELETION_HOOK.owner,
    ),
    addresses: (status?.addresses ?? [])
      .filter(({ type }) => type === 'InternalIP')
      .map(({ address }) => canonicalHost(address)),
  }));
}
