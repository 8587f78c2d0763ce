import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { isSameData } from '../etcd/aggregate.ts';
import { type SyncResult, syncCertificates } from '../etcd/cert-signer/sync.ts';
import { noExpirationMetrics } from '../etcd/metrics.ts';
import { ALL_BUNDLES, ALL_CERTS, ETCD_NAMESPACE } from '../etcd/names.ts';
import { type Profile, profile416, profileLater } from '../etcd/profile.ts';
import { CLUSTER, ETCDS } from '../etcd/resources.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import type { StaticPodOperatorResource } from '../staticpod/operator.ts';
import { copyName } from '../staticpod/revision/number.ts';
import type { ObjectRef } from '../trust/object.ts';
import type { PlanWorld } from './world.ts';

/** The cert signer of etcd in a simulated cluster, and the revisions that its bundles and leaves travel with. */
export class EtcdPlan {
  readonly #world: PlanWorld;
  readonly #profile: Profile;

  private constructor(world: PlanWorld, profile: Profile) {
    this.#world = world;
    this.#profile = profile;
  }

  /** Undefined where the cluster has no etcd operator, or it does not look as if it ever ran. */
  static async create(
    world: PlanWorld,
    operator: StaticPodOperatorResource | undefined,
    nodes: readonly Node[],
    dayMs: number,
  ): Promise<EtcdPlan | undefined> {
    const hasSigner = await world.secret({ namespace: ETCD_NAMESPACE, name: 'etcd-signer' });
    if (operator === undefined || hasSigner === undefined || nodes.length === 0) return undefined;
    const isLater = (await world.configMap({ namespace: ETCD_NAMESPACE, name: ALL_BUNDLES })) !== undefined;
    const plan = new EtcdPlan(world, isLater ? profileLater(dayMs) : profile416(dayMs));
    await world.seed(ETCDS, [settled(operator)]);
    return plan;
  }

  /** One pass; gives when the next rule is due, and which of the gathered objects changed. */
  async pass(): Promise<{ until: Date | undefined; changed: ObjectRef[] }> {
    const before = await this.#gathered();
    const { until } = await this.#sync();
    const after = await this.#gathered();
    const changed: ObjectRef[] = [];
    if (!isSameData(before.bundles, after.bundles)) {
      changed.push({ kind: 'ConfigMap', namespace: ETCD_NAMESPACE, name: ALL_BUNDLES });
    }
    if (!isSameData(before.certs, after.certs)) {
      changed.push({ kind: 'Secret', namespace: ETCD_NAMESPACE, name: ALL_CERTS });
    }
    return { until, changed };
  }

  /** What the revision and installer controllers do: the copies under the next number, and every node at it. */
  async rollOut(): Promise<number> {
    const operator = await this.#world.kube.get(ETCDS, CLUSTER);
    const revision = (operator.status?.latestAvailableRevision ?? 0) + 1;
    for (const { name } of this.#profile.revisioned.configMaps) {
      const original = await this.#world.configMap({ namespace: ETCD_NAMESPACE, name });
      if (original === undefined) continue;
      const metadata = { namespace: ETCD_NAMESPACE, name: copyName(name, revision) };
      await this.#world.put(CONFIG_MAPS, { metadata, data: original.data ?? {} });
    }
    const certs = await this.#world.secret({ namespace: ETCD_NAMESPACE, name: ALL_CERTS });
    if (certs !== undefined) {
      const metadata = { namespace: ETCD_NAMESPACE, name: copyName(ALL_CERTS, revision) };
      await this.#world.put(SECRETS, { metadata, type: certs.type ?? 'Opaque', data: certs.data ?? {} });
    }
    const nodeStatuses = (operator.status?.nodeStatuses ?? []).map(({ nodeName }) => ({
      nodeName,
      currentRevision: revision,
    }));
    const status = { ...operator.status, latestAvailableRevision: revision, nodeStatuses };
    await this.#world.kube.updateStatus(ETCDS, { ...operator, status });
    return revision;
  }

  async #gathered() {
    const bundles = await this.#world.configMap({ namespace: ETCD_NAMESPACE, name: ALL_BUNDLES });
    const certs = await this.#world.secret({ namespace: ETCD_NAMESPACE, name: ALL_CERTS });
    return { bundles: bundles?.data, certs: certs?.data };
  }

  /** Pauses inside a pass end at once: nobody else writes here. */
  async #sync(): Promise<SyncResult> {
    const { kube, clock, rotation } = this.#world;
    const running = syncCertificates({
      kube,
      clock,
      keys: rotation.keys,
      keyAlgorithm: 'P-256',
      events: rotation.events,
      profile: this.#profile,
      metrics: noExpirationMetrics,
      quorum: async () => ({ safe: true }),
    });
    let isOver = false;
    const over = () => (isOver = true);
    running.then(over, over);
    while (!isOver) {
      const next = clock.nextWait();
      if (next === undefined) await new Promise(resolve => setImmediate(resolve));
      else await clock.advanceTo(next);
    }
    return running;
  }
}

/** As if a roll-out that is under way had ended: what comes after it is what a plan is about. */
function settled(operator: StaticPodOperatorResource): StaticPodOperatorResource {
  const { latestAvailableRevision = 0, nodeStatuses = [] } = operator.status ?? {};
  const atLatest = nodeStatuses.map(({ nodeName }) => ({ nodeName, currentRevision: latestAvailableRevision }));
  return { ...operator, status: { ...operator.status, nodeStatuses: atLatest } };
}
