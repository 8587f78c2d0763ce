import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOT_AFTER, REQUESTED_AT } from '../certrotation/annotations.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import type { RotationUnit } from '../certrotation/config.ts';
import type { Rotation } from '../certrotation/ensure.ts';
import { ObjectLocks } from '../certrotation/locks.ts';
import { annotationsOf, loadSecret } from '../certrotation/secret.ts';
import { at, NOW, testRotation, UNIT } from '../certrotation/testing.ts';
import { type SyncResult, syncUnit } from '../certrotation/unit.ts';
import { days, seconds } from '../kube/duration.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import type { Certificate } from '../pki/certificate.ts';
import { encodeCertificates, readCertificates } from '../pki/pem.ts';
import { caDigest } from '../trust/receipts.ts';
import { PRESENTERS, RECEIPTS, SHOWN, TAKEN_BACK, TOOK, TURNED_ROUND } from './names.ts';
import { notedReceipts, type Receipt, type ShownOf } from './receipt.ts';
import { syncByReceipts } from './sync.ts';

const OTHER: RotationUnit = { ...UNIT, name: 'Other', target: { ...UNIT.target, name: 'other' } };

/** Two units that share a signer, and verifiers that load the bundle when they are told to. */
class World {
  readonly rotation = testRotation();
  readonly loaded = new Map<string, Set<string>>([
    ['a', new Set()],
    ['b', new Set()],
  ]);
  readonly waived = new Set<string>();
  asked = 0;
  readonly #sync = syncByReceipts([UNIT, OTHER], {
    dayMs: days(1),
    receipts: { of: async (_, ca) => this.#receipts(ca), shown: async (_, family) => this.#presenters(family) },
  });
  /** Whom each presenter shows a leaf of, by the digest of the CA. */
  readonly shows = new Map<string, string>();
  looked = 0;

  #presenters({ retiring }: ShownOf): Receipt[] {
    this.looked++;
    const older = new Set(retiring.map(caDigest));
    return [...this.shows].map(([name, issuer]) => ({
      verifier: name,
      node: name,
      kind: 'reported',
      isLoaded: !older.has(issuer),
      evidence: 'was seen',
      isWaived: this.waived.has(name),
    }));
  }

  #receipts(ca: Certificate): Receipt[] {
    this.asked++;
    return [...this.loaded].map(([name, cas]) => ({
      verifier: name,
      node: name,
      kind: 'asked',
      isLoaded: cas.has(caDigest(ca)),
      evidence: 'said so',
      isWaived: this.waived.has(name),
    }));
  }

  /** Passes over both units until nothing changes. */
  async settle(): Promise<void> {
    for (let versions = ''; ; ) {
      for (const unit of [UNIT, OTHER]) {
        const result = await this.#sync(unit, this.rotation);
        assert.equal(result.outcome, 'done');
      }
      const { items: secrets } = await this.rotation.kube.list(SECRETS);
      const { items: configMaps } = await this.rotation.kube.list(CONFIG_MAPS);
      const now = [...secrets, ...configMaps].map(({ metadata }) => metadata?.resourceVersion).join();
      if (now === versions) return;
      versions = now;
    }
  }

  async pass(): Promise<SyncResult & { outcome: 'done' }> {
    const result = await this.#sync(UNIT, this.rotation);
    assert.ok(result.outcome === 'done');
    return result;
  }

  passOf(rotation: Rotation): Promise<SyncResult> {
    return this.#sync(UNIT, rotation);
  }

  async removeFromBundle(gone: Certificate): Promise<void> {
    const { kube } = this.rotation;
    const bundle = await kube.get(CONFIG_MAPS, { namespace: 'ns', name: 'bundle' });
    const kept = (await this.bundle()).filter(({ der }) => !der.equals(gone.der));
    await kube.update(CONFIG_MAPS, { ...bundle, data: { ...bundle.data, [BUNDLE_KEY]: encodeCertificates(kept) } });
  }

  async load(...names: string[]): Promise<void> {
    const cas = new Set((await this.bundle()).map(caDigest));
    for (const name of names) this.loaded.set(name, cas);
  }

  async bundle(): Promise<Certificate[]> {
    const { data } = await this.rotation.kube.get(CONFIG_MAPS, { namespace: 'ns', name: 'bundle' });
    return readCertificates(data?.[BUNDLE_KEY] ?? '').certificates;
  }

  secret(name: string) {
    return getIfPresent(this.rotation.kube, SECRETS, { namespace: 'ns', name });
  }

  async certificate(name: string): Promise<Certificate> {
    const secret = await this.secret(name);
    assert.ok(secret, name);
    return loadSecret(secret).chain[0] as Certificate;
  }

  async issuers(): Promise<string[]> {
    return Promise.all(['target', 'other'].map(async name => (await this.certificate(name)).issuer.commonName));
  }

  async annotate(name: string, annotations: Record<string, string>): Promise<void> {
    const secret = await this.rotation.kube.get(SECRETS, { namespace: 'ns', name });
    const metadata = { ...secret.metadata, annotations: { ...annotationsOf(secret), ...annotations } };
    await this.rotation.kube.update(SECRETS, { ...secret, metadata });
  }

  reasons(): string[] {
    return this.rotation.events.events.map(({ reason }) => reason);
  }
}

async function steady(): Promise<World> {
  const world = new World();
  await world.settle();
  await world.load('a', 'b');
  await world.rotation.clock.advanceTo(at(60));
  world.rotation.events.events.length = 0;
  world.asked = 0;
  return world;
}

test('at rest nobody is asked, and nothing is written', async () => {
  const world = await steady();
  await world.settle();
  assert.equal(world.asked, 0);
  assert.deepEqual(world.reasons(), []);
});

test('a signer that is due signs on until everybody has loaded the next one, and leaves follow at once', async () => {
  const world = await steady();
  const before = await world.certificate('signer');
  const leaves = await world.issuers();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  const next = await world.certificate('signer-next');
  assert.ok((await world.certificate('signer')).der.equals(before.der));
  assert.deepEqual(await world.issuers(), leaves);
  assert.ok((await world.bundle()).some(({ der }) => der.equals(next.der)));
  assert.notEqual(next.subject.commonName, before.subject.commonName);
  const said = JSON.parse(annotationsOf((await world.secret('signer-next'))!)[RECEIPTS] ?? '') as Receipt[];
  assert.deepEqual(
    said.map(({ verifier, isLoaded }) => `${verifier} ${isLoaded}`),
    ['a false', 'b false'],
  );

  await world.load('a');
  await world.rotation.clock.advanceTo(at(70));
  await world.settle();
  assert.ok((await world.certificate('signer')).der.equals(before.der), 'b has not loaded it');

  await world.load('b');
  await world.rotation.clock.advanceTo(at(80));
  await world.settle();
  assert.ok((await world.certificate('signer')).der.equals(next.der));
  assert.deepEqual(await world.issuers(), [next.subject.commonName, next.subject.commonName]);
  assert.equal(await world.secret('signer-next'), undefined);
  assert.equal(annotationsOf((await world.secret('signer'))!)[TOOK], '20s');
  assert.equal((await world.bundle()).length, 2, 'the one before stays until it ends');
  assert.deepEqual(
    world.reasons().filter(reason => /Required|InUse/.test(reason)),
    [
      'SignerUpdateRequired',
      'CABundleUpdateRequired',
      'SignerInUseChanged',
      'TargetUpdateRequired',
      'TargetUpdateRequired',
    ],
  );
});

test('a second request in the middle starts no second hand-over; one while leaves follow comes after them', async () => {
  const world = await steady();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  const next = await world.certificate('signer-next');
  await world.annotate('signer', { [NOT_AFTER]: 'again' });
  await world.settle();
  assert.ok((await world.certificate('signer-next')).der.equals(next.der));
  await world.load('a', 'b');
  await world.settle();
  assert.ok((await world.certificate('signer')).der.equals(next.der));
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  assert.deepEqual(await world.issuers(), [next.subject.commonName, next.subject.commonName]);
  assert.ok(!(await world.certificate('signer-next')).der.equals(next.der));
});

test('taken back, the next signer leaves the bundle and the cluster, and comes again only when it is due again', async () => {
  const world = await steady();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  await world.annotate('signer-next', { [TAKEN_BACK]: NOW.toISOString() });
  await world.settle();
  assert.equal(await world.secret('signer-next'), undefined);
  assert.equal((await world.bundle()).length, 1);
  const { notAfter } = await world.certificate('signer');
  const noted = annotationsOf((await world.secret('signer'))!)[NOT_AFTER] ?? '';
  assert.equal(new Date(noted).getTime(), notAfter.getTime(), 'the request is gone');
});

test('turned round, the signer before signs again, and leaves go back to it', async () => {
  const world = await steady();
  const before = await world.certificate('signer');
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  await world.load('a', 'b');
  await world.settle();
  const between = await world.certificate('signer');
  assert.ok((await world.certificate('signer-previous')).der.equals(before.der));
  await world.annotate('signer', { [TURNED_ROUND]: NOW.toISOString() });
  await world.settle();
  assert.ok((await world.certificate('signer')).der.equals(before.der));
  assert.deepEqual(await world.issuers(), [before.subject.commonName, before.subject.commonName]);
  assert.equal(annotationsOf((await world.secret('signer'))!)[TURNED_ROUND], undefined);
  assert.ok((await world.certificate('signer-previous')).der.equals(between.der));
  assert.equal((await world.bundle()).length, 2);
});

test('turned round and then taken back, the one that signed before stays trusted', async () => {
  const world = await steady();
  const before = await world.certificate('signer');
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  await world.load('a', 'b');
  await world.settle();
  world.loaded.set('a', new Set());
  await world.annotate('signer', { [TURNED_ROUND]: NOW.toISOString() });
  await world.settle();
  assert.ok((await world.certificate('signer-next')).der.equals(before.der));
  await world.annotate('signer-next', { [TAKEN_BACK]: NOW.toISOString() });
  await world.pass();
  assert.equal(await world.secret('signer-next'), undefined);
  assert.ok((await world.bundle()).some(({ der }) => der.equals(before.der)));
});

test('the pair before is kept no longer than its CA is trusted', async () => {
  const world = await steady();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  await world.load('a', 'b');
  await world.settle();
  assert.ok(await world.secret('signer-previous'));
  const configMap = await world.rotation.kube.get(CONFIG_MAPS, { namespace: 'ns', name: 'bundle' });
  const { chain } = loadSecret((await world.secret('signer'))!);
  await world.rotation.kube.update(CONFIG_MAPS, { ...configMap, data: { [BUNDLE_KEY]: encodeCertificates(chain) } });
  await world.settle();
  assert.equal(await world.secret('signer-previous'), undefined);
});

test('stopped between the promotion and the end of it, the next pass only clears away', async () => {
  const world = await steady();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  const copy = await world.secret('signer-next');
  await world.load('a', 'b');
  await world.settle();
  const promoted = await world.certificate('signer');
  const { resourceVersion: _, uid: _uid, ...metadata } = copy?.metadata ?? {};
  await world.rotation.kube.create(SECRETS, { ...copy, metadata });
  await world.settle();
  assert.equal(await world.secret('signer-next'), undefined);
  assert.ok((await world.certificate('signer')).der.equals(promoted.der));
  assert.ok(
    (await world.bundle()).some(({ der }) => der.equals(promoted.der)),
    'it stays in the bundle',
  );
});

test('a verifier that is waived holds nothing up', async () => {
  const world = await steady();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  const next = await world.certificate('signer-next');
  await world.load('a');
  world.waived.add('b');
  await world.settle();
  assert.ok((await world.certificate('signer')).der.equals(next.der));
});

test('when waiting longer would harm everybody it goes on, and says whom it leaves behind', async () => {
  const world = await steady();
  await world.rotation.clock.advanceTo(new Date(NOW.getTime() + days(15) + seconds(61)));
  await world.settle();
  const next = await world.certificate('signer-next');
  await world.load('a');
  await world.rotation.clock.advanceTo(new Date(NOW.getTime() + days(28)));
  await world.settle();
  assert.ok((await world.certificate('signer-next')).der.equals(next.der), 'b is worth waiting for');
  await world.rotation.clock.advanceTo(new Date(NOW.getTime() + days(29)));
  await world.settle();
  assert.ok((await world.certificate('signer')).der.equals(next.der));
  const [event] = world.rotation.events.events.filter(({ reason }) => reason === 'HandOverLeavesBehind');
  assert.match(event?.message ?? '', /^"signer" in "ns" changes without b \(said so\); they accept it again/);
});

test('a signer that nobody can use is replaced at once, as upstream does', async () => {
  const world = await steady();
  await world.rotation.kube.delete(SECRETS, { namespace: 'ns', name: 'signer' });
  await world.settle();
  const signer = await world.certificate('signer');
  assert.equal(await world.secret('signer-next'), undefined);
  assert.ok((await world.bundle()).some(({ der }) => der.equals(signer.der)));
});

test('taken over in the middle of a wait of upstream: leaves follow when everybody has loaded what is current', async () => {
  const world = await steady();
  const leaves = await world.issuers();
  // As upstream leaves it: a signer made anew in place, in the bundle, that has signed nothing.
  await world.rotation.kube.delete(SECRETS, { namespace: 'ns', name: 'signer' });
  await world.settle();
  assert.deepEqual(await world.issuers(), leaves, 'not before they have it');
  await world.load('a', 'b');
  await world.settle();
  const { subject } = await world.certificate('signer');
  assert.deepEqual(await world.issuers(), [subject.commonName, subject.commonName]);
});

test('replaced by somebody else while a next one waits: that goes, and leaves stay until everybody has what is current', async () => {
  const world = await steady();
  const leaves = await world.issuers();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  const next = await world.certificate('signer-next');
  // As upstream does it in place.
  await syncUnit(UNIT, world.rotation);
  await world.settle();
  assert.equal(await world.secret('signer-next'), undefined);
  assert.deepEqual(await world.issuers(), leaves, 'not before they have it');
  assert.ok(
    (await world.bundle()).some(({ der }) => der.equals(next.der)),
    'nobody can tell what it has signed meanwhile',
  );
  await world.load('a', 'b');
  await world.settle();
  const { subject } = await world.certificate('signer');
  assert.deepEqual(await world.issuers(), [subject.commonName, subject.commonName]);
});

test('a lost signer: the next one takes its place, and what is there stays until everybody has it', async () => {
  const world = await steady();
  const leaves = await world.issuers();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  const next = await world.secret('signer-next');
  await world.rotation.kube.delete(SECRETS, { namespace: 'ns', name: 'signer' });
  await world.settle();
  assert.ok((await world.certificate('signer')).der.equals(loadSecret(next!).chain[0]!.der));
  // Stopped before it was cleared away.
  const { resourceVersion: _, uid: _uid, ...metadata } = next?.metadata ?? {};
  await world.rotation.kube.create(SECRETS, { ...next, metadata });
  await world.settle();
  assert.equal(await world.secret('signer-next'), undefined);
  assert.deepEqual(await world.issuers(), leaves);
});

test('taken back after it has signed and was replaced itself, the CA stays in the bundle', async () => {
  const world = await steady();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  const next = await world.secret('signer-next');
  await world.load('a', 'b');
  await world.settle();
  // Stopped before it was cleared away; then somebody else replaced the signer.
  const { resourceVersion: _, uid: _uid, ...metadata } = next?.metadata ?? {};
  const annotations = { ...metadata.annotations, [TAKEN_BACK]: NOW.toISOString() };
  await world.rotation.kube.create(SECRETS, { ...next, metadata: { ...metadata, annotations } });
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await syncUnit(UNIT, world.rotation);
  await world.settle();
  assert.equal(await world.secret('signer-next'), undefined);
  const [signed] = loadSecret(next!).chain as [Certificate];
  assert.ok(
    (await world.bundle()).some(({ der }) => der.equals(signed.der)),
    'leaves of it are still shown',
  );
});

test('signing lasts until everybody shows it; that is noted, and then nobody looks any more (HO-3, HO-11)', async () => {
  const world = await steady();
  const before = await world.certificate('signer');
  world.shows.set('p', caDigest(before)).set('q', caDigest(before));
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  assert.equal(world.looked, 0, 'while it is distributed it does not matter who shows what');
  await world.load('a', 'b');
  await world.settle();
  const current = await world.certificate('signer');
  assert.ok(!current.der.equals(before.der));
  const notes = async () => annotationsOf((await world.secret('signer'))!);
  const noted = async () =>
    (JSON.parse((await notes())[PRESENTERS] ?? '[]') as Receipt[]).map(({ verifier, isLoaded }) => [
      verifier,
      isLoaded,
    ]);
  assert.deepEqual(await noted(), [
    ['p', false],
    ['q', false],
  ]);
  assert.equal((await notes())[SHOWN], undefined);

  world.shows.set('p', caDigest(current));
  await world.settle();
  assert.deepEqual(await noted(), [
    ['p', true],
    ['q', false],
  ]);
  const { until } = await world.pass();
  const waitMs = (until?.getTime() ?? 0) - world.rotation.clock.now().getTime();
  assert.ok(waitMs >= seconds(1) && waitMs <= seconds(30), `again after ${waitMs} ms`);
  await world.rotation.clock.advanceTo(at(60 + 200));
  const later = (await world.pass()).until?.getTime() ?? 0;
  assert.ok(later - world.rotation.clock.now().getTime() >= seconds(15), 'the longer it takes, the fewer looks');

  world.waived.add('q');
  await world.settle();
  assert.equal((await notes())[SHOWN], caDigest(current));
  assert.equal((await notes())[PRESENTERS], undefined);
  const { looked } = world;
  await world.settle();
  assert.equal(world.looked, looked);
});

test('no two generations have one name, also when the first was taken back within the second', async () => {
  const world = await steady();
  const names = [(await world.certificate('signer')).subject.commonName];
  for (let round = 0; round < 4; round++) {
    await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
    await world.settle();
    names.push((await world.certificate('signer-next')).subject.commonName);
    await world.annotate('signer-next', { [TAKEN_BACK]: NOW.toISOString() });
    await world.settle();
    assert.equal((await world.bundle()).length, 1);
  }
  assert.equal(new Set(names).size, names.length, names.join());
});

test('a signer that is replaced in place has a name of its own too', async () => {
  const world = await steady();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  await world.annotate('signer-next', { [TAKEN_BACK]: NOW.toISOString() });
  await world.rotation.kube.delete(SECRETS, { namespace: 'ns', name: 'signer' });
  await world.pass();
  const names = (await world.bundle()).map(({ subject }) => subject.commonName);
  assert.equal(new Set(names).size, names.length, names.join());
  assert.ok(names.length > 1);
});

test('what was asked for after a take-back is not forgotten with it', async () => {
  const world = await steady();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration', [REQUESTED_AT]: at(61).toISOString() });
  await world.settle();
  const first = await world.certificate('signer-next');
  await world.annotate('signer-next', { [TAKEN_BACK]: at(62).toISOString() });
  await world.annotate('signer', { [REQUESTED_AT]: at(62.5).toISOString() });
  await world.settle();
  const second = await world.certificate('signer-next');
  assert.ok(!second.der.equals(first.der));
  assert.ok(!(await world.bundle()).some(({ der }) => der.equals(first.der)));
});

test('turned round and taken back, it does not begin again by itself', async () => {
  const world = await steady();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  await world.load('a', 'b');
  await world.settle();
  world.loaded.set('a', new Set());
  await world.annotate('signer', { [TURNED_ROUND]: at(61).toISOString() });
  await world.settle();
  await world.annotate('signer-next', { [TAKEN_BACK]: at(62).toISOString() });
  await world.settle();
  assert.equal(await world.secret('signer-next'), undefined);
  assert.equal(annotationsOf((await world.secret('signer'))!)[TURNED_ROUND], undefined);
});

test('who is waited for is noted also for a signer that somebody else put in place, as long as leaves wait for it', async () => {
  const world = await steady();
  const leaves = await world.issuers();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.rotation.kube.delete(SECRETS, { namespace: 'ns', name: 'signer' });
  await syncUnit(UNIT, world.rotation);
  await world.load('a');
  await world.settle();
  assert.deepEqual(await world.issuers(), leaves, 'b has not loaded it');
  const noted = async () => annotationsOf((await world.secret('signer'))!)[RECEIPTS];
  assert.deepEqual(
    notedReceipts(await noted())?.map(({ verifier, isLoaded }) => [verifier, isLoaded]),
    [
      ['a', true],
      ['b', false],
    ],
  );
  await world.load('b');
  await world.settle();
  assert.notDeepEqual(await world.issuers(), leaves);
  assert.equal(await noted(), undefined);
});

/** Something happens right before this object's turn in a pass. */
class Interrupted extends ObjectLocks {
  readonly #object: string;
  readonly #act: () => Promise<unknown>;

  constructor(object: string, act: () => Promise<unknown>) {
    super();
    this.#object = object;
    this.#act = act;
  }

  override async run<T>(object: string, work: () => Promise<T>): Promise<T> {
    if (object === this.#object) await this.#act();
    return super.run(object, work);
  }
}

test('an operator that was overtaken does not make the leaf anew with the signer before (W-1)', async () => {
  const world = await steady();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.pass();
  await world.load('a', 'b');
  world.loaded.set('b', new Set());
  const overtake = async () => {
    await world.load('b');
    await world.settle();
  };
  const slow = { ...world.rotation, locks: new Interrupted('secret/ns/target', overtake) };
  const result = await world.passOf(slow);
  assert.deepEqual(result, { outcome: 'lost', object: 'target' });
  const { subject } = await world.certificate('signer');
  assert.deepEqual(await world.issuers(), [subject.commonName, subject.commonName]);
});

test('an operator that has just promoted a signer makes no leaf with it when somebody has turned that round meanwhile (W-1)', async () => {
  const world = await steady();
  const before = await world.issuers();
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  await world.load('a', 'b');
  const turnRound = async () => {
    const { kube } = world.rotation;
    const signer = await kube.get(SECRETS, { namespace: 'ns', name: 'signer' });
    const previous = await kube.get(SECRETS, { namespace: 'ns', name: 'signer-previous' });
    await kube.update(SECRETS, { ...signer, data: { ...previous.data } });
  };
  const slow = { ...world.rotation, locks: new Interrupted('secret/ns/target', turnRound) };
  assert.deepEqual(await world.passOf(slow), { outcome: 'lost', object: 'target' });
  assert.deepEqual(await world.issuers(), before);
});

test('an operator that was overtaken does not bring a CA back that has left the bundle (W-1)', async () => {
  const world = await steady();
  const before = await world.certificate('signer');
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  const overtake = async () => {
    await world.load('a', 'b');
    await world.settle();
    await world.removeFromBundle(before);
  };
  const slow = { ...world.rotation, locks: new Interrupted('configmap/ns/bundle', overtake) };
  assert.deepEqual(await world.passOf(slow), { outcome: 'lost', object: 'bundle' });
  assert.equal((await world.bundle()).length, 1);
});

test('a promotion that somebody else has overtaken writes nothing (W-1)', async () => {
  const world = await steady();
  const before = await world.certificate('signer');
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  await world.load('a', 'b');
  const { kube } = world.rotation;
  const interrupted: Kube = Object.assign(Object.create(kube), {
    create: async (...call: Parameters<Kube['create']>) => {
      const created = await kube.create(...call);
      if (created.metadata?.name === 'signer-previous') await world.annotate('signer', { note: 'of somebody else' });
      return created;
    },
  });
  const result = await world.passOf({ ...world.rotation, kube: interrupted });
  assert.deepEqual(result, { outcome: 'lost', object: 'signer' });
  assert.ok((await world.certificate('signer')).der.equals(before.der));
});

test('a next signer that somebody else has cleared away in the middle of its promotion does not sign (W-1)', async () => {
  const world = await steady();
  const before = await world.certificate('signer');
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
  await world.settle();
  await world.load('a', 'b');
  const { kube } = world.rotation;
  const interrupted: Kube = Object.assign(Object.create(kube), {
    create: async (...call: Parameters<Kube['create']>) => {
      const created = await kube.create(...call);
      await kube.delete(SECRETS, { namespace: 'ns', name: 'signer-next' });
      return created;
    },
  });
  const result = await world.passOf({ ...world.rotation, kube: interrupted });
  assert.deepEqual(result, { outcome: 'lost', object: 'signer' });
  assert.ok((await world.certificate('signer')).der.equals(before.der));
});

test('turned round, who shows what is looked at anew: what was seen of the signer before is long ago (HO-3)', async () => {
  const world = await steady();
  const before = caDigest(await world.certificate('signer'));
  await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration', [SHOWN]: before });
  await world.settle();
  await world.load('a', 'b');
  await world.settle();
  world.shows.set('a', caDigest(await world.certificate('signer')));
  await world.annotate('signer', { [TURNED_ROUND]: NOW.toISOString() });
  await world.settle();
  assert.equal(caDigest(await world.certificate('signer')), before);
  assert.equal(annotationsOf((await world.secret('signer'))!)[SHOWN], undefined);
});

test('a CA whose trust was removed does not come back: the hand-over is not turned round any more (HO-6)', async () => {
  for (const isBegun of [false, true]) {
    const world = await steady();
    const before = await world.certificate('signer');
    await world.annotate('signer', { [NOT_AFTER]: 'force-regeneration' });
    await world.settle();
    await world.load('a', 'b');
    await world.settle();
    const between = await world.certificate('signer');
    await world.annotate('signer', { [TURNED_ROUND]: NOW.toISOString() });
    if (isBegun) {
      world.loaded.set('b', new Set());
      await world.pass();
      await world.load('b');
    }
    await world.removeFromBundle(before);
    await world.settle();
    assert.ok((await world.certificate('signer')).der.equals(between.der));
    assert.deepEqual(
      (await world.bundle()).map(({ subject }) => subject.commonName),
      [between.subject.commonName],
    );
    assert.equal(await world.secret('signer-next'), undefined);
  }
});
