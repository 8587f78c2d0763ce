import { errorText } from '../../controller/aggregate-error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { NAMESPACES, NODES } from '../../kube/resource.ts';
import type { Disruption, Permission } from '../../staticpod/config.ts';
import { INFRASTRUCTURES } from '../../staticpod/topology.ts';
import { controlPlaneNodes } from '../cert-signer/state.ts';
import { ETCD_NAMESPACE } from '../names.ts';
import { internalAddresses } from '../node-address.ts';
import { CLUSTER, ETCDS } from '../resources.ts';
import { bootstrapStatusOf, readInstallerBootstrap } from './bootstrap.ts';
import {
  decideQuorum,
  decideWithoutMembers,
  type Known,
  type QuorumAnswer,
  type QuorumQuestion,
  type QuorumRule,
} from './decide.ts';
import { decideRestart } from './guard.ts';
import type { EtcdMembers, HealthRequest, MemberHealth } from './member.ts';
import { hasEverRun } from './rollout.ts';
import { type ScalingStrategy, scalingStrategy } from './strategy.ts';

export interface QuorumReaderOptions {
  readonly kube: Kube;
  readonly members: EtcdMembers;
}

/** Gathers what the decisions about quorum rest on. */
export class QuorumReader {
  readonly #kube: Kube;
  readonly #members: EtcdMembers;

  constructor({ kube, members }: QuorumReaderOptions) {
    this.#kube = kube;
    this.#members = members;
  }

  /** Whether the cluster survives the loss of a member, by this rule. Never rejects: what is not known is not safe. */
  async check(rule: QuorumRule, request: HealthRequest = {}): Promise<QuorumAnswer> {
    try {
      const question = await this.#question(request.signal);
      const early = decideWithoutMembers(question, rule);
      return early ?? decideQuorum({ ...question, health: await this.#health(request) }, rule);
    } catch (error) {
      return {
        safe: false,
        error: `CheckSafeToScaleCluster failed to read the state of the cluster: ${errorText(error)}`,
      };
    }
  }

  /** Whether the member on a node may be restarted. */
  async mayRestart({ nodeName, isOperandReady }: Pick<Disruption, 'nodeName' | 'isOperandReady'>): Promise<Permission> {
    try {
      const node = await getIfPresent(this.#kube, NODES, { name: nodeName });
      const { rollout, strategy } = await this.#question(undefined);
      // Nobody can be asked, and asking takes its time.
      if (!hasEverRun(rollout)) return { allowed: true };
      // A restart is decided on what is true now, whatever others have cached.
      const health = await this.#health({ maxAgeMs: 0 });
      const nodeAddresses = node === undefined ? [] : internalAddresses(node);
      return decideRestart({
        nodeName,
        nodeAddresses,
        strategy,
        health,
        hasEverRun: true,
        isOperandReady,
      });
    } catch (error) {
      return { allowed: false, reason: `the state of the cluster is not known: ${errorText(error)}` };
    }
  }

  async strategy(signal?: AbortSignal): Promise<ScalingStrategy> {
    const [operator, namespace, controlPlaneTopology] = await Promise.all([
      getIfPresent(this.#kube, ETCDS, CLUSTER, { signal }),
      this.#kube.get(NAMESPACES, { name: ETCD_NAMESPACE }, { signal }),
      this.#topology(signal),
    ]);
    return scalingStrategy({
      controlPlaneTopology,
      namespaceAnnotations: namespace.metadata?.annotations ?? {},
      unsupportedConfigOverrides: operator?.spec?.unsupportedConfigOverrides,
    });
  }

  /** Whether the control plane has more than one node; undefined: the cluster does not say yet. */
  async isSeveral(signal?: AbortSignal): Promise<boolean | undefined> {
    const topology = await this.#topology(signal);
    return topology === '' ? undefined : topology !== 'SingleReplica';
  }

  async #question(signal: AbortSignal | undefined): Promise<Omit<QuorumQuestion, 'health'>> {
    const [operator, bootstrap, strategy] = await Promise.all([
      getIfPresent(this.#kube, ETCDS, CLUSTER, { signal }),
      readInstallerBootstrap(this.#kube, signal),
      known(this.strategy(signal)),
    ]);
    return { bootstrap: bootstrapStatusOf(bootstrap), rollout: operator?.status ?? {}, strategy };
  }

  #health(request: HealthRequest): Promise<Known<readonly MemberHealth[]>> {
    return known(this.#members.health(request));
  }

  /** A cluster that does not describe itself, as any other than OpenShift, is what its nodes are. */
  async #topology(signal: AbortSignal | undefined): Promise<string> {
    const infrastructure = await getIfPresent(this.#kube, INFRASTRUCTURES, CLUSTER, { signal });
    if (infrastructure !== undefined) return infrastructure.status?.controlPlaneTopology ?? '';
    const { length } = await controlPlaneNodes(this.#kube, signal);
    return length === 0 ? '' : length === 1 ? 'SingleReplica' : 'HighlyAvailable';
  }
}

async function known<T>(asked: Promise<T>): Promise<Known<T>> {
  try {
    return { value: await asked };
  } catch (error) {
    return { error: errorText(error) };
  }
}
