import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Engine, startEngine } from '../api/api.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import type { RotationUnit } from '../certrotation/config.ts';
import { liveObjects, type Rotation } from '../certrotation/ensure.ts';
import { ObjectLocks } from '../certrotation/locks.ts';
import { reconcileUnit } from '../certrotation/reconcile.ts';
import { type Sync, syncUnit } from '../certrotation/unit.ts';
import { RECEIPTS } from '../hand-over/names.ts';
import type { Receipt } from '../hand-over/receipt.ts';
import { type HandOverMode, syncByReceipts } from '../hand-over/sync.ts';
import { FORCED } from '../inventory/forced.ts';
import { clusterSource } from '../inventory/source.ts';
import type { VirtualClock } from '../kube/clock.ts';
import { days } from '../kube/duration.ts';
import { getIfPresent } from '../kube/get.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../kube-apiserver/chains.ts';
import { COMBINED_BUNDLES, ensureCombinedBundle } from '../kube-apiserver/combined-bundles.ts';
import { noteHandOverMode } from '../kube-apiserver/hand-over-mode.ts';
import { CLUSTER, INFRASTRUCTURES, NETWORKS } from '../kube-apiserver/resources.ts';
import { hostnameSources } from '../kube-apiserver/rotation/follow-hostnames.ts';
import { decideHostnames } from '../kube-apiserver/rotation/hostnames.ts';
import { rotationUnits } from '../kube-apiserver/rotation/units.ts';
import { NOW, prepareCluster, testClock } from '../kube-apiserver/testing.ts';
import type { Certificate } from '../pki/certificate.ts';
import { systemKeys } from '../pki/keys.ts';
import { readCertificates } from '../pki/pem.ts';
import { caDigest } from '../trust/receipts.ts';
import type { PlanEvent } from './model.ts';
import { type PlanObjects, readPlanObjects } from './objects.ts';
import { rehearse } from './rehearse.ts';
import { simulate } from './simulate.ts';
import { PlanWorld } from './world.ts';

const SIGNER = { namespace: 'openshift-kube-apiserver-operator', name: 'kube-control-plane-signer' };

/** The rotation controllers of the kube-apiserver operator over the embedded API, on a clock that jumps from due time to due time. */
class RealWorld {
  readonly events: string[] = [];
  readonly #engine: Engine;
  readonly #clock: VirtualClock;
  readonly #units: readonly RotationUnit[];
  readonly #rotation: Rotation;
  readonly #due = new Map<RotationUnit, number>();
  readonly #sync: Sync;
  /** What everybody has loaded: what stood in the bundles after all who write had written. */
  readonly #loaded = new Set<string>();
  readonly #listener: PlanWorld;
  readonly #seen = new Map<RotationUnit, string>();
  #combinedUntil = Number.POSITIVE_INFINITY;

  constructor(engine: Engine, clock: VirtualClock, units: readonly RotationUnit[], handOver: HandOverMode) {
    const { kube } = engine;
    this.#engine = engine;
    this.#clock = clock;
    this.#units = units;
    // Reads the events the way the plan does; nothing else of it is used.
    this.#listener = new PlanWorld(NOW);
    const { events } = this.#listener.rotation;
    this.#rotation = { kube, objects: liveObjects(kube), clock, keys: systemKeys, locks: new ObjectLocks(), events };
    for (const unit of units) this.#due.set(unit, clock.now().getTime());
    const receipt = (ca: Certificate): Receipt => ({
      verifier: 'everybody',
      node: undefined,
      kind: 'asked',
      isLoaded: this.#loaded.has(caDigest(ca)),
      evidence: 'said so',
      isWaived: false,
    });
    const receipts = { of: async (_: unknown, ca: Certificate) => [receipt(ca)], shown: async () => [] };
    this.#sync = handOver === 'clock' ? syncUnit : syncByReceipts(units, { receipts, dayMs: days(1) });
  }

  async runUntil(end: Date): Promise<void> {
    for (;;) {
      const next = Math.min(...this.#due.values(), this.#combinedUntil);
      if (next > end.getTime()) break;
      await this.#clock.advanceTo(new Date(next));
      for (let isNews = true; isNews; ) {
        isNews = false;
        for (const unit of this.#units) {
          // Asked when it is due, and when somebody else wrote one of its objects, as the triggers of a controller do.
          if ((this.#due.get(unit) ?? 0) > next && (await this.#versions(unit)) === this.#seen.get(unit)) continue;
          const { events } = this.#rotation;
          const due = await reconcileUnit(unit, this.#rotation, undefined, events, this.#sync);
          this.#due.set(unit, due.getTime());
          this.#seen.set(unit, await this.#versions(unit));
          isNews = true;
        }
        isNews = (await this.#combine()) || isNews;
        await this.#load();
        const announced = this.#listener.takeAnnounced();
        const at = this.#clock.now().toISOString();
        this.events.push(...announced.map(({ change, object, reason }) => textOf({ at, change, object, reason })));
      }
    }
    await this.#clock.advanceTo(end);
  }

  async #versions({ signer, bundle, target }: RotationUnit): Promise<string> {
    const { kube } = this.#engine;
    const found = [
      await getIfPresent(kube, SECRETS, { namespace: signer.namespace, name: signer.name }),
      await getIfPresent(kube, SECRETS, { namespace: signer.namespace, name: `${signer.name}-next` }),
      await getIfPresent(kube, CONFIG_MAPS, { namespace: bundle.namespace, name: bundle.name }),
      await getIfPresent(kube, SECRETS, { namespace: target.namespace, name: target.name }),
    ];
    return found.map(object => object?.metadata?.resourceVersion).join();
  }

  /** What a node says anew is a reason for another pass. */
  async #load(): Promise<void> {
    for (const unit of this.#units) {
      const { namespace, name } = unit.bundle;
      const { data } = await this.#engine.kube.get(CONFIG_MAPS, { namespace, name });
      for (const ca of readCertificates(data?.[BUNDLE_KEY] ?? '').certificates.map(caDigest)) {
        if (!this.#loaded.has(ca) && this.#sync !== syncUnit) this.#seen.delete(unit);
        this.#loaded.add(ca);
      }
    }
  }

  async #combine(): Promise<boolean> {
    const { kube } = this.#engine;
    let isNews = false;
    let earliest = Number.POSITIVE_INFINITY;
    for (const combined of COMBINED_BUNDLES) {
      const read = (source: { namespace: string; name: string }) => getIfPresent(kube, CONFIG_MAPS, source);
      const context = { kube, events: this.#rotation.events, clock: this.#clock };
      const { changed, until } = await ensureCombinedBundle(combined, read, context, this.#clock.now());
      const at = this.#clock.now().toISOString();
      const object = { kind: 'ConfigMap', ...combined.destination } as const;
      if (changed) this.events.push(textOf({ at, change: 'derived', object, reason: '' }));
      isNews ||= changed;
      earliest = Math.min(earliest, until.getTime());
    }
    this.#combinedUntil = earliest;
    return isNews;
  }
}

function textOf({ at, change, object, reason }: Pick<PlanEvent, 'at' | 'change' | 'object' | 'reason'>): string {
  return `${at} ${change} ${object?.kind} ${object?.namespace}/${object?.name} ${change === 'derived' ? '' : reason.split('\n', 1)[0]}`;
}

for (const handOver of ['clock', 'receipts'] as const)
  describe(`what the plan says is what then happens, by ${handOver}`, () => {
    const clock = testClock();
    let engine: Engine;
    let world: RealWorld;
    let objects: PlanObjects;

    before(async () => {
      engine = await startEngine({ clock });
      await prepareCluster(engine);
      const inputs = {
        network: await engine.kube.get(NETWORKS, CLUSTER),
        infrastructure: await engine.kube.get(INFRASTRUCTURES, CLUSTER),
      };
      const sources = hostnameSources();
      for (const name of Object.keys(sources) as (keyof typeof sources)[]) {
        const answer = decideHostnames(name, inputs);
        assert.ok(answer.ok);
        sources[name].set(answer.hostnames);
      }
      const units = rotationUnits({ dayMs: days(1), hostnames: sources, keyAlgorithm: 'P-256' });
      world = new RealWorld(engine, clock, units, handOver);
      await noteHandOverMode(engine.kube, handOver);
      await world.runUntil(new Date(NOW.getTime() + days(1)));
      objects = await readPlanObjects(clusterSource(engine.kube));
    });
    after(() => engine.close());

    test('lived through, nobody ever refuses anybody, forced signers included (spec 70, 9.1)', async () => {
      const now = clock.now();
      const until = new Date(now.getTime() + days(60));
      const { refusals, checked, looks } = await rehearse(objects, {
        now,
        until,
        force: [{ kind: 'Secret', ...SIGNER }],
      });
      assert.deepEqual(refusals, []);
      assert.ok(checked >= 3 && looks > 10, `${checked} sides, ${looks} looks`);
    });

    test('while no operator runs certificates end, and all is well soon after they run again', async () => {
      const now = clock.now();
      const [stoppedUntil, until] = [40, 60].map(count => new Date(now.getTime() + days(count))) as [Date, Date];
      const { refusals } = await rehearse(objects, { now, until, stopped: { from: now, until: stoppedUntil } });
      assert.ok(refusals.length > 0);
      for (const { since, until: end = '', reason } of refusals) {
        assert.ok(since > now.toISOString() && since < stoppedUntil.toISOString());
        assert.equal(end, stoppedUntil.toISOString());
        assert.match(reason, /ended at/);
      }
    });

    test('a must-gather without keys gives the same plan as the cluster itself', async () => {
      const options = { now: clock.now(), until: new Date(clock.now().getTime() + days(30)) };
      const withoutKeys = { ...objects, secrets: objects.secrets.map(({ keyProblem: _looked, ...secret }) => secret) };
      const [live, gathered] = await Promise.all([simulate(objects, options), simulate(withoutKeys, options)]);
      assert.ok(live.events.length > 10);
      assert.deepEqual(gathered.events, live.events);
    });

    if (handOver === 'receipts') {
      test('a forced signer: known everywhere first, then it signs, and its leaves follow at once', async () => {
        const now = clock.now();
        const { events } = await simulate(objects, { now, until: now, force: [{ kind: 'Secret', ...SIGNER }] });
        const texts = events.map(({ phase, change, object }) => `${phase} ${change} ${object?.name}`);
        assert.deepEqual(texts.slice(0, 4), [
          'Distributing signer kube-control-plane-signer',
          'Distributing bundle kube-control-plane-signer-ca',
          'Distributing derived client-ca',
          'Signing hand-over kube-control-plane-signer',
        ]);
        const leaves = KUBE_APISERVER_CHAINS.filter(({ signer }) => signer.name === SIGNER.name);
        assert.deepEqual(
          texts.filter(text => text.startsWith('Signing certificate')).toSorted(),
          leaves.map(({ target }) => `Signing certificate ${target.name}`).toSorted(),
        );
        assert.match(events[0]?.reason ?? '', new RegExp(FORCED));
      });

      test('what restarts for the distribution is told from what restarts for the signing', async () => {
        const now = clock.now();
        const signer = { namespace: SIGNER.namespace, name: 'localhost-serving-signer' };
        const metadata = { name: 'master-0', labels: { 'node-role.kubernetes.io/master': '' } };
        const nodes = [{ metadata }];
        const force = [{ kind: 'Secret', ...signer } as const];
        const { events } = await simulate({ ...objects, nodes }, { now, until: now, force });
        const rollouts = events.filter(({ change }) => change === 'rollout');
        assert.deepEqual(
          rollouts.map(({ phase, effects }) => [phase, effects.map(({ process }) => process)]),
          [['Distributing', ['kube-apiserver']]],
        );
        const served = events.find(({ object }) => object?.name === 'localhost-serving-cert-certkey');
        assert.equal(served?.phase, 'Signing');
        assert.deepEqual(
          served?.effects.map(({ kind }) => kind),
          ['reload'],
        );
      });

      test('a hand-over that waits as the cluster is: the plan says for whom, and goes on as if they had answered', async () => {
        const now = clock.now();
        const force = [{ kind: 'Secret', ...SIGNER } as const];
        const signer = objects.secrets.find(({ metadata }) => metadata?.name === SIGNER.name);
        const said = [{ verifier: 'kubelet on worker-0', isLoaded: false, evidence: 'does not answer' }];
        const annotations = { [RECEIPTS]: JSON.stringify(said) };
        const next = { ...signer, metadata: { namespace: SIGNER.namespace, name: `${SIGNER.name}-next`, annotations } };
        const { notes } = await simulate(
          { ...objects, secrets: [...objects.secrets, next] },
          { now, until: now, force },
        );
        assert.deepEqual(notes, [
          `secret/${SIGNER.name} in ${SIGNER.namespace} waits for kubelet on worker-0 (does not answer): the plan goes on as if they had loaded it`,
        ]);
      });

      test('asked for the clock, the plan is that of the clock', async () => {
        const now = clock.now();
        const options = { now, until: new Date(now.getTime() + days(60)) };
        const { events } = await simulate(objects, { ...options, handOver: 'clock' });
        assert.ok(events.some(({ change }) => change === 'signer'));
        assert.ok(!events.some(({ change, phase }) => change === 'hand-over' || phase !== undefined));
      });
    } else {
      test('a forced signer: itself and its bundle now, its leaves when the timed rule lets them', async () => {
        const now = clock.now();
        const options = {
          now,
          until: new Date(now.getTime() + days(20)),
          force: [{ kind: 'Secret', ...SIGNER } as const],
        };
        const { events } = await simulate(objects, options);
        const atNow = events.filter(({ at }) => at === now.toISOString());
        assert.deepEqual(
          atNow.map(({ change, object }) => [change, object?.name]),
          [
            ['signer', 'kube-control-plane-signer'],
            ['bundle', 'kube-control-plane-signer-ca'],
            ['derived', 'client-ca'],
          ],
        );
        assert.match(atNow[0]?.reason ?? '', new RegExp(FORCED));
        const leaf = events.find(({ object }) => object?.name === 'kube-scheduler-client-cert-key');
        assert.ok(Date.parse(leaf?.at ?? '') > now.getTime() + days(10));
      });
    }

    test('a target whose key does not fit is replaced now; a broken signer needs a person', async () => {
      const now = clock.now();
      const broken = (name: string) =>
        objects.secrets.map(secret =>
          secret.metadata?.name === name ? { ...secret, keyProblem: 'the key is another one' } : secret,
        );
      const options = { now, until: now };
      const leaf = await simulate({ ...objects, secrets: broken('kubelet-client') }, options);
      assert.deepEqual(
        leaf.events.map(({ change, object }) => [change, object?.name]),
        [['certificate', 'kubelet-client']],
      );
      const signer = await simulate({ ...objects, secrets: broken('node-system-admin-signer') }, options);
      assert.deepEqual(
        signer.events.map(({ change, object }) => [change, object?.name]),
        [['fail', 'node-system-admin-client']],
      );
    });

    test('90 days of the controllers on the embedded API, event by event', async () => {
      const until = new Date(clock.now().getTime() + days(90));
      const plan = await simulate(objects, { now: clock.now(), until });
      world.events.length = 0;
      await world.runUntil(until);
      const relevant = plan.events.filter(({ change }) =>
        ['signer', 'certificate', 'bundle', 'derived', 'hand-over'].includes(change),
      );
      assert.ok(relevant.length > 60, `${relevant.length} events`);
      assert.deepEqual(relevant.map(textOf).sort(), world.events.toSorted());
      assert.deepEqual(plan.notes, []);
      // Pairs that signed before are kept for as long as a hand-over can be turned round.
      const { items } = await engine.kube.list(SECRETS);
      const others = items.filter(({ metadata }) => !metadata?.name?.endsWith('-previous'));
      assert.equal(others.length, objects.secrets.length);
    });
  });
