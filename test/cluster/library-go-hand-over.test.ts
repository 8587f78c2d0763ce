/**
 * library-go's own rotation controllers take over in the middle of a hand-over of ours, after each of its writes, and ours take back what
 * they left (spec 90, HO-4): nobody who has loaded only what was there at that moment refuses a leaf, no CA that is needed goes, nothing
 * is rotated needlessly.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import { BUNDLE_KEY } from '../../src/certrotation/bundle.ts';
import { loadSecret } from '../../src/certrotation/secret.ts';
import { nextKey, previousKey } from '../../src/hand-over/family.ts';
import { TAKEN_BACK, TURNED_ROUND } from '../../src/hand-over/names.ts';
import type { Receipt } from '../../src/hand-over/receipt.ts';
import { syncByReceipts } from '../../src/hand-over/sync.ts';
import { FORCED } from '../../src/inventory/forced.ts';
import { days } from '../../src/kube/duration.ts';
import { getIfPresent } from '../../src/kube/get.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, type KubeObject, type ObjectKey, type Resource, SECRETS } from '../../src/kube/resource.ts';
import type { Certificate } from '../../src/pki/certificate.ts';
import { readCertificates } from '../../src/pki/pem.ts';
import { isSignedBy } from '../../src/pki/signature.ts';
import { type Bench, chainOf, embeddedBench, expire, NOTHING, notBuilt } from './library-go-bench.ts';

/** One that signs for several clients, and one that signs for a server. */
const FAMILIES = ['KubeControllerManagerClient', 'LocalhostServing'];

for (const controller of FAMILIES) {
  describe(`library-go takes ${chainOf(controller).signer.name} over`, { skip: notBuilt }, () => {
    it('after each write of a hand-over', async t => {
      const world = await World.begin(controller, await embeddedBench(t));
      await expire(world.kube, world.signer);
      await world.distribute();
      await world.finish();
      t.diagnostic(await world.judgeEach(7));
    });

    it('after each write of one that is taken back', async t => {
      const world = await World.begin(controller, await embeddedBench(t));
      // What is due by its date begins anew; what was asked for does not.
      await world.annotate(world.signer, { [NOT_AFTER]: FORCED });
      await world.distribute();
      await world.annotate(nextKey(world.signer), { [TAKEN_BACK]: new Date().toISOString() });
      await world.settle();
      assert.ok((await world.secret(nextKey(world.signer))) === undefined, 'it is gone');
      t.diagnostic(await world.judgeEach(4));
    });

    it('after each write of one that is turned round', async t => {
      const world = await World.begin(controller, await embeddedBench(t));
      const [before] = await world.leaves();
      await expire(world.kube, world.signer);
      await world.distribute();
      await world.finish();
      world.moments.length = 0;
      await world.annotate(world.signer, { [TURNED_ROUND]: new Date().toISOString() });
      await world.finish();
      const [after] = await world.leaves();
      assert.ok(
        before?.authorityKeyId?.equals(after?.authorityKeyId ?? Buffer.of()),
        'the signer before it signs again',
      );
      t.diagnostic(await world.judgeEach(5));
    });

    it('and ours in the middle of its wait: leaves follow when everybody has loaded the signer, not before', async t => {
      const world = await World.begin(controller, await embeddedBench(t));
      const before = await world.leaves();
      await expire(world.kube, world.signer);
      assert.deepEqual((await world.theirs()).errors, []);
      await world.settle();
      assert.deepEqual(serials(await world.leaves()), serials(before), 'nobody has loaded it');
      await world.finish();
      assert.deepEqual(await world.theirs(), NOTHING);
    });
  });
}

/** What there was after a write of ours, and what processes had loaded then. */
interface Moment {
  readonly title: string;
  readonly objects: ReadonlyMap<string, KubeObject>;
  readonly loaded: Loaded;
}

interface Loaded {
  /** Those who verify accept what these have signed. */
  readonly bundle: readonly Certificate[];
  /** What the others show. */
  readonly leaves: readonly Certificate[];
}

/** The family of one signer, on both sides, with processes that load bundle and leaves when they are told to. */
class World {
  readonly kube: Kube;
  readonly theirs: Bench['theirs'];
  readonly signer: ObjectKey & { namespace: string };
  readonly #bundle: ObjectKey;
  readonly #bench: Bench;
  readonly #units: Bench['units'];
  readonly moments: Moment[] = [];
  #loaded: Loaded = { bundle: [], leaves: [] };
  #isRemembering = true;

  static async begin(controller: string, bench: Bench): Promise<World> {
    const world = new World(controller, bench);
    assert.deepEqual((await bench.theirs()).errors, []);
    await world.load();
    return world;
  }

  private constructor(controller: string, bench: Bench) {
    const { signer, bundle } = chainOf(controller);
    this.#bench = bench;
    this.kube = bench.kube;
    this.theirs = bench.theirs;
    this.signer = signer;
    this.#bundle = bundle;
    this.#units = bench.units.filter(unit => unit.signer.name === signer.name);
  }

  /** Everybody has the bundle and the leaves of this moment, and nothing else. */
  async load(): Promise<void> {
    this.#loaded = { bundle: await this.bundle(), leaves: await this.leaves() };
  }

  /** Passes of ours over all units until nothing changes. */
  async settle(): Promise<void> {
    const kube = this.#remembering(this.kube);
    const sync = syncByReceipts(this.#units, {
      dayMs: days(1),
      receipts: {
        of: async (_, ca) => [receipt('a server', includes(this.#loaded.bundle, ca))],
        shown: async (_, { current }) => [
          receipt(
            'a client',
            this.#loaded.leaves.every(leaf => isSignedBy(leaf, current.publicKey)),
          ),
        ],
      },
    });
    for (let before = ''; ; ) {
      for (const unit of this.#units) await sync(unit, { ...this.#bench.rotation, kube });
      const after = JSON.stringify([...(await this.#objects())]);
      if (after === before) return;
      before = after;
    }
  }

  /** Until the next signer waits for those who have not loaded it. */
  async distribute(): Promise<void> {
    await this.settle();
    assert.ok((await this.secret(nextKey(this.signer))) !== undefined, 'the next signer waits');
  }

  /** Everybody loads what there is, and the family becomes steady. */
  async finish(): Promise<void> {
    await this.load();
    await this.settle();
    await this.load();
    await this.settle();
    assert.ok((await this.secret(nextKey(this.signer))) === undefined, 'nothing is handed over any more');
    const current = loadSecret((await this.secret(this.signer)) as Secret).chain[0] as Certificate;
    for (const leaf of await this.leaves())
      assert.ok(isSignedBy(leaf, current.publicKey), 'every leaf is of the signer');
  }

  /** library-go takes over at each moment, and ours again after it. Says what it did. */
  async judgeEach(atLeast: number): Promise<string> {
    const moments = this.moments.splice(0);
    assert.ok(moments.length >= atLeast, `${moments.length} writes`);
    this.#isRemembering = false;
    const said: string[] = [];
    for (const moment of moments) {
      await this.#restore(moment);
      this.#loaded = moment.loaded;
      const kept = [nextKey(this.signer), previousKey(this.signer)];
      const before = await Promise.all(kept.map(key => this.secret(key)));
      const bundle = await this.bundle();
      const { writes, errors } = await this.theirs();
      said.push(`${moment.title}: ${writes.length} writes`);
      assert.deepEqual(errors, [], moment.title);
      const after = await Promise.all(kept.map(key => this.secret(key)));
      assert.deepEqual(after.map(versionOf), before.map(versionOf), 'it knows nothing of these');
      assert.deepEqual(await this.theirs(), NOTHING, `${moment.title}: nothing is left to do`);
      const now = await this.bundle();
      for (const ca of bundle) assert.ok(includes(now, ca), `${moment.title}: ${ca.subject.commonName} is gone`);
      await this.#assertAccepted(`${moment.title}, then library-go`);
      // Nobody has loaded anything since.
      await this.settle();
      await this.#assertAccepted(`${moment.title}, then library-go, then ours`);
      await this.finish();
      assert.deepEqual(await this.theirs(), NOTHING, `${moment.title}: at the end`);
    }
    return said.join('; ');
  }

  async #assertAccepted(when: string): Promise<void> {
    const bundle = await this.bundle();
    // Some processes show what they had loaded, others what there is now.
    for (const leaf of [...this.#loaded.leaves, ...(await this.leaves())]) {
      const who = `${leaf.subject.commonName} of ${leaf.issuer.commonName}`;
      const isBy = (ca: Certificate) => isSignedBy(leaf, ca.publicKey);
      assert.ok(this.#loaded.bundle.some(isBy), `${when}: ${who} is refused`);
      assert.ok(bundle.some(isBy), `${when}: the CA of ${who} is not in the bundle`);
    }
  }

  secret(key: ObjectKey): Promise<Secret | undefined> {
    return getIfPresent(this.kube, SECRETS, key);
  }

  async bundle(): Promise<Certificate[]> {
    const { data } = await this.kube.get(CONFIG_MAPS, this.#bundle);
    return readCertificates(data?.[BUNDLE_KEY] ?? '').certificates;
  }

  async leaves(): Promise<Certificate[]> {
    const secrets = await Promise.all(this.#units.map(({ target }) => this.kube.get(SECRETS, target)));
    return secrets.map(secret => loadSecret(secret).chain[0] as Certificate);
  }

  async annotate(key: ObjectKey, annotations: Record<string, string>): Promise<void> {
    const body = { metadata: { annotations } };
    await this.kube.patch(SECRETS, key, { type: 'merge', body });
  }

  /** What the family consists of, by kind and name; undefined where there is none. */
  get #places(): [Resource, ObjectKey][] {
    const secrets = [this.signer, nextKey(this.signer), previousKey(this.signer), ...this.#units.map(u => u.target)];
    return [
      ...secrets.map(({ namespace, name }): [Resource, ObjectKey] => [SECRETS, { namespace, name }]),
      [CONFIG_MAPS, this.#bundle],
    ];
  }

  async #objects(): Promise<Map<string, KubeObject>> {
    const found = new Map<string, KubeObject>();
    for (const [resource, key] of this.#places) {
      const object = await getIfPresent(this.kube, resource, key);
      if (object !== undefined) found.set(`${resource.kind}/${key.name}`, object);
    }
    return found;
  }

  async #restore({ objects }: Moment): Promise<void> {
    for (const [resource, key] of this.#places) {
      if ((await getIfPresent(this.kube, resource, key)) !== undefined) await this.kube.delete(resource, key);
      const object = objects.get(`${resource.kind}/${key.name}`);
      if (object === undefined) continue;
      const { namespace = '', name = '', annotations = {} } = object.metadata ?? {};
      await this.kube.create(resource, { ...object, metadata: { namespace, name, annotations } });
    }
  }

  /** An API whose every write is a moment at which somebody else may take over. */
  #remembering(kube: Kube): Kube {
    const writes = ['create', 'update', 'patch', 'delete'];
    return new Proxy(kube, {
      get: (target, name: keyof Kube) => {
        const method = target[name].bind(target) as (...args: unknown[]) => Promise<unknown>;
        if (!writes.includes(name)) return method;
        return async (resource: Resource, what: KubeObject & ObjectKey, ...rest: unknown[]) => {
          const result = await method(resource, what, ...rest);
          const title = `${name} ${what.metadata?.name ?? what.name}`;
          if (this.#isRemembering) this.moments.push({ title, objects: await this.#objects(), loaded: this.#loaded });
          return result;
        };
      },
    });
  }
}

function receipt(verifier: string, isLoaded: boolean): Receipt {
  return { verifier, node: 'master-0', kind: 'asked', isLoaded, evidence: 'said so', isWaived: false };
}

function includes(all: readonly Certificate[], { der }: Certificate): boolean {
  return all.some(other => other.der.equals(der));
}

function versionOf(object: KubeObject | undefined): string | undefined {
  return object?.metadata?.resourceVersion;
}

function serials(certificates: readonly Certificate[]): bigint[] {
  return certificates.map(({ serial }) => serial);
}
