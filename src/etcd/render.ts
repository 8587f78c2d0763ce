import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { liveObjects } from '../certrotation/ensure.ts';
import { ObjectLocks } from '../certrotation/locks.ts';
import { ensureSigner } from '../certrotation/signer.ts';
import type { Clock } from '../kube/clock.ts';
import { eventsTo } from '../kube/events.ts';
import { MemoryKube } from '../kube/memory.ts';
import { CONFIG_MAPS, NODES, SECRETS } from '../kube/resource.ts';
import { syncConfigMap, syncSecret } from '../kube/sync-copy.ts';
import type { KeyAlgorithm, Keys } from '../pki/keys.ts';
import { syncCertificates } from './cert-signer/sync.ts';
import { wantedSigner } from './certificates.ts';
import { noExpirationMetrics } from './metrics.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE } from './names.ts';
import { FAMILIES, type Profile } from './profile.ts';
import { copyRules } from './resource-sync.ts';

export interface RenderOptions {
  readonly profile: Profile;
  readonly nodes: readonly { readonly name: string; readonly addresses: readonly string[] }[];
  readonly clock: Clock;
  readonly keys: Keys;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
}

export interface Rendered {
  readonly secrets: readonly Secret[];
  /** ConfigMaps that hold CA bundles. */
  readonly bundles: readonly ConfigMap[];
}

/** What a new cluster starts with: one pass of the controllers over an API in memory (spec 40, B-1 and N-7). */
export async function renderCertificates(options: RenderOptions): Promise<Rendered> {
  const { profile, clock, keys, keyAlgorithm } = options;
  const kube = new MemoryKube();
  const events = eventsTo('render', () => {});
  for (const { name, addresses } of options.nodes) {
    await kube.create(NODES, {
      metadata: { name, labels: { 'node-role.kubernetes.io/master': '' } },
      status: { addresses: addresses.map(address => ({ type: 'InternalIP', address })) },
    });
  }
  const rotation = { kube, objects: liveObjects(kube), clock, keys, events, locks: new ObjectLocks() };
  if (profile.handOver === 'manual') {
    // Nobody else ever makes the signers of such a cluster.
    for (const family of FAMILIES) {
      const config = wantedSigner(family, { lifetimes: profile.lifetimes, keyAlgorithm });
      await ensureSigner({ ...config, namespace: CONFIG_NAMESPACE }, rotation);
    }
  }
  const quorum = async () => ({ safe: true });
  await syncCertificates({
    kube,
    clock,
    keys,
    keyAlgorithm,
    events,
    profile,
    quorum,
    metrics: noExpirationMetrics,
    isGateOff: true,
  });
  for (const { kind, source, destination, onlyIfSourceExists } of copyRules(profile)) {
    // Copies for the operator's own pod are made when it runs.
    const isRendered = [ETCD_NAMESPACE, CONFIG_NAMESPACE].includes(destination.namespace);
    if (!isRendered || !onlyIfSourceExists) continue;
    await (kind === 'Secret' ? syncSecret : syncConfigMap)({ kube, events, clock }, source, destination);
  }
  const [secrets, bundles] = await Promise.all([kube.list(SECRETS), kube.list(CONFIG_MAPS)]);
  return { secrets: secrets.items, bundles: bundles.items };
}
