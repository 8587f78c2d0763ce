import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../controller/aggregate-error.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { applyConfigMap } from '../kube/apply.ts';
import { seconds } from '../kube/duration.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import { canonicalHost } from '../pki/hosts.ts';
import type { StaticPodOperator } from '../staticpod/operator.ts';
import { isSameData } from './aggregate.ts';
import type { QuorumCheck } from './cert-signer/options.ts';
import { controlPlaneNodes } from './cert-signer/state.ts';
import { foundingEndpoints, isFoundingOnPlan } from './founding.ts';
import { MEMBERSHIP_MAX_AGE_MS } from './membership.ts';
import { BOOTSTRAP_IP, BOOTSTRAP_MEMBER, ENDPOINTS, ETCD_NAMESPACE, FOUNDING } from './names.ts';
import { bootstrapStatusOf, isBootstrapComplete, readInstallerBootstrap } from './quorum/bootstrap.ts';
import { type EtcdMembers, hostOf, type Member } from './quorum/member.ts';
import { hasEverRun, isRevisionStable } from './quorum/rollout.ts';
import { CLUSTER, ETCDS } from './resources.ts';

export interface EndpointsOptions {
  readonly kube: Kube;
  readonly members: EtcdMembers;
  readonly quorum: QuorumCheck;
  readonly operator: StaticPodOperator;
}

const CONDITION = 'EtcdEndpointsDegraded';
const LOOK_AGAIN_MS = seconds(2);

/** Writes down where the voting members are, for the API servers and for ourselves (spec 40, Q-11). */
export function endpointsReconcile(options: EndpointsOptions): Reconcile {
  const { operator } = options;
  return async (_key, { events, clock, signal }) => {
    try {
      await syncEndpoints(options, { events, clock, signal });
    } catch (error) {
      const message = errorText(error);
      const condition = { type: CONDITION, status: 'True', reason: 'ErrorUpdatingEtcdEndpoints', message } as const;
      await operator.setConditions([condition], signal).catch((writeError: unknown) => {
        events.event('Warning', 'EtcdEndpointsErrorUpdatingStatus', errorText(writeError));
      });
      throw error;
    }
    await operator.setConditions([{ type: CONDITION, status: 'False', reason: 'EtcdEndpointsUpdated' }], signal);
    // etcd tells nobody that its membership has changed; that happens while nodes come up.
    const { status = {} } = await operator.read(signal);
    return isRevisionStable(status) ? undefined : { againAt: new Date(clock.now().getTime() + LOOK_AGAIN_MS) };
  };
}

async function syncEndpoints(
  { kube, members, quorum }: EndpointsOptions,
  context: Pick<Parameters<typeof applyConfigMap>[0], 'events' | 'clock' | 'signal'>,
): Promise<void> {
  const { signal } = context;
  const [existing, bootstrap, operator] = await Promise.all([
    getIfPresent(kube, CONFIG_MAPS, { namespace: ETCD_NAMESPACE, name: ENDPOINTS }, { signal }),
    readInstallerBootstrap(kube, signal),
    getIfPresent(kube, ETCDS, CLUSTER, { signal }),
  ]);
  const { status = {} } = operator ?? {};
  if (bootstrap === undefined && !hasEverRun(status)) {
    const founding = foundingEndpoints(await controlPlaneNodes(kube, signal), status, existing);
    if (founding !== undefined) await applyConfigMap({ kube, ...context }, founding);
    return;
  }
  const list = await members.health({ maxAgeMs: MEMBERSHIP_MAX_AGE_MS, signal }).catch((error: unknown) => {
    throw new Error(`failed to get member list: ${errorText(error)}`, { cause: error });
  });
  const all = list.map(({ member }) => member);
  if (isFoundingOnPlan(existing, all, status)) return;
  const names = all.map(({ name }) => name);
  const isComplete = isBootstrapComplete(bootstrapStatusOf(bootstrap), names, status);
  const required = requiredEndpoints(all, existing, isComplete);
  if (!changesEndpoints(existing, required)) return;
  const { safe, error } = await quorum({ signal });
  if (!safe) {
    throw new Error(
      error === undefined
        ? 'skipping EtcdEndpointsController reconciliation due to insufficient quorum'
        : `EtcdEndpointsController can't evaluate whether quorum is safe: ${error}`,
    );
  }
  await applyConfigMap({ kube, ...context }, required);
}

/** The ConfigMap as it should be. The address of the installer's member stays as long as it may be needed. */
export function requiredEndpoints(
  members: readonly Member[],
  existing: ConfigMap | undefined,
  isInstallationComplete: boolean,
): ConfigMap {
  // A learner answers nothing but reads of its own copy: clients must not be sent there.
  const voters = members.filter(({ isLearner, name }) => !isLearner && name !== BOOTSTRAP_MEMBER);
  const data = Object.fromEntries(voters.map(member => [BigInt(member.id).toString(16), addressOf(member)]));
  if (voters.length === 0) throw new Error('no etcd members are present');
  const bootstrapIP = existing?.metadata?.annotations?.[BOOTSTRAP_IP];
  const key = isInstallationComplete ? `${BOOTSTRAP_IP}-` : BOOTSTRAP_IP;
  const wasFounding = existing?.metadata?.annotations?.[FOUNDING] !== undefined;
  const annotations = {
    ...(bootstrapIP === undefined ? {} : { [key]: bootstrapIP }),
    ...(wasFounding ? { [`${FOUNDING}-`]: '' } : {}),
  };
  return { metadata: { namespace: ETCD_NAMESPACE, name: ENDPOINTS, annotations }, data };
}

function changesEndpoints(existing: ConfigMap | undefined, required: ConfigMap): boolean {
  if (existing === undefined || !isSameData(existing.data, required.data)) return true;
  return Object.keys(required.metadata?.annotations ?? {}).some(key => key.endsWith('-'));
}

/** A member always has a peer URL, also before it has started. */
function addressOf({ peerURLs, id }: Member): string {
  const address = hostOf(peerURLs[0] ?? '');
  if (address === '')
    throw new Error(`failed to parse address: member ${id} has the peer URL ${JSON.stringify(peerURLs[0])}`);
  return canonicalHost(address);
}
