import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { type Engine, startEngine } from '../../api/engine.ts';
import { HOSTNAMES, ISSUER, MANAGED_CERTIFICATE_TYPE, NOT_AFTER, NOT_BEFORE } from '../../certrotation/annotations.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import type { RotationUnit } from '../../certrotation/config.ts';
import { liveObjects, type Rotation } from '../../certrotation/ensure.ts';
import { ObjectLocks } from '../../certrotation/locks.ts';
import { reconcileUnit } from '../../certrotation/reconcile.ts';
import { loadSecret } from '../../certrotation/secret.ts';
import type { VirtualClock } from '../../kube/clock.ts';
import { days, seconds } from '../../kube/duration.ts';
import { type RecordedEvent, recordingEvents } from '../../kube/events.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { verifyChain } from '../../pki/chain.ts';
import { systemKeys } from '../../pki/keys.ts';
import { readCertificates } from '../../pki/pem.ts';
import { type Chain, KUBE_APISERVER_CHAINS } from '../chains.ts';
import { CLUSTER, INFRASTRUCTURES, NETWORKS } from '../resources.ts';
import { NOW, prepareCluster, testClock } from '../testing.ts';
import { type HostnameSources, hostnameSources } from './follow-hostnames.ts';
import { decideHostnames } from './hostnames.ts';
import { rotationUnits } from './units.ts';

const SERVICE_NAMES = ['kubernetes', 'openshift'].flatMap(name =>
  ['', '.default', '.default.svc', '.default.svc.cluster.local'].map(suffix => name + suffix),
);

/** What the spec says of each target, written down a second time (spec 20, 1.1). */
const EXPECTED: Record<string, { cn: string; groups?: string[]; dns?: string[]; ip?: string[]; days: number }> = {
  AggregatorProxyClientCert: { cn: 'system:openshift-aggregator', days: 30 },
  KubeAPIServerToKubeletClientCert: { cn: 'system:kube-apiserver', groups: ['kube-master'], days: 30 },
  LocalhostServing: { cn: '127.0.0.1', dns: ['localhost', '127.0.0.1'], ip: ['127.0.0.1'], days: 30 },
  ServiceNetworkServing: { cn: '172.30.0.1', dns: [...SERVICE_NAMES, '172.30.0.1'], ip: ['172.30.0.1'], days: 30 },
  ExternalLoadBalancerServing: { cn: 'api.c.example.com', dns: ['api.c.example.com'], ip: [], days: 30 },
  InternalLoadBalancerServing: { cn: 'api-int.c.example.com', dns: ['api-int.c.example.com'], ip: [], days: 30 },
  LocalhostRecoveryServing: { cn: 'localhost-recovery', dns: ['localhost-recovery'], ip: [], days: 3650 },
  KubeControllerManagerClient: { cn: 'system:kube-controller-manager', days: 30 },
  KubeSchedulerClient: { cn: 'system:kube-scheduler', days: 30 },
  ControlPlaneNodeAdminClient: { cn: 'system:control-plane-node-admin', groups: ['system:masters'], days: 30 },
  CheckEndpointsClient: { cn: 'system:serviceaccount:openshift-kube-apiserver:check-endpoints', days: 30 },
  // Cut to its signer: the configured 730 days are never reached (trap 10.1.7).
  NodeSystemAdminClient: { cn: 'system:admin', groups: ['system:masters'], days: 365 },
};

describe('twelve chains from a cold start, and after a year', () => {
  const clock = testClock();
  let engine: Engine;
  let world: World;

  before(async () => {
    engine = await startEngine({ clock });
    await prepareCluster(engine);
    world = await World.start(engine, clock);
    await world.runUntil(NOW);
  });
  after(() => engine.close());

  for (const chain of KUBE_APISERVER_CHAINS) {
    test(`${chain.controller}: identity, usages, names, validity, refresh and objects at the start`, async () => {
      const { leaf } = await world.check(chain, clock.now());
      const expected = EXPECTED[chain.controller]!;
      assert.equal(leaf.notAfter.getTime() - clock.now().getTime(), days(expected.days));
      assert.equal(clock.now().getTime() - leaf.notBefore.getTime(), seconds(1));
      assert.deepEqual(world.issued(chain.target), [0]);
      assert.deepEqual(world.issued(chain.signer), [0]);
    });
  }

  test('Secrets of a type that installers once wrote are made anew with the same keys (spec 10, Y-1, Y-2)', async () => {
    const { kube } = engine;
    const objects = KUBE_APISERVER_CHAINS.flatMap(({ signer, target }) => [signer, target]);
    const keys = [...new Map(objects.map(({ namespace, name }) => [name, { namespace, name }])).values()];
    const seeded: Secret[] = [];
    for (const key of keys) {
      const { metadata, data = {} } = await kube.get(SECRETS, key);
      const { labels = {}, annotations = {} } = metadata ?? {};
      await kube.delete(SECRETS, key);
      seeded.push(
        await kube.create(SECRETS, { metadata: { ...key, labels, annotations }, type: 'SecretTypeTLS', data }),
      );
    }
    await world.askAll();
    for (const [index, key] of keys.entries()) {
      const { type, data } = await kube.get(SECRETS, key);
      assert.deepEqual([type, data], ['kubernetes.io/tls', seeded[index]?.data], key.name);
    }
    assert.deepEqual(world.errors, []);
  });

  test('a simulated year goes by', async () => {
    await world.runUntil(new Date(NOW.getTime() + days(365)));
    assert.deepEqual(world.errors, []);
  });

  for (const chain of KUBE_APISERVER_CHAINS) {
    test(`${chain.controller}: rotations of a year are those the rules predict, to the second`, async () => {
      const predicted = predict(chain, days(365));
      assert.deepEqual(world.issued(chain.signer), predicted.signer.map(toSeconds));
      assert.deepEqual(world.issued(chain.target), predicted.target.map(toSeconds));
      await world.check(chain, clock.now());
    });
  }
});

const toSeconds = (ms: number) => Math.floor(ms / 1000);

/**
 * The rules of spec 10 once more, as plain arithmetic: when are signer and target of a chain issued, in milliseconds from the
 * start, if somebody asks at every moment. Everything fires strictly after its time, so one millisecond later.
 */
function predict(chain: Chain, endMs: number): { signer: number[]; target: number[] } {
  const [signer, target] = [chain.signer, chain.target];
  const issuedSigner = [0];
  const issuedTarget = [0];
  const made = (at: number, lifetimeMs: number, notAfterAtMost = Number.POSITIVE_INFINITY) => {
    const second = Math.floor(at / 1000) * 1000;
    return { notBefore: second - 1000, notAfter: Math.floor(Math.min(at + lifetimeMs, notAfterAtMost) / 1000) * 1000 };
  };
  const latest = (c: { notBefore: number; notAfter: number }) =>
    Math.floor(c.notAfter - (c.notAfter - c.notBefore) / 5);
  let s = made(0, days(signer.validityDays));
  let t = made(0, days(target.validityDays), s.notAfter);
  for (;;) {
    const nextSigner = Math.min(latest(s), s.notBefore + days(signer.refreshDays)) + 1;
    const refresh = Math.max(t.notBefore + days(target.refreshDays), s.notBefore + days(target.refreshDays) / 10);
    const nextTarget = Math.min(latest(t), refresh) + 1;
    const next = Math.min(nextSigner, nextTarget);
    if (next > endMs) return { signer: issuedSigner, target: issuedTarget };
    // The signer is looked at first; what is then due of the target is asked with the new one.
    if (nextSigner <= next) {
      s = made(next, days(signer.validityDays));
      issuedSigner.push(next);
    } else {
      t = made(next, days(target.validityDays), s.notAfter);
      issuedTarget.push(next);
    }
  }
}

/** Runs all units on the clock, each whenever it said that it wants to be asked again. */
class World {
  readonly #engine: Engine;
  readonly #clock: VirtualClock;
  readonly #units: readonly RotationUnit[];
  readonly #rotation: Rotation & { events: { events: RecordedEvent[] } };
  readonly #due = new Map<string, number>();
  readonly #issued = new Map<string, number[]>();
  readonly errors: string[] = [];

  private constructor(engine: Engine, clock: VirtualClock, sources: HostnameSources) {
    const { kube } = engine;
    this.#engine = engine;
    this.#clock = clock;
    this.#units = rotationUnits({ dayMs: days(1), hostnames: sources, keyAlgorithm: 'P-256' });
    const events = recordingEvents();
    this.#rotation = { kube, objects: liveObjects(kube), clock, keys: systemKeys, locks: new ObjectLocks(), events };
  }

  static async start(engine: Engine, clock: VirtualClock): Promise<World> {
    const { kube } = engine;
    const inputs = {
      network: await kube.get(NETWORKS, CLUSTER),
      infrastructure: await kube.get(INFRASTRUCTURES, CLUSTER),
    };
    const sources = hostnameSources();
    for (const name of Object.keys(sources) as (keyof HostnameSources)[]) {
      const answer = decideHostnames(name, inputs);
      assert.ok(answer.ok);
      sources[name].set(answer.hostnames);
    }
    return new World(engine, clock, sources);
  }

  async runUntil(end: Date): Promise<void> {
    for (;;) {
      const next = Math.min(...this.#units.map(unit => this.#due.get(unit.name) ?? NOW.getTime()));
      if (next > end.getTime()) break;
      await this.#clock.advanceTo(new Date(next));
      for (const unit of this.#units) {
        if ((this.#due.get(unit.name) ?? NOW.getTime()) > next) continue;
        const again = await reconcileUnit(unit, this.#rotation).catch((error: Error) => {
          this.errors.push(`${unit.name}: ${error.message}`);
          return new Date(next + seconds(60));
        });
        this.#due.set(unit.name, again.getTime());
        this.#note();
      }
    }
    await this.#clock.advanceTo(end);
  }

  async askAll(): Promise<void> {
    this.#due.clear();
    await this.runUntil(this.#clock.now());
  }

  /** When an object got a new certificate, in whole seconds from the start. */
  issued({ namespace, name }: { namespace: string; name: string }): number[] {
    return this.#issued.get(`"${name}" in "${namespace}"`) ?? [];
  }

  #note(): void {
    const at = toSeconds(this.#clock.now().getTime() - NOW.getTime());
    for (const { reason, message } of this.#rotation.events.events.splice(0)) {
      if (reason !== 'SignerUpdateRequired' && reason !== 'TargetUpdateRequired') continue;
      const object = message.slice(0, message.indexOf(' requires'));
      this.#issued.set(object, [...(this.#issued.get(object) ?? []), at]);
    }
  }

  /** Checks everything about the three objects of a chain that does not depend on when it is asked. */
  async check(chain: Chain, now: Date): Promise<{ leaf: Certificate; signer: Certificate }> {
    const { kube } = this.#engine;
    const expected = EXPECTED[chain.controller]!;
    const [signerSecret, targetSecret] = [await kube.get(SECRETS, chain.signer), await kube.get(SECRETS, chain.target)];
    const bundle = await kube.get(CONFIG_MAPS, chain.bundle);
    const roots = readCertificates(bundle.data?.[BUNDLE_KEY] ?? '').certificates;
    const [signer] = loadSecret(signerSecret).chain as [Certificate];
    const [leaf, ...rest] = loadSecret(targetSecret).chain as [Certificate, ...Certificate[]];

    assert.match(signer.subject.commonName, new RegExp(`^${chain.signer.namespace}_${chain.signer.name}@\\d+$`));
    assert.deepEqual([signer.isCA, signer.keyUsages.includes('keyCertSign'), signer.extKeyUsages], [true, true, []]);
    assert.equal(leaf.subject.commonName, expected.cn);
    assert.deepEqual(leaf.subject.organizations, expected.groups ?? []);
    const isServing = chain.target.creator.kind === 'serving';
    assert.deepEqual(leaf.extKeyUsages, [isServing ? 'serverAuth' : 'clientAuth']);
    assert.deepEqual([leaf.dnsNames, leaf.ipAddresses, leaf.isCA], [expected.dns ?? [], expected.ip ?? [], false]);
    // Serving chains carry the CA, client certificates stand alone (spec 20, 1.6).
    assert.equal(rest.length, isServing ? 1 : 0);
    const usage = isServing ? 'serverAuth' : 'clientAuth';
    assert.ok(
      verifyChain({ leaf, roots, now, usage }).ok,
      `${chain.controller}: the bundle does not verify the target`,
    );
    assert.ok(
      roots.some(({ der }) => der.equals(signer.der)),
      'the signer is in the bundle',
    );
    assert.ok(
      roots.every(({ notAfter }) => notAfter > now),
      'nothing expired is in the bundle',
    );
    assert.ok(leaf.notAfter > now && signer.notAfter > now);

    checkMetadata(signerSecret, 'signer', signer);
    checkMetadata(targetSecret, 'target', leaf);
    const hosts = [...new Set([...leaf.dnsNames, ...leaf.ipAddresses])].sort().join(',');
    assert.equal(targetSecret.metadata?.annotations?.[HOSTNAMES], isServing ? hosts : undefined);
    assert.equal(bundle.metadata?.annotations?.['openshift.io/owning-component'], 'kube-apiserver');
    return { leaf, signer };
  }
}

function checkMetadata({ metadata, type, data }: Secret, role: string, certificate: Certificate): void {
  const { annotations = {}, labels = {} } = metadata ?? {};
  assert.equal(type, 'kubernetes.io/tls');
  assert.deepEqual(Object.keys(data ?? {}).sort(), ['tls.crt', 'tls.key']);
  assert.equal(labels[MANAGED_CERTIFICATE_TYPE], role);
  assert.equal(annotations[NOT_BEFORE], formatRfc3339(certificate.notBefore));
  assert.equal(annotations[NOT_AFTER], formatRfc3339(certificate.notAfter));
  assert.equal(annotations[ISSUER], certificate.issuer.commonName);
  assert.equal(annotations['openshift.io/owning-component'], 'kube-apiserver');
}
