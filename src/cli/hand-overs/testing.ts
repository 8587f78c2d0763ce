import type { TestContext } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { NOT_AFTER } from '../../certrotation/annotations.ts';
import { annotationsOf } from '../../certrotation/secret.ts';
import { NOW, type TestRotation, testRotation } from '../../certrotation/testing.ts';
import type { Receipt } from '../../hand-over/receipt.ts';
import { syncByReceipts } from '../../hand-over/sync.ts';
import { isWaived } from '../../hand-over/waiver.ts';
import { FORCED } from '../../inventory/forced.ts';
import type { HandOverItem } from '../../inventory/model.ts';
import { readObjects } from '../../inventory/read.ts';
import { clusterSource } from '../../inventory/source.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import type { Kube } from '../../kube/port.ts';
import { NAMESPACES, NODES, type ObjectKey, SECRETS } from '../../kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../../kube-apiserver/chains.ts';
import { hostnameSources } from '../../kube-apiserver/rotation/follow-hostnames.ts';
import { rotationUnits } from '../../kube-apiserver/rotation/units.ts';
import { type Asking, handOverItems } from './items.ts';

export const SIGNER = {
  namespace: 'openshift-kube-apiserver-operator',
  name: 'kube-apiserver-to-kubelet-signer',
} as const;
export const NEXT = { ...SIGNER, name: `${SIGNER.name}-next` };
export const LEAF = { namespace: 'openshift-kube-apiserver', name: 'kubelet-client' } as const;

/** One signer of kube-apiserver and its leaf, kept by its operator's own passes; who has loaded what is what the test says. */
export class HandOverWorld {
  readonly rotation: TestRotation;
  readonly kube: Kube;
  readonly #units = rotationUnits({
    dayMs: days(1),
    hostnames: hostnameSources(),
    keyAlgorithm: 'P-256',
    chains: KUBE_APISERVER_CHAINS.filter(({ signer }) => signer.name === SIGNER.name),
  });
  /** The nodes whose kubelet has not loaded what it is asked about. */
  readonly missing = new Set<string>();
  /** The nodes from which an older certificate is shown. */
  readonly showingOld = new Set<string>();
  readonly #sync = syncByReceipts(this.#units, {
    dayMs: days(1),
    receipts: { of: () => this.#receipts(), shown: () => this.#presenters() },
  });

  private constructor(kube: Kube, clock: VirtualClock) {
    this.kube = kube;
    this.rotation = testRotation(kube, clock);
  }

  static async create(t: TestContext, ...nodes: string[]): Promise<HandOverWorld> {
    const engine = await startEngine();
    t.after(() => engine.close());
    return HandOverWorld.on(engine.kube, new VirtualClock(NOW), ...nodes);
  }

  static async on(kube: Kube, clock: VirtualClock, ...nodes: string[]): Promise<HandOverWorld> {
    const world = new HandOverWorld(kube, clock);
    for (const name of [SIGNER.namespace, LEAF.namespace]) await world.kube.create(NAMESPACES, { metadata: { name } });
    for (const name of nodes) await world.kube.create(NODES, { metadata: { name } });
    world.#nodes = nodes;
    await world.settle();
    return world;
  }

  #nodes: readonly string[] = [];

  async #receipts(): Promise<Receipt[]> {
    const { items } = await this.kube.list(NODES);
    const waived = items.filter(isWaived).map(({ metadata }) => metadata?.name ?? '');
    return this.#nodes.map(node => {
      const isLoaded = !this.missing.has(node);
      const evidence = isLoaded ? 'named it in a handshake' : 'has not loaded it';
      return {
        verifier: `kubelet on ${node}`,
        node,
        kind: 'asked',
        isLoaded,
        evidence,
        isWaived: waived.includes(node),
      };
    });
  }

  async #presenters(): Promise<Receipt[]> {
    return (await this.#receipts()).map(receipt => {
      const isLoaded = !this.showingOld.has(receipt.node ?? '');
      const evidence = `shows a certificate of ${isLoaded ? 'the signer in use' : 'an older one'}`;
      return { ...receipt, verifier: `kube-apiserver on ${receipt.node} (kubelet-client)`, isLoaded, evidence };
    });
  }

  /** Passes until the last one changed nothing. */
  async settle(): Promise<void> {
    for (let versions = ''; ; ) {
      for (const unit of this.#units) await this.#sync(unit, this.rotation);
      const { items } = await this.kube.list(SECRETS);
      const now = items.map(({ metadata }) => metadata?.resourceVersion).join();
      if (now === versions) return;
      versions = now;
    }
  }

  async annotate(key: ObjectKey, annotations: Record<string, string>): Promise<void> {
    const secret = await this.kube.get(SECRETS, key);
    const metadata = { ...secret.metadata, annotations: { ...annotationsOf(secret), ...annotations } };
    await this.kube.update(SECRETS, { ...secret, metadata });
  }

  async force(): Promise<void> {
    await this.annotate(SIGNER, { [NOT_AFTER]: FORCED });
    await this.settle();
  }

  async item(asking?: Asking): Promise<HandOverItem> {
    const source = clusterSource(this.kube);
    const objects = await readObjects(source, { parts: ['hand-overs'] });
    const [item] = await handOverItems(objects, source, this.rotation.clock.now(), asking);
    if (item === undefined) throw new RangeError('there is one signer');
    return item;
  }
}
