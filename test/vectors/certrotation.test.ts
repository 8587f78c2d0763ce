/**
 * Runs certrotation-vectors.json through the functions the controllers use. A case whose words this file does not know
 * fails; `info` cases describe 4.16's file helpers and its "apply", which we do not have, and are skipped by name.
 */
import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import {
  type AdditionalAnnotations,
  HOSTNAMES,
  ISSUER,
  NOT_AFTER,
  NOT_BEFORE,
  roleOf,
  withDescriptions,
} from '../../src/certrotation/annotations.ts';
import { BUNDLE_KEY, type BundleResult, decideBundle, ensureBundle } from '../../src/certrotation/bundle.ts';
import type { SignerConfig, TargetConfig } from '../../src/certrotation/config.ts';
import {
  type CertCreator,
  clientCreator,
  peerCreator,
  servingCreator,
  signerCreator,
} from '../../src/certrotation/creator.ts';
import type { Decision } from '../../src/certrotation/decision.ts';
import type { Rotation } from '../../src/certrotation/ensure.ts';
import { liveObjects } from '../../src/certrotation/ensure.ts';
import { hostnameDifference } from '../../src/certrotation/hostnames.ts';
import { ObjectLocks } from '../../src/certrotation/locks.ts';
import { reconcileUnit } from '../../src/certrotation/reconcile.ts';
import { operatorStatusReporter } from '../../src/certrotation/reporter.ts';
import { readRotationScale } from '../../src/certrotation/scale.ts';
import { dataText, TLS_CERT, TLS_KEY, withCertificate } from '../../src/certrotation/secret.ts';
import { decideSignerByAnnotations, ensureSigner, type SignerResult } from '../../src/certrotation/signer.ts';
import { followSigner } from '../../src/certrotation/signer-change.ts';
import { ensureTarget } from '../../src/certrotation/target.ts';
import { VirtualClock } from '../../src/kube/clock.ts';
import { seconds } from '../../src/kube/duration.ts';
import { KubeError } from '../../src/kube/error.ts';
import { reportCreate, reportDelete, reportUpdate } from '../../src/kube/events.ts';
import { MemoryKube } from '../../src/kube/memory.ts';
import { mergeOwnerReferences } from '../../src/kube/metadata.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, type KubeObject, keyOf, type Resource, resource, SECRETS } from '../../src/kube/resource.ts';
import { formatRfc3339, parseRfc3339 } from '../../src/kube/time.ts';
import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { unexpired } from '../../src/pki/bundle.ts';
import type { Certificate } from '../../src/pki/certificate.ts';
import { verifyChain } from '../../src/pki/chain.ts';
import { describeCertificate } from '../../src/pki/describe.ts';
import { hostnamesOf, splitHosts } from '../../src/pki/hosts.ts';
import { issueClient, issueIntermediate, issueServing, issueSigner } from '../../src/pki/issue.ts';
import { subjectKeyIdFor } from '../../src/pki/key-id.ts';
import { type KeyAlgorithm, systemKeys } from '../../src/pki/keys.ts';
import { encodePrivateKey, readCertificates, readPrivateKey } from '../../src/pki/pem.ts';
import { knownWord, runGroup } from './run-case.ts';

// The vectors are loosely typed data; each adapter below says what it expects of its kind.
// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;
interface Case {
  id: string;
  kind: string;
  judge: string;
  rule?: string;
  note?: string;
  given: Json;
  expected: Json;
}

const file = JSON.parse(readFileSync(new URL('certrotation-vectors.json', import.meta.url), 'utf8')) as {
  fixtures: Record<string, { pem: string }>;
  cases: Case[];
};
const DEFAULT_NOW = new Date('2026-01-01T00:00:00Z');
const OPERATORS = resource<KubeObject>('operator.openshift.io/v1', 'KubeAPIServer', 'kubeapiservers', false);

/** Kinds that describe things of 4.16 this project leaves out on purpose. */
const NOT_OURS: Record<string, string> = {
  'apply-416': "4.16's live read and overwrite is what spec 10, 8.2 tells us not to imitate",
  'validity-default': 'default lifetimes of file helpers, which rotation does not use',
  'subject-changed': 'file helpers, which rotation does not use',
};

const adapters: Record<string, (given: Json, expected: Json, vector: Case) => void | Promise<void>> = {
  'signer-decision'(given, expected) {
    const now = nowOf(given);
    const annotations = given.exists ? annotationsFrom(given.annotations, now) : undefined;
    checkDecision(decideSignerByAnnotations(annotations, policyOf(given), now), expected, now);
  },

  async 'target-decision'(given, expected) {
    const now = nowOf(given);
    const signer = await makeCA(given.signer, now);
    const bundle = await Promise.all(
      given.bundleCNs.map((cn: string) => makeCA({ cn, notBeforeRel: -1 }, now).then(ca => ca.chain[0])),
    );
    const creator = given.creator === 'serving' ? servingCreator({ hostnames: given.requiredHostnames }) : clientCreator({ name: 'x' });
    const secret = given.exists ? { metadata: { annotations: annotationsFrom(given.annotations, now) } } : undefined;
    const { refreshMs, refreshOnlyWhenExpired } = policyOf(given);
    const question = { secret, signer: signer.chain, bundle, refreshMs, refreshOnlyWhenExpired, now };
    checkDecision(creator.decide(question), expected, now);
  },

  'hostname-decision'(given, expected) {
    const reason = hostnameDifference(given.annotation ?? undefined, given.required);
    assert.equal(reason !== undefined, expected.rotate);
    assertMatches(reason, expected.reason);
  },

  async 'signer-ensure'(given, expected) {
    const world = await World.of(given);
    const config = signerConfig(given.config);
    let result: SignerResult | undefined;
    await world.attempt(async () => (result = await ensureSigner(config, world.rotation)));
    const ready = result?.outcome === 'ready' ? result : undefined;
    await world.check(expected, config, SECRETS);
    if (expected.regenerated !== undefined) assert.equal(ready?.regenerated ?? false, expected.regenerated);
    if (expected.result?.startsWith('no CA')) assert.equal(ready, undefined);
  },

  async 'bundle-merge'(given, expected) {
    const now = nowOf(given);
    const certificate = fixture(given.signerFixture);
    const configMap = given.text === null ? undefined : { data: { [BUNDLE_KEY]: given.text } };
    const decision = decideBundle(configMap, { namespace: 'ns', name: 's', certificate }, now);
    if (expected.error) {
      assert.ok(decision.action === 'fail');
      assert.equal(expected.changed ?? false, false);
      knownWord(expected.error.any, true);
      return;
    }
    assert.ok(decision.action !== 'fail');
    assert.equal(decision.action === 'rewrite', expected.changed);
    const text = decision.action === 'rewrite' ? decision.text : given.text;
    assert.equal(text, expected.text);
    assert.equal(createHash('sha256').update(text).digest('hex'), expected.textSha256);
    assert.equal(decision.certificates.length, expected.count);
    const order = decision.certificates.map(found => Object.keys(file.fixtures).find(id => fixture(id).der.equals(found.der)));
    assert.deepEqual(order, expected.order);
  },

  async 'bundle-ensure'(given, expected) {
    const world = await World.of(given);
    const config = { ...given.config };
    const [certificate] = world.signer.chain;
    let result: BundleResult | undefined;
    const signer = { namespace: 'ns', name: 'signer', certificate: certificate as Certificate };
    await world.attempt(async () => (result = await ensureBundle(config, signer, world.rotation)));
    await world.check(expected, config, CONFIG_MAPS);
    const ready = result?.outcome === 'ready' ? result : undefined;
    if (expected.returnedCount !== undefined) assert.equal(ready?.certificates.length, expected.returnedCount);
    if (expected.result?.startsWith('no bundle')) assert.equal(ready, undefined);
  },

  async 'target-ensure'(given, expected) {
    const world = await World.of(given);
    const config = { ...signerConfig(given.config), creator: creatorFrom(given.config.creator) };
    const bundle = given.bundle.map((token: string) => world.certificate(token));
    for (let round = 1; round <= (given.repeat ?? 1); round++) {
      world.writes.length = 0;
      await world.attempt(() => ensureTarget(config, world.signer, bundle, world.rotation));
      if (round === 1 && expected.writesFirst) assert.deepEqual(world.writes, expected.writesFirst);
      if (round === 2 && expected.writesSecond) assert.deepEqual(world.writes, expected.writesSecond);
    }
    await world.check(expected, config, SECRETS);
  },

  async 'controller-sync'(given, expected) {
    const world = await World.of({ ...given, existing: null });
    const unit = {
      name: given.unit,
      signer: signerConfig({ ...SYNC_CONFIG, name: given.names.signer, refreshOnlyWhenExpired: given.refreshOnlyWhenExpired }),
      bundle: { namespace: 'ns', name: given.names.bundle, refreshOnlyWhenExpired: given.refreshOnlyWhenExpired },
      target: {
        ...signerConfig({ ...SYNC_CONFIG, name: given.names.target, refreshOnlyWhenExpired: given.refreshOnlyWhenExpired }),
        creator: clientCreator({ name: 'user' }),
      },
    };
    await world.seedUnit(given.existing, unit);
    await world.kube.create(OPERATORS, { metadata: { name: 'cluster' } });
    const reporter = operatorStatusReporter(world.kube, OPERATORS, { name: 'cluster' }, world.clock);
    let again: unknown;
    await world.attempt(async () => {
      again = await reconcileUnit(unit, world.rotation, given.runOnce ? undefined : reporter);
    });
    const seen = (calls: string[]) => calls.map(call => JSON.stringify(call)).toSorted();
    if (expected.writes) assert.deepEqual(seen(world.detailedWrites), seen(expected.writes));
    if (expected.writesAttempted) assert.deepEqual(seen(world.detailedAttempts), seen(expected.writesAttempted));
    if ('error' in expected) assertMatches(world.error?.message ?? null, expected.error);
    // What Go says, with a nil pointer in hand; ours says what happened.
    if (expected.goError !== undefined) assert.equal(expected.errorOrRequeue, true);
    if (expected.errorOrRequeue) assert.ok(world.error !== undefined || again !== undefined);
    if (expected.statusWrites !== undefined) assert.equal(world.statusWrites, expected.statusWrites);
    const operator = (await world.kube.get(OPERATORS, { name: 'cluster' })) as { status?: { conditions?: Json[] } };
    if (expected.condition) {
      const found = operator.status?.conditions?.find(({ type }) => type === expected.condition.type);
      for (const field of ['status', 'reason', 'message']) {
        assertMatches(found?.[field] ?? '', expected.condition[field] || null);
      }
    }
    for (const event of expected.events ?? []) {
      const found = world.events.filter(({ reason }) => reason === event.reason);
      assert.ok(found.some(({ type, message }) => type === event.type && matches(message, event.message, world.now)), JSON.stringify(world.events));
    }
    if (expected.bundleCount !== undefined) {
      const { data } = await world.kube.get(CONFIG_MAPS, { namespace: 'ns', name: given.names.bundle });
      assert.equal(readCertificates(data?.[BUNDLE_KEY] ?? '').certificates.length, expected.bundleCount);
    }
  },

  async 'cert-build'(given, expected) {
    if (given.kind === 'key-usage') {
      for (const name of given.keys) {
        const made = await build({ ...given, kind: 'client', user: { name: 'u' }, keyGen: name });
        assert.deepEqual(made.leaf.keyUsages, expected[name]);
      }
      return;
    }
    knownWord(given.serve, undefined, 'leaf only');
    // With which key it is signed makes no difference to what is in it.
    knownWord(given.signerKey, undefined, 'RSA-2048', 'ECDSA-P256');
    const made = await build(given);
    checkCertificate(made, expected);
  },

  'key-id'(given, expected) {
    assert.equal(subjectKeyIdFor(fixture(given.fixture).publicKey).toString('hex'), expected.skiHex);
  },

  async 'filter-expired'(given, expected) {
    const now = DEFAULT_NOW;
    const certificates = await Promise.all(
      given.certs.map(async (spec: Json, index: number) => {
        const ca = await makeCA({ cn: `c${index}`, notBeforeRel: spec.notBeforeRel ?? -3600, notAfterRel: spec.notAfterRel }, now);
        return ca.chain[0] as Certificate;
      }),
    );
    const kept = unexpired(certificates, now).map(certificate => certificates.indexOf(certificate));
    assert.deepEqual(kept, expected.kept);
  },

  'cert-description'(given, expected) {
    const certificate = given.fixture ? fixture(given.fixture) : imaginary(given);
    assert.equal(describeCertificate(certificate, new Date(given.now)), expected.text);
  },

  async 'subject-for-user'(given, expected) {
    const { leaf } = await build({ kind: 'client', user: given.user, validitySeconds: 60 });
    assert.equal(leaf.subject.commonName, expected.cn);
    assert.deepEqual(leaf.subject.organizations, expected.o);
    if (expected.serialNumber) assert.equal(leaf.subject.serialNumber, expected.serialNumber);
    // One RDN is one SET below the subject's SEQUENCE.
    if (expected.singleRDN) assert.equal(rdnCount(leaf.subject.der), 1 + (leaf.subject.commonName ? 1 : 0) + (leaf.subject.serialNumber ? 1 : 0));
  },

  async 'host-split'(given, expected) {
    const split = splitHosts(given.hosts);
    assert.equal(split.commonName, expected.cn);
    assert.deepEqual(split.dnsNames, expected.dns);
    assert.deepEqual(split.ipAddresses, expected.ip);
    const { leaf } = await build({ kind: 'serving', hostnames: given.hosts, validitySeconds: 60 });
    assert.equal(hostnamesOf(leaf).join(','), expected.annotation);
  },

  'descriptive-annotations'(given, expected) {
    assert.deepEqual(withDescriptions(given.existing, given.configured as AdditionalAnnotations), expected);
  },

  'owner-refs'(given, expected) {
    const merged = mergeOwnerReferences(given.existing as OwnerReference[], given.required as OwnerReference[]);
    assert.deepEqual(merged, expected);
  },

  'label-type'(given, expected) {
    assert.equal(roleOf(given.labels), expected.type);
  },

  async 'rotation-scale'(given, expected) {
    const kube = new MemoryKube();
    const name = 'unsupported-cert-rotation-config';
    const transient = typeof given.configMap === 'string';
    const data = transient ? { base: '10m' } : given.configMap?.data;
    if (given.configMap) await kube.create(CONFIG_MAPS, { metadata: { namespace: 'openshift-config', name }, ...(data && { data }) });
    let failures = transient ? 1 : 0;
    const flaky = intercept(kube, async (verb, call) => {
      if (verb === 'get' && failures-- > 0) throw new KubeError(503, 'ServiceUnavailable', 'try again');
      return call();
    });
    const clock = new VirtualClock(DEFAULT_NOW);
    const outcome = readRotationScale(flaky, 'openshift-config', clock, () => {}).then(
      scale => ({ scale, error: null }),
      (error: Error) => ({ scale: undefined, error: error.message }),
    );
    await clock.advance(seconds(2));
    const { scale, error } = await outcome;
    assertMatches(error, expected.error ?? null);
    if (expected.seconds !== undefined) assert.equal(scale, seconds(expected.seconds));
  },

  'event-text'(given, expected) {
    // Ours says what was written in events of its own.
    knownWord(given.detail, undefined, null);
    const events: Json[] = [];
    const recorder = { event: (type: string, reason: string, message: string) => void events.push({ type, reason, message }) };
    const report = { create: reportCreate, update: reportUpdate, delete: reportDelete }[given.op as 'create'];
    const kind: Resource = given.kind === 'Secret' ? SECRETS : CONFIG_MAPS;
    report(recorder, kind, { metadata: { name: given.name, namespace: given.namespace } }, given.error ? new Error(given.error) : undefined);
    assert.equal(events.length, 1);
    for (const field of ['type', 'reason', 'message']) assertMatches(events[0][field], expected[field]);
  },

  async 'signer-change-wrapper'(given, expected) {
    const now = DEFAULT_NOW;
    const current = await makeCA({ cn: 'signer-tests', notBeforeRel: -1 }, now);
    const other = await makeCA({ cn: 'signer-tests', notBeforeRel: -1 }, now);
    const name = given.secretName ?? 'target-secret';
    knownWord(given.signerCN, undefined, 'signer-tests (same CN for both signers)');
    knownWord(given.bundle, undefined, 'current signer only');
    knownWord(given.creator, undefined, 'signer');
    if (given.wrappedReason !== undefined) {
      const wrapped: CertCreator = { ...clientCreator({ name: 'x' }), decide: () => decisionFrom(given.wrappedReason, now) };
      const data = Object.fromEntries(Object.entries(given.data ?? {}).map(([key, text]) => [key, base64(text as string)]));
      const decision = followSigner(wrapped).decide(question({ metadata: { name }, data }, current.chain));
      checkDecision(decision, expected, now);
      return;
    }
    const signer = given.signerHasSKI ? current.chain : current.chain.map(certificate => ({ ...certificate, subjectKeyId: undefined }));
    const issuer = given.targetSignedByCurrentSigner ? current : other;
    const made = await issueIntermediate({ signer: issuer, commonName: 'lower_@1', lifetimeMs: seconds(3600), now, keys: systemKeys, algorithm: 'P-256' });
    const secret = withCertificate({ metadata: { name } }, made, 'target', seconds(1800));
    checkDecision(followSigner(signerCreator('lower')).decide(question(secret, signer)), expected, now);

    function question(found: Secret, chain: readonly Certificate[]) {
      return { secret: found, signer: chain, bundle: chain, refreshMs: seconds(1800), refreshOnlyWhenExpired: false, now };
    }
  },
};

for (const [kind, vectors] of Map.groupBy(file.cases, vector => vector.kind)) {
  const adapter = adapters[kind] ?? (() => assert.fail(`no adapter for kind ${kind}`));
  runGroup(
    kind,
    vectors.map(vector => ({
      ...vector,
      name: `${vector.id} ${kind} (spec 10, ${vector.rule ?? '-'})${vector.note ? `: ${vector.note}` : ''}`,
      skip: NOT_OURS[kind],
      run: (given, expected) => adapter(given, expected, vector),
    })),
  );
}

const SYNC_CONFIG = { namespace: 'ns', validitySeconds: 86_400, refreshSeconds: 43_200, useSecretUpdateOnly: false };

/** One cluster, one clock, one recorder: what an ensure case runs in. */
class World {
  readonly now: Date;
  readonly clock: VirtualClock;
  readonly store = new MemoryKube();
  readonly events: { type: string; reason: string; message: string }[] = [];
  readonly attempts: string[] = [];
  readonly writes: string[] = [];
  readonly detailedAttempts: Json[] = [];
  readonly detailedWrites: Json[] = [];
  readonly kube: Kube;
  readonly rotation: Rotation;
  readonly certificates = new Map<string, CertificateAndKey>();
  statusWrites = 0;
  error: Error | undefined;
  signer!: CertificateAndKey;
  before: Secret | ConfigMap | undefined;
  cached: Secret | undefined;

  static async of(given: Json): Promise<World> {
    const world = new World(given);
    await world.#seed(given);
    return world;
  }

  private constructor(given: Json) {
    this.now = nowOf(given);
    this.clock = new VirtualClock(this.now);
    this.kube = intercept(this.store, async (verb, call, kind, object) => {
      if (!['create', 'update', 'delete', 'updateStatus'].includes(verb) || kind.kind === 'KubeAPIServer') {
        if (verb === 'updateStatus') this.statusWrites++;
        return call();
      }
      const name = 'metadata' in object ? object.metadata?.name : (object as { name: string }).name;
      // The copy that is set aside while a Secret is made anew is no part of what a vector tells.
      if (name?.endsWith('.set-aside.rotunda.dev')) return call();
      const detailed = { verb, kind: kind.kind, name };
      this.attempts.push(verb);
      this.detailedAttempts.push(detailed);
      const fault: string | undefined = given.api?.[verb] ?? given.api?.[`${verb} ${kind.kind} ${name}`];
      if (fault === 'conflict') throw new KubeError(409, 'Conflict', 'the object has been modified');
      if (fault === 'alreadyExists') throw new KubeError(409, 'AlreadyExists', 'already exists');
      if (fault === 'notFound') throw new KubeError(404, 'NotFound', 'not found');
      if (fault?.startsWith('error: ')) throw new KubeError(500, 'InternalError', fault.slice('error: '.length));
      // OpenShift's API server lets the type of a Secret become kubernetes.io/tls on update (spec 10, 8.4).
      const result = given.config?.useSecretUpdateOnly && verb === 'update' && kind.kind === 'Secret' ? await this.#typeChangingUpdate(object as Secret) : await call();
      this.writes.push(verb);
      this.detailedWrites.push(detailed);
      return result;
    });
    this.rotation = {
      kube: this.kube,
      objects: {
        ...liveObjects(this.kube),
        read: async (kind, key) => (this.cached as never) ?? liveObjects(this.kube).read(kind, key),
      },
      clock: this.clock,
      keys: systemKeys,
      events: { event: (type, reason, message) => void this.events.push({ type, reason, message }) },
      locks: new ObjectLocks(),
    };
  }

  async attempt(work: () => Promise<unknown>): Promise<void> {
    const done = work().then(
      () => {},
      (error: Error) => {
        this.error = error;
      },
    );
    // Retries inside a call wait on the clock.
    let finished = false;
    void done.then(() => (finished = true));
    while (!finished) await this.clock.advance(0).then(() => (this.clock.nextWait() ? this.clock.advance(1000) : undefined));
  }

  certificate(token: string): Certificate {
    const found = token === '$signer' ? this.signer : this.certificates.get(token);
    assert.ok(found, `no certificate ${token}`);
    return found.chain[0] as Certificate;
  }

  async check(expected: Json, config: { namespace: string; name: string }, kind: Resource): Promise<void> {
    if ('error' in expected) assertMatches(this.error?.message ?? null, expected.error);
    if (expected.writes) assert.deepEqual(this.writes, expected.writes);
    if (expected.writesAnyOf) assert.ok(expected.writesAnyOf.map((list: string[]) => list.join()).includes(this.writes.join()), `writes were ${this.writes.join()}`);
    if (expected.writesAttempted) assert.deepEqual(this.attempts, expected.writesAttempted);
    for (const verb of expected.neverWrites ?? []) assert.ok(!this.attempts.includes(verb));
    if (expected.events) {
      assert.equal(this.events.length, expected.events.length, JSON.stringify(this.events));
      for (const [index, event] of expected.events.entries()) {
        for (const field of ['type', 'reason', 'message']) assertMatches(this.events[index]?.[field as 'type'], event[field]);
      }
    }
    for (const reason of expected.eventsAbsent ?? []) assert.ok(!this.events.some(event => event.reason === reason));
    const live = await liveObjects(this.store).read(kind, config);
    if (expected.liveData === 'unchanged') assert.deepEqual((live as Secret).data, (this.before as Secret).data);
    if (expected.object) await this.#checkObject(live as Secret & ConfigMap, expected.object);
  }

  async #checkObject(live: Secret & ConfigMap, expected: Json): Promise<void> {
    assert.ok(live, 'the object is not there');
    if (expected.type) assert.equal(live.type, expected.type);
    for (const [key, value] of Object.entries(expected.labels ?? {})) assertMatches(live.metadata?.labels?.[key], value, this.now);
    for (const key of expected.labelsAbsent ?? []) assert.equal(live.metadata?.labels?.[key], undefined);
    for (const [key, value] of Object.entries(expected.annotations ?? {})) assertMatches(live.metadata?.annotations?.[key], value, this.now);
    for (const key of expected.annotationsAbsent ?? []) assert.equal(live.metadata?.annotations?.[key], undefined);
    if (expected.ownerReferenceNames) assert.deepEqual((live.metadata?.ownerReferences ?? []).map(({ name }) => name), expected.ownerReferenceNames);
    const bundle = live.data?.[BUNDLE_KEY] === undefined ? [] : readCertificates(live.data[BUNDLE_KEY]).certificates;
    if (expected.bundleCount !== undefined) assert.equal(bundle.length, expected.bundleCount);
    if (expected.bundleCNs) assert.deepEqual(bundle.map(({ subject }) => subject.commonName).toSorted(), expected.bundleCNs.toSorted());
    if (expected.leafNotAfter?.notAfterSigner) {
      const [leaf] = readCertificates(dataText(live, TLS_CERT) ?? '').certificates;
      assert.ok(leaf!.notAfter <= this.signer.chain[0]!.notAfter);
    }
    if (expected.data === 'unchanged') assert.deepEqual(live.data, this.before?.data);
    else for (const [key, value] of Object.entries(expected.data ?? {})) this.#checkData(live, key, value as Json);
  }

  #checkData(live: Secret, key: string, expected: Json): void {
    const [now, before] = [live.data?.[key], (this.before as Secret | undefined)?.data?.[key]];
    if (expected === 'unchanged') return assert.equal(now, before);
    if (expected === 'changed') return assert.ok(now !== undefined && now !== before);
    if (expected === 'empty') return assert.equal(now, '');
    const text = dataText(live, key) ?? '';
    if (key === TLS_KEY) {
      assert.ok(text.startsWith(`-----BEGIN ${expected.pemType}-----\n`));
      if (expected.matchesCert) assert.ok(new X509Certificate(dataText(live, TLS_CERT) ?? '').checkPrivateKey(readPrivateKey(text)));
      return;
    }
    const { certificates } = readCertificates(text);
    const [leaf, second] = certificates as [Certificate, Certificate?];
    if (expected.pemCerts !== undefined) assert.equal(certificates.length, expected.pemCerts);
    if (expected.isCA !== undefined) assert.equal(leaf.isCA, expected.isCA);
    if (expected.cn) assert.equal(leaf.subject.commonName, expected.cn);
    if (expected.cnRegex) assert.match(leaf.subject.commonName, new RegExp(expected.cnRegex));
    if (expected.issuerCN) assert.equal(leaf.issuer.commonName, expected.issuerCN);
    if (expected.dns) assert.deepEqual(leaf.dnsNames, expected.dns);
    if (expected.ip) assert.deepEqual(leaf.ipAddresses, expected.ip);
    if (expected.eku) assert.deepEqual(leaf.extKeyUsages, expected.eku);
    if (expected.second) assert.ok(second?.der.equals(this.certificate(expected.second).der));
  }

  async #seed(given: Json): Promise<void> {
    this.signer = await makeCA(given.signer ?? { cn: 'signer-tests', notBeforeRel: -1 }, this.now);
    if (given.signer?.chain) {
      const root = await makeCA({ cn: 'root', notBeforeRel: -1 }, this.now);
      this.signer = await issueIntermediate({ signer: root, commonName: given.signer.cn, lifetimeMs: seconds(86_400), now: this.now, keys: systemKeys, algorithm: 'P-256' });
    }
    for (const [token, spec] of Object.entries(given.certs ?? {})) this.certificates.set(token, await makeCA(spec as Json, this.now));
    if (given.existing == null) return;
    const { namespace, name } = given.config;
    if (given.existing.bundle || given.existing.data?.[BUNDLE_KEY] !== undefined) {
      const text = given.existing.bundle?.map((token: string) => pemOf(this.certificate(token))).join('') ?? given.existing.data[BUNDLE_KEY];
      const labels = given.existing.labels ?? {};
      this.before = await this.store.create(CONFIG_MAPS, { metadata: { namespace, name, labels, annotations: given.existing.annotations ?? {} }, data: { [BUNDLE_KEY]: text } });
      return;
    }
    if (typeof given.existing === 'string') return this.#seedByWords(given);
    const { type, labels } = given.existing;
    const ownerReferences = given.existing.ownerReferences.map(ownerFrom);
    const valid = await makeCA({ cn: `${namespace}_${name}@1`, notBeforeRel: -1, notAfterRel: 86_399 }, this.now);
    const filled = withCertificate({ metadata: { namespace, name } }, valid, 'signer', seconds(43_200));
    let data = given.existing.data as string | Record<string, string>;
    if (typeof data === 'string') {
      const { [TLS_CERT]: cert, [TLS_KEY]: key } = filled.data as Record<string, string>;
      const foreign = await makeCA({ cn: 'other', notBeforeRel: -1 }, this.now);
      assert.ok(data.startsWith('$valid'), data);
      const otherKey = base64(encodePrivateKey(foreign.key));
      data = { [TLS_CERT]: cert!, [TLS_KEY]: data.includes('OtherKey') ? otherKey : key!, ...(data.includes('extraKey') && { extra: base64('x') }) };
    } else {
      data = Object.fromEntries(Object.entries(data).map(([key, text]) => [key, base64(text)]));
    }
    const stated = given.existing.annotations;
    const fromData = stated === '$fromData' || stated.$fromData;
    const own = Object.fromEntries([NOT_BEFORE, NOT_AFTER, ISSUER].map(key => [key, filled.metadata!.annotations![key] as string]));
    const { $fromData: _, ...others } = typeof stated === 'string' ? {} : stated;
    const annotations = { ...(fromData ? own : {}), ...others, ...this.#mutations(given.mutate) };
    this.before = await this.store.create(SECRETS, { type, data, metadata: { namespace, name, labels, ownerReferences, annotations } });
  }

  #mutations(words: string | undefined): Record<string, string> {
    const found = (words ?? '').matchAll(/(auth\.openshift\.io\/[a-z-]+) to now([+-]\d+)([sh])/g);
    const changes = [...found].map(([, key, amount, unit]) => [key, this.#at(Number(amount) * (unit === 'h' ? 3600 : 1))]);
    assert.ok(words === undefined || changes.length > 0, `cannot read: ${words}`);
    return Object.fromEntries(changes);
  }

  #at(relSeconds: number): string {
    return formatRfc3339(new Date(this.now.getTime() + seconds(relSeconds)));
  }

  async #seedByWords(given: Json): Promise<void> {
    const words: string = given.existing;
    const { namespace, name, owner, additionalAnnotations } = given.config;
    if (words.startsWith('$cacheStale')) {
      const old = await makeCA({ cn: 'old', notBeforeRel: -80_000, notAfterRel: 6400 }, this.now);
      const fresh = await makeCA({ cn: 'fresh', notBeforeRel: -5, notAfterRel: 86_395 }, this.now);
      const metadata = { namespace, name };
      this.cached = await this.store.create(SECRETS, { ...withCertificate({ metadata }, old, 'signer', 1), type: 'kubernetes.io/tls' });
      const rotated = { ...withCertificate(this.cached, fresh, 'signer', 1), type: 'kubernetes.io/tls' };
      this.before = await this.store.update(SECRETS, rotated);
      return;
    }
    const match = /^\$validTarget signed by (\$\w+), hostnames ([\w,.:-]+), (all metadata present|owner and component present)/.exec(words);
    assert.ok(match, `cannot read: ${words}`);
    const signer = match[1] === '$signer' ? this.signer : this.certificates.get(match[1] as string);
    const hostnames = (match[2] as string).split(',');
    const made = await issueServing({ signer: signer!, hostnames, lifetimeMs: seconds(given.config.validitySeconds), now: this.now, keys: systemKeys, algorithm: 'P-256' });
    const bare = withCertificate({ metadata: { namespace, name } }, made, 'target', 1);
    const descriptions = match[3]?.startsWith('all') ? additionalAnnotations : { jiraComponent: additionalAnnotations?.jiraComponent };
    const annotations = { ...withDescriptions(bare.metadata!.annotations!, descriptions ?? {}).result, [HOSTNAMES]: hostnames.toSorted().join(',') };
    const data = { ...bare.data, ...(words.includes('tls.crt replaced by the text broken') && { [TLS_CERT]: base64('broken') }) };
    this.before = await this.store.create(SECRETS, {
      type: 'kubernetes.io/tls',
      data,
      metadata: { namespace, name, annotations, labels: {}, ...(owner && { ownerReferences: [ownerFrom(owner)] }) },
    });
  }

  /** Lays out the objects of a controller case from its words. */
  async seedUnit(existing: Record<string, string>, unit: { signer: SignerConfig; bundle: { name: string }; target: TargetConfig }): Promise<void> {
    const words = existing.signer ?? 'missing';
    // "past refresh" is 13 h into a day that is refreshed at 12 h; "expired" ended a minute ago.
    const age = /past refresh/.test(words) ? [-46_800, 39_600] : /expired/.test(words) ? [-86_460, -60] : [-1, 86_399];
    const old = await makeCA({ cn: `ns_${unit.signer.name}@1`, notBeforeRel: age[0], notAfterRel: age[1] }, this.now);
    const metadata = { namespace: 'ns', name: unit.signer.name };
    const filled = { ...withCertificate({ metadata }, old, 'signer', 1), type: 'kubernetes.io/tls' };
    if (words === 'annotations fine, content empty') await this.store.create(SECRETS, { ...filled, data: { [TLS_CERT]: '', [TLS_KEY]: '' } });
    else if (words === 'valid without annotations') await this.store.create(SECRETS, { ...filled, metadata });
    else if (words !== 'missing') await this.store.create(SECRETS, filled);
    if (existing.bundle) {
      await this.store.create(CONFIG_MAPS, { metadata: { namespace: 'ns', name: unit.bundle.name }, data: { [BUNDLE_KEY]: pemOf(old.chain[0] as Certificate) } });
    }
    if (!existing.target) return;
    const shift = /past refresh/.test(existing.target) ? -46_800 : /expired/.test(existing.target) ? -86_460 : -1;
    const then = new Date(this.now.getTime() + seconds(shift + 1));
    const leaf = await issueClient({ signer: old, user: { name: 'user' }, lifetimeMs: seconds(86_400), now: then, keys: systemKeys, algorithm: 'P-256' });
    const target = withCertificate({ metadata: { namespace: 'ns', name: unit.target.name } }, leaf, 'target', 1);
    await this.store.create(SECRETS, { ...target, type: 'kubernetes.io/tls' });
  }

  async #typeChangingUpdate(object: Secret): Promise<Secret> {
    const live = await this.store.get(SECRETS, keyOf(object));
    if (live.type === object.type) return this.store.update(SECRETS, object);
    assert.equal(live.metadata?.resourceVersion, object.metadata?.resourceVersion);
    await this.store.delete(SECRETS, keyOf(object));
    return this.store.create(SECRETS, object);
  }
}

function intercept(
  kube: Kube,
  around: (verb: string, call: () => Promise<unknown>, kind: Resource, object: KubeObject) => Promise<unknown>,
): Kube {
  return new Proxy(kube, {
    get(target, verb: keyof Kube) {
      const method = target[verb] as unknown as (...args: unknown[]) => Promise<unknown>;
      return (...args: unknown[]) => around(verb, () => method.apply(target, args), args[0] as Resource, args[1] as KubeObject);
    },
  });
}

async function makeCA(spec: { cn: string; notBeforeRel?: number | undefined; notAfterRel?: number | undefined }, now: Date): Promise<CertificateAndKey> {
  const notBeforeRel = spec.notBeforeRel ?? -1;
  const created = new Date(now.getTime() + seconds(notBeforeRel + 1));
  const lifetimeMs = seconds((spec.notAfterRel ?? notBeforeRel + 5_184_001) - notBeforeRel - 1);
  return issueSigner({ commonName: spec.cn, lifetimeMs, now: created, keys: systemKeys, algorithm: 'P-256' });
}

interface Built {
  leaf: Certificate;
  chain: readonly Certificate[];
  signer: CertificateAndKey;
  now: Date;
}

async function build(given: Json): Promise<Built> {
  const now = given.unixNow ? new Date(given.unixNow * 1000) : nowOf(given);
  const algorithm: KeyAlgorithm = given.keyGen === 'ECDSA-P256' ? 'P-256' : 'RSA-2048';
  const context = { keys: systemKeys, now, algorithm, lifetimeMs: seconds(given.validitySeconds ?? 3600) };
  // The signer is RSA, because the signature algorithm follows its key.
  let signer = await issueSigner({ ...context, algorithm: 'RSA-2048', commonName: 'root', lifetimeMs: seconds(315_360_000) });
  const levels = given.signerChainLength ? given.signerChainLength - 1 : Array.isArray(given.chain) ? given.chain.length - 2 : given.chain ? 2 : 0;
  for (let level = 1; level <= levels; level++) {
    signer = await issueIntermediate({ ...context, algorithm: 'RSA-2048', signer, commonName: `intermediate-${level}`, lifetimeMs: seconds(31_536_000) });
  }
  if (given.signerFixture) {
    // The fixture's key is not ours: its names and key id, with a key that we can sign with.
    const { publicKey } = signer.chain[0] as Certificate;
    signer = { chain: [{ ...fixture(given.signerFixture), publicKey }], key: signer.key };
  }
  const hooks = given.hooks?.map((words: string) => {
    const usages = /^set eku to ([\w,]+)$/.exec(words)?.[1]?.split(',');
    assert.ok(usages, `cannot read hook: ${words}`);
    return (template: { extKeyUsages: string[] }) => void (template.extKeyUsages = usages);
  });
  if (given.kind === 'signer') {
    const commonName = `${given.namespace}_${given.name}@${Math.floor(now.getTime() / 1000)}`;
    const made = await issueSigner({ ...context, commonName });
    return { leaf: made.chain[0] as Certificate, chain: made.chain, signer: made, now };
  }
  const made =
    given.kind === 'client'
      ? await issueClient({ ...context, signer, user: given.user })
      : given.kind === 'serving'
        ? await issueServing({ ...context, signer, hostnames: given.hostnames, hooks: hooks ?? [] })
        : await issueIntermediate({ ...context, signer, commonName: `${given.signerName}_@${Math.floor(now.getTime() / 1000)}` });
  return { leaf: made.chain[0] as Certificate, chain: made.chain, signer, now };
}

function checkCertificate({ leaf, chain, signer, now }: Built, expected: Json): void {
  const issuer = signer.chain[0] as Certificate;
  const same = (name: string, found: unknown) => name in expected && assert.deepEqual(found, expected[name], name);
  const x509 = new X509Certificate(leaf.der);
  if (expected.version) assert.match(x509.toLegacyObject().raw.subarray(0, 20).toString('hex'), /a003020102/);
  same('keyType', leaf.publicKey.asymmetricKeyType === 'ec' ? 'ECDSA' : leaf.publicKey.asymmetricKeyType?.toUpperCase());
  same('keyBits', leaf.publicKey.asymmetricKeyDetails?.modulusLength);
  same('signatureAlgorithm', leaf.signatureAlgorithm);
  same('serialPositive', leaf.serial > 0n);
  if (expected.serialMaxBits) assert.ok(leaf.serial < 2n ** BigInt(expected.serialMaxBits));
  if ('notBeforeRel' in expected) assert.equal(leaf.notBefore.getTime(), Math.floor(now.getTime() / 1000) * 1000 + seconds(expected.notBeforeRel));
  if ('notAfterRel' in expected) assert.equal(leaf.notAfter.getTime(), now.getTime() + seconds(expected.notAfterRel));
  if (expected.notBefore) assert.equal(formatRfc3339(leaf.notBefore), expected.notBefore);
  if (expected.notAfter) assert.equal(formatRfc3339(leaf.notAfter), expected.notAfter);
  same('cn', leaf.subject.commonName);
  if (expected.cnRegex) assert.match(leaf.subject.commonName, new RegExp(expected.cnRegex));
  if (expected.cnStringType) assert.equal(stringTypeOf(leaf.subject.der, leaf.subject.commonName), expected.cnStringType);
  same('o', leaf.subject.organizations);
  same('selfSigned', leaf.issuer.der.equals(leaf.subject.der) && x509.verify(leaf.publicKey));
  if (expected.issuer === 'signer' || expected.issuerRawEqualsSignerSubjectRaw) assert.ok(leaf.issuer.der.equals(issuer.subject.der));
  same('isCA', leaf.isCA);
  if ('pathLen' in expected) assert.equal(leaf.pathLength ?? null, expected.pathLen);
  same('keyUsage', leaf.keyUsages);
  same('eku', leaf.extKeyUsages);
  same('dns', leaf.dnsNames);
  same('ip', leaf.ipAddresses);
  if ('ski' in expected) assert.equal(leaf.subjectKeyId !== undefined, expected.ski);
  if (expected.aki === '= ski') assert.ok(leaf.authorityKeyId?.equals(leaf.subjectKeyId!));
  if (expected.aki === '= signer ski') assert.ok(leaf.authorityKeyId?.equals(issuer.subjectKeyId!));
  if (expected.akiHex) assert.equal(leaf.authorityKeyId?.toString('hex'), expected.akiHex);
  same('chainLength', chain.length);
  same('san', leaf.dnsNames.length + leaf.ipAddresses.length > 0);
  const critical = (oid: string) => leaf.der.includes(Buffer.from(`${oid}0101ff`, 'hex'));
  same('basicConstraintsCritical', critical('0603551d13'));
  same('basicConstraintsPresent', leaf.der.includes(Buffer.from('0603551d13', 'hex')));
  same('keyUsageCritical', critical('0603551d0f'));
  same('sanCritical', critical('0603551d11'));
  const verify = (roots: readonly Certificate[], host?: string) =>
    verifyChain({ leaf, intermediates: chain.slice(1, -1), roots, now, usage: 'serverAuth', ...(host && { host }) });
  for (const host of expected.verifiesFor ?? []) assert.ok(verify(chain.slice(-1), host).ok, host);
  for (const host of expected.failsFor ?? []) assert.ok(!verify(chain.slice(-1), host).ok, host);
  if (expected.chainLengthVerified) {
    const verdict = verify(chain.slice(-1));
    assert.equal(verdict.ok && verdict.chain.length, expected.chainLengthVerified);
  }
  if (expected.clientTrusts) {
    // Only the leaf is served, so no intermediates: what is listed as trusted must do.
    const [, delta, bravo, alfa] = chain as [Certificate, Certificate, Certificate, Certificate];
    const anchors: Record<string, Certificate[]> = { nothing: [], leaf: [leaf], SignerDelta: [delta], 'SignerDelta+SignerBravo': [delta, bravo], 'all three': [delta, bravo, alfa] };
    for (const [trusted, accepted] of Object.entries(expected.clientTrusts)) {
      const roots = anchors[trusted];
      assert.ok(roots, trusted);
      assert.equal(verifyChain({ leaf, roots, now, usage: 'serverAuth' }).ok, accepted, trusted);
    }
  }
}

/** A certificate that only exists as a description: no real one is valid in the year 1. */
function imaginary(given: Json): Certificate {
  const name = (commonName: string, organizations: string[] = []) => ({ commonName, organizations, organizationalUnits: [], serialNumber: '', der: Buffer.alloc(0) });
  return {
    ...fixture('recovery-signer'),
    subject: name(given.subjectCN, given.o),
    issuer: name(given.issuerCN),
    notBefore: new Date(given.notBefore),
    notAfter: new Date(given.notAfter),
    extKeyUsages: (given.eku ?? given.usages ?? []).map((usage: string) => ({ client: 'clientAuth', serving: 'serverAuth' })[usage] ?? usage),
    dnsNames: given.dns ?? [],
    ipAddresses: given.ip ?? given.ips ?? [],
  };
}

function signerConfig(config: Json): SignerConfig {
  const { validitySeconds, refreshSeconds, creator: _, owner, ...rest } = config;
  return { ...rest, validityMs: seconds(validitySeconds), refreshMs: seconds(refreshSeconds), ...(owner && { owner: ownerFrom(owner) }) };
}

/** The vectors name an owner by its name alone; the API wants the rest too. */
function ownerFrom(owner: { name: string }): OwnerReference {
  return { apiVersion: 'v1', kind: 'Operator', uid: 'uid', ...owner };
}

function creatorFrom(spec: Json): CertCreator {
  switch (spec.kind) {
    case 'serving':
      return servingCreator({ hostnames: spec.hostnames });
    case 'peer':
      return peerCreator({ hostnames: spec.hostnames, user: spec.user });
    case 'client':
      return clientCreator(spec.user);
    case 'signer':
      return signerCreator(spec.signerName);
    default:
      throw new Error(`no creator ${spec.kind}`);
  }
}

function decisionFrom(reason: string, now: Date): Decision {
  if (reason) return { action: 'regenerate', rule: 'test', reason };
  return { action: 'keep', until: new Date(now.getTime() + 1000), nextRule: 'test', nextReason: '' };
}

function checkDecision(decision: Decision, expected: Json, now: Date): void {
  assert.equal(decision.action === 'regenerate', expected.rotate, JSON.stringify(decision));
  const { reason = null } = expected;
  if (decision.action === 'regenerate') assertMatches(decision.reason, reason, now);
  else assert.equal(reason, null);
  // Whoever keeps, says until when, and that lies ahead.
  if (decision.action === 'keep') assert.ok(decision.until > now);
}

function annotationsFrom(spec: Record<string, Json>, now: Date): Record<string, string> {
  const keys: Record<string, string> = { notAfter: NOT_AFTER, notBefore: NOT_BEFORE, issuer: ISSUER, hostnames: HOSTNAMES };
  const entries = Object.entries(spec).map(([name, value]) => {
    const text = typeof value === 'string' ? value : (value.lit ?? formatRfc3339(new Date(now.getTime() + seconds(value.rel))));
    return [keys[name] ?? name, text];
  });
  return Object.fromEntries(entries);
}

function policyOf(given: Json) {
  return { validityMs: seconds(1), refreshMs: seconds(given.refreshSeconds), refreshOnlyWhenExpired: given.refreshOnlyWhenExpired as boolean };
}

function nowOf(given: Json): Date {
  return given.now ? new Date(given.now) : DEFAULT_NOW;
}

function assertMatches(value: unknown, matcher: Json, now = DEFAULT_NOW): void {
  assert.ok(matches(value, matcher, now), `found ${JSON.stringify(value)}, expected ${JSON.stringify(matcher)}`);
}

function matches(value: unknown, matcher: Json, now: Date): boolean {
  if (matcher === null) return value === null || value === undefined || value === '';
  if (typeof matcher === 'string') return value === matcher;
  if (typeof value !== 'string') return false;
  if (matcher.any) return value !== '';
  if (matcher.prefix !== undefined) return value.startsWith(matcher.prefix);
  if (matcher.contains !== undefined) return value.includes(matcher.contains);
  if (matcher.regex !== undefined) return new RegExp(matcher.regex).test(value);
  if (matcher.anyOf !== undefined) return matcher.anyOf.some((one: Json) => matches(value, one, now));
  if (matcher.rfc3339rel !== undefined) {
    const parsed = parseRfc3339(value);
    const offBy = Number((parsed?.nanos ?? 0n) / 1_000_000_000n) - now.getTime() / 1000 - matcher.rfc3339rel;
    return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value) && Math.abs(offBy) <= matcher.tolerance;
  }
  throw new Error(`unknown matcher ${JSON.stringify(matcher)}`);
}

function fixture(id: string): Certificate {
  const [certificate] = readCertificates(file.fixtures[id]?.pem ?? '').certificates;
  assert.ok(certificate, `no fixture ${id}`);
  return certificate;
}

function pemOf(certificate: Certificate): string {
  const lines = certificate.der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function base64(text: string): string {
  return Buffer.from(text, 'latin1').toString('base64');
}

/** Children of the outer SEQUENCE of a DER name. */
function rdnCount(name: Buffer): number {
  let [offset, count] = [name[1]! < 0x80 ? 2 : 2 + (name[1]! & 0x7f), 0];
  while (offset < name.length) {
    const long = name[offset + 1]! >= 0x80;
    const length = long ? name.readUIntBE(offset + 2, name[offset + 1]! & 0x7f) : name[offset + 1]!;
    offset += 2 + (long ? name[offset + 1]! & 0x7f : 0) + length;
    count++;
  }
  return count;
}

function stringTypeOf(name: Buffer, text: string): string {
  const at = name.indexOf(Buffer.from(text, 'utf8'));
  const tag = name[at - 2];
  return tag === 0x0c ? 'UTF8String' : tag === 0x13 ? 'PrintableString' : `tag ${tag}`;
}
