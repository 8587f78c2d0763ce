import { knownWord } from '../run-case.ts';
import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { HOSTNAMES, ISSUER, NOT_AFTER, NOT_BEFORE } from '../../../src/certrotation/annotations.ts';
import { BUNDLE_KEY } from '../../../src/certrotation/bundle.ts';
import { clientCreator } from '../../../src/certrotation/creator.ts';
import { type Decision, regenerate } from '../../../src/certrotation/decision.ts';
import { liveObjects } from '../../../src/certrotation/ensure.ts';
import { ObjectLocks } from '../../../src/certrotation/locks.ts';
import { withCertificate } from '../../../src/certrotation/secret.ts';
import { decideSignerByAnnotations } from '../../../src/certrotation/signer.ts';
import { followSigner } from '../../../src/certrotation/signer-change.ts';
import { ensureTarget } from '../../../src/certrotation/target.ts';
import { ensureBundleOf } from '../../../src/etcd/bundle.ts';
import { NODE_LEAVES } from '../../../src/etcd/cert-table.ts';
import { bundleConfig, clientLeaf, hostnamesOfNode, nodeLeaves } from '../../../src/etcd/certificates.ts';
import { SHORT_LIFETIMES } from '../../../src/etcd/lifetimes.ts';
import { profile416, profileLater } from '../../../src/etcd/profile.ts';
import { renderCertificates } from '../../../src/etcd/render.ts';
import { NOW, TestEtcd } from '../../../src/etcd/testing.ts';
import { VirtualClock } from '../../../src/kube/clock.ts';
import { days } from '../../../src/kube/duration.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import { CONFIG_MAPS, NODES, SECRETS } from '../../../src/kube/resource.ts';
import { formatRfc3339 } from '../../../src/kube/time.ts';
import type { CertificateAndKey } from '../../../src/pki/authority.ts';
import type { Certificate } from '../../../src/pki/certificate.ts';
import { issueClient, issuePeer, issueSigner } from '../../../src/pki/issue.ts';
import { systemKeys } from '../../../src/pki/keys.ts';
import { readCertificates } from '../../../src/pki/pem.ts';
import { publicKeyInfoOf } from '../../../src/pki/signature.ts';
import { signTemplate } from '../../../src/pki/template.ts';
import { type Adapter, type Json, profileOf } from './case.ts';

const OPTIONS = { keys: systemKeys, algorithm: 'P-256' } as const;

export const certificateAdapters: Record<string, Adapter> = {
  'signer-decision': {
    given: ['signerAgeDays', 'validityDays', 'refreshDays'],
    expected: ['rotate', 'reasonPrefix', 'reason'],
    run({ given, expected }) {
      const annotations = timesOf(given.signerAgeDays, given.validityDays);
      const policy = { validityMs: days(given.validityDays), refreshMs: days(given.refreshDays) };
      checkDecision(decideSignerByAnnotations(annotations, policy, NOW), expected);
    },
  },

  'forced-rotation': {
    given: ['objectKind', 'annotations', 'now', 'validityDays', 'refreshDays', 'issuerAnnotation'],
    expected: ['rotate', 'reason', 'reasonPrefix'],
    async run({ given, expected }) {
      const now = new Date(given.now);
      const policy = { validityMs: days(given.validityDays), refreshMs: days(given.refreshDays) };
      // 4.16 asks the wrong variable and calls a missing not-before a bad expiry; the effect is the same (spec 40, 0.9).
      const isMisnamed = expected.reason === 'bad expiry: ""' && given.annotations[NOT_BEFORE] === undefined;
      const wanted = isMisnamed ? { ...expected, reason: 'missing notBefore' } : expected;
      if (given.objectKind === 'signer') {
        checkDecision(decideSignerByAnnotations(given.annotations, policy, now), wanted);
        return;
      }
      const signer = await makeSigner('signer', { now: new Date(now.getTime() - days(400)) });
      const annotations = { [ISSUER]: 'signer', ...given.annotations };
      const creator = clientCreator({ name: 'x' });
      const question = { secret: { metadata: { annotations } }, signer: signer.chain, bundle: signer.chain, refreshOnlyWhenExpired: false };
      checkDecision(creator.decide({ ...question, refreshMs: policy.refreshMs, now }), wanted);
    },
  },

  'leaf-decision': {
    given: [
      'innerReason',
      'signerCommonName',
      'signerHasSubjectKeyId',
      'leafIssuedByCurrentSigner',
      'annotationsFresh',
      'issuerCommonNameInBundle',
      'leafAgeDays',
      'leafValidityDays',
      'refreshDays',
      'signerAgeDays',
      'scope',
      'annotations',
      'issuerAnnotation',
      'bundleCommonNames',
      'node',
      'internalIPsBefore',
      'internalIPsAfter',
      'dataKeys',
      'tlsCrt',
      'secretName',
    ],
    expected: [
      'reason',
      'reasonPrefix',
      'reasonContains',
      'rotate',
      'secretUpdated',
      'rotatedSecrets',
      'newDnsNamesContain',
      'extKeyUsage',
      'etcdAllCertsChanged',
    ],
    async run({ given, expected }, version) {
      if (given.innerReason !== undefined) return decideThroughWrapper(given, expected);
      if (given.internalIPsAfter !== undefined) return changeAddress(given, expected, version === '4.16');
      for (const word of [given.annotationsFresh, given.issuerCommonNameInBundle]) knownWord(word, undefined, true);
      knownWord(given.scope, undefined, 'time test alone');
      if (given.leafIssuedByCurrentSigner !== undefined) return changeSigner(given, expected);
      if (given.dataKeys !== undefined || given.tlsCrt !== undefined) return decideContent(given, expected);
      if (given.leafAgeDays !== undefined) return decideByTime(given, expected);
      const now = new Date('2025-01-01T00:00:00Z');
      const names: string[] = given.bundleCommonNames ?? ['signer'];
      const bundle = (await Promise.all(names.map(name => makeSigner(name, { now: new Date('2023-01-01') })))).flatMap(({ chain }) => chain);
      const issuer = given.issuerAnnotation ? { [ISSUER]: given.issuerAnnotation } : {};
      const secret = { metadata: { annotations: { ...given.annotations, ...issuer } } };
      const creator = clientLeaf('server', { lifetimes: profileOf(version).lifetimes }).creator;
      checkDecision(creator.decide({ secret, signer: bundle, bundle, refreshMs: days(1533), refreshOnlyWhenExpired: false, now }), expected);
    },
  },

  'leaf-issue': {
    given: ['requestedDays', 'signerRemainingDays'],
    expected: ['issuedDays'],
    async run({ given, expected }) {
      const signer = await makeSigner('signer', { lifetimeDays: given.signerRemainingDays });
      const { chain } = await issueClient({ ...OPTIONS, signer, user: { name: 'x' }, lifetimeMs: days(given.requestedDays), now: NOW });
      assert.equal((chain[0] as Certificate).notAfter.getTime() - NOW.getTime(), days(expected.issuedDays));
    },
  },

  san: {
    given: ['nodeInternalIPs', 'nodeHostnameAddresses'],
    expected: ['subjectCN', 'ipAddresses', 'dnsNames', 'hostnamesAnnotation', 'error', 'errorPrefix'],
    async run({ given, expected }, version) {
      const addresses = [
        ...given.nodeInternalIPs.map((address: string) => ({ type: 'InternalIP', address })),
        ...(given.nodeHostnameAddresses ?? []).map((address: string) => ({ type: 'Hostname', address })),
      ];
      const node = { metadata: { name: 'master-0' }, status: { addresses } };
      if (expected.error !== undefined || expected.errorPrefix !== undefined) {
        assert.throws(() => nodeLeaves([node], { lifetimes: profileOf(version).lifetimes }));
        return;
      }
      const signer = await makeSigner('signer');
      for (const row of NODE_LEAVES) {
        const { chain } = await issuePeer({ ...OPTIONS, signer, hostnames: hostnamesOfNode(node, row), lifetimeMs: days(1), now: NOW });
        const leaf = chain[0] as Certificate;
        assert.equal(leaf.subject.commonName, expected.subjectCN);
        assert.deepEqual(leaf.ipAddresses, expected.ipAddresses);
        assert.deepEqual(leaf.dnsNames, expected.dnsNames);
        const [target] = nodeLeaves([node], { lifetimes: profileOf(version).lifetimes });
        assert.equal(target?.target.creator.annotations(leaf)[HOSTNAMES], expected.hostnamesAnnotation);
      }
    },
  },

  'ca-bundle': {
    given: ['certs', 'bundle', 'add', 'expired'],
    expected: ['sortedBy', 'stableAcrossSyncs', 'bundleAfter', 'write', 'event'],
    async run({ given, expected }) {
      if (given.certs !== undefined) assert.deepEqual(given.certs, ['any order']);
      const names: string[] = given.bundle ?? ['S0', 'S1', 'S2'];
      const expired: string[] = given.expired ?? [];
      const added: string[] = [given.add ?? names].flat();
      const made = new Map<string, CertificateAndKey>();
      for (const name of new Set([...names, ...added])) {
        const now = expired.includes(name) ? new Date(NOW.getTime() - days(10)) : NOW;
        made.set(name, await makeSigner(name, { now, lifetimeDays: expired.includes(name) ? 5 : 1825 }));
      }
      const world = await bundleWorld();
      const ensure = async (name: string) => {
        const certificate = (made.get(name) as CertificateAndKey).chain[0] as Certificate;
        await ensureBundleOf(bundleConfig('server'), [{ namespace: 'openshift-etcd', name, certificate }], world.rotation);
      };
      if (given.bundle !== undefined) {
        const text = names.map(name => pemOf((made.get(name) as CertificateAndKey).chain[0] as Certificate));
        await world.put(text.sort().join(''));
        for (const name of names.filter(other => !expired.includes(other)).slice(0, 1)) await ensure(name);
      }
      world.events.length = 0;
      const before = await world.read();
      for (const name of added) await ensure(name);
      const after = await world.read();
      const found = readCertificates(after?.data?.[BUNDLE_KEY] ?? '').certificates;
      if (expected.sortedBy !== undefined) {
        assert.equal(expected.sortedBy, 'raw DER bytes ascending');
        assert.deepEqual(found.map(({ der }) => der), found.map(({ der }) => der).toSorted(Buffer.compare));
      }
      if (expected.stableAcrossSyncs) {
        for (const name of added.toReversed()) await ensure(name);
        assert.equal((await world.read())?.metadata?.resourceVersion, after?.metadata?.resourceVersion);
      }
      if (expected.bundleAfter !== undefined) {
        assert.deepEqual(found.map(({ subject }) => subject.commonName).toSorted(), expected.bundleAfter.toSorted());
      }
      if (expected.write !== undefined) assert.equal(before?.metadata?.resourceVersion !== after?.metadata?.resourceVersion, expected.write);
      if (expected.event !== undefined) {
        const reasons = world.events.filter(({ reason }) => reason === 'CABundleUpdateRequired').map(({ reason }) => reason);
        assert.deepEqual(reasons, expected.event === null ? [] : [expected.event]);
      }
    },
  },

  aggregate: {
    given: ['nodes', 'nodesBefore', 'nodesAfter'],
    expected: [
      'secret',
      'type',
      'dataKeys',
      'annotations',
      'aggregateKeysRemoved',
      'aggregateKeysAdded',
      'newRevision',
      'perNodeSecretsDeletedNow',
      'filesOnDiskRemoved',
      'existingLeavesChanged',
    ],
    async run({ given, expected }, version) {
      const names: string[] = given.nodes ?? given.nodesBefore;
      const nodes = Object.fromEntries(names.map((name, index) => [name, [`10.0.0.${index + 1}`]]));
      const etcd = await TestEtcd.create({ kube: new MemoryKube(), nodes, quorum: async () => ({ safe: true }) });
      await etcd.settle();
      const before = await etcd.secret('etcd-all-certs');
      if (expected.dataKeys !== undefined) assert.deepEqual(Object.keys(before.data ?? {}).toSorted(), expected.dataKeys.toSorted());
      if (expected.secret !== undefined) assert.equal(`${before.metadata?.namespace}/${before.metadata?.name}`, expected.secret);
      if (expected.type !== undefined) assert.equal(before.type, expected.type);
      if (expected.annotations !== undefined) assert.deepEqual(before.metadata?.annotations, expected.annotations);
      if (given.nodesAfter === undefined) return;
      for (const name of names.filter(other => !given.nodesAfter.includes(other))) await etcd.removeNode(name);
      for (const name of given.nodesAfter.filter((other: string) => !names.includes(other))) await etcd.addNode(name, ['10.0.0.99']);
      await etcd.sync();
      const [was, is] = [before.data ?? {}, (await etcd.secret('etcd-all-certs')).data ?? {}];
      const removed = Object.keys(was).filter(key => is[key] === undefined);
      const added = Object.keys(is).filter(key => was[key] === undefined);
      if (expected.aggregateKeysRemoved !== undefined) assert.deepEqual(removed.toSorted(), expected.aggregateKeysRemoved.toSorted());
      if (expected.aggregateKeysAdded !== undefined) assert.deepEqual(added.toSorted(), expected.aggregateKeysAdded.toSorted());
      // A revision is cut when the data of a revisioned object changes (spec 40, P-1).
      const isRevisioned = profileOf(version).revisioned.secrets.some(({ name }) => name === 'etcd-all-certs');
      if (expected.newRevision !== undefined) assert.equal(isRevisioned && removed.length + added.length > 0, expected.newRevision);
      const changed = Object.keys(is).filter(key => was[key] !== undefined && was[key] !== is[key]);
      assert.deepEqual(changed.length > 0, expected.existingLeavesChanged ?? false);
      if (expected.perNodeSecretsDeletedNow !== undefined) {
        const { items } = await etcd.kube.list(SECRETS, { namespace: 'openshift-etcd' });
        const secrets = new Set(items.map(({ metadata }) => metadata?.name));
        const isDeleted = removed.some(key => !secrets.has(key.replace(/\.(crt|key)$/, '')));
        assert.equal(isDeleted, expected.perNodeSecretsDeletedNow);
      }
      // Files of a node are written by its installer and cert syncer, which delete none of a key that is gone (installerPod cases).
      knownWord(expected.filesOnDiskRemoved, undefined, false);
    },
  },

  render: {
    given: ['nodes', 'featureGates'],
    expected: ['secretCount', 'bundleCount', 'secrets', 'bundles', 'everyBundleHoldsBothSigners', 'leafValidityHours', 'signerValidityHours'],
    async run({ given, expected }, version) {
      const isShort = given.featureGates?.ShortCertRotation === true;
      const base = profileOf(version);
      const profile = isShort ? { ...base, lifetimes: SHORT_LIFETIMES } : base;
      const nodes = given.nodes.map((node: Json, index: number) => ({
        name: node.name ?? node,
        addresses: [node.internalIP ?? `192.168.2.${index + 1}`],
      }));
      const rendered = await renderCertificates({ profile, nodes, clock: new VirtualClock(NOW), keys: systemKeys, keyAlgorithm: 'P-256' });
      // Later releases render one namespace; we add the signers in use and what the API servers read.
      const counts = (namespace: string | undefined) => version === '4.16' || namespace === 'openshift-etcd';
      const secrets = rendered.secrets.filter(({ metadata }) => counts(metadata?.namespace));
      const bundles = rendered.bundles.filter(({ metadata }) => counts(metadata?.namespace));
      const place = ({ metadata }: Secret | ConfigMap) => `${metadata?.namespace}/${metadata?.name}`;
      if (expected.secrets !== undefined) assert.deepEqual(secrets.map(place).toSorted(), expected.secrets.toSorted());
      if (expected.bundles !== undefined) assert.deepEqual(bundles.map(place).toSorted(), expected.bundles.toSorted());
      assert.equal(secrets.length, expected.secretCount);
      assert.equal(bundles.length, expected.bundleCount);
      if (expected.everyBundleHoldsBothSigners) {
        for (const bundle of bundles) {
          for (const text of Object.values(bundle.data ?? {})) assert.equal(readCertificates(text).certificates.length, 2, place(bundle));
        }
      }
    },
  },
};

function checkDecision(decision: Decision, { rotate, reason, reasonPrefix, reasonContains }: Json): void {
  const found = decision.action === 'regenerate' ? decision.reason : undefined;
  if (rotate !== undefined) assert.equal(found !== undefined, rotate, found);
  if (reason !== undefined) assert.equal(found ?? null, reason);
  if (reasonPrefix) assert.ok(found?.startsWith(reasonPrefix), found);
  else if (reasonPrefix === null) assert.equal(found, undefined);
  if (reasonContains) assert.ok(found?.includes(reasonContains), found);
  else if (reasonContains === null) assert.equal(found, undefined);
}

function timesOf(ageDays: number, validityDays: number): Record<string, string> {
  const start = NOW.getTime() - days(ageDays);
  return { [NOT_BEFORE]: formatRfc3339(new Date(start)), [NOT_AFTER]: formatRfc3339(new Date(start + days(validityDays))) };
}

function makeSigner(commonName: string, { now = NOW, lifetimeDays = 1825 } = {}): Promise<CertificateAndKey> {
  return issueSigner({ ...OPTIONS, commonName, lifetimeMs: days(lifetimeDays), now });
}

/** A CA as other tools make them, without a key id. */
async function signerWithoutKeyId(commonName: string): Promise<CertificateAndKey> {
  const key = await systemKeys.generate('P-256');
  const publicKey = createPublicKey(key);
  const template = {
    serial: BigInt(Math.floor(Math.random() * 2 ** 40) + 1),
    notBefore: new Date(NOW.getTime() - days(1)),
    notAfter: new Date(NOW.getTime() + days(1825)),
    isCA: true,
    subject: { commonName },
    keyUsages: ['digitalSignature', 'keyCertSign'] as ('digitalSignature' | 'keyCertSign')[],
    extKeyUsages: [],
    dnsNames: [],
    ipAddresses: [],
    subjectKeyId: undefined,
    authorityKeyId: undefined,
    extraExtensions: [],
  };
  const certificate = await signTemplate(template, publicKeyInfoOf(publicKey), { name: undefined, key, publicKey }, systemKeys);
  return { chain: [certificate], key };
}

function decideThroughWrapper(given: Json, expected: Json): void {
  const inner = { ...clientCreator({ name: 'x' }), decide: () => regenerate('inner', given.innerReason) };
  const question = { secret: { metadata: {} }, signer: [], bundle: [], refreshMs: 1, refreshOnlyWhenExpired: false, now: NOW };
  checkDecision(followSigner(inner).decide(question), expected);
}

function decideByTime(given: Json, expected: Json): Promise<void> {
  return makeSigner('signer', { now: new Date(NOW.getTime() - days(given.signerAgeDays)), lifetimeDays: 10_000 }).then(signer => {
    const annotations = { ...timesOf(given.leafAgeDays, given.leafValidityDays), [ISSUER]: 'signer' };
    const creator = clientCreator({ name: 'x' });
    const secret = { metadata: { annotations } };
    const question = { secret, signer: signer.chain, bundle: signer.chain, refreshMs: days(given.refreshDays), refreshOnlyWhenExpired: false, now: NOW };
    checkDecision(creator.decide(question), expected);
  });
}

async function decideContent(given: Json, expected: Json): Promise<void> {
  const signer = await makeSigner('signer', { now: new Date(NOW.getTime() - days(400)) });
  const text = given.tlsCrt ?? 'x';
  const keys: string[] = given.dataKeys ?? ['tls.crt', 'tls.key'];
  const secret: Secret = {
    metadata: { name: given.secretName, annotations: { ...timesOf(1, 1095), [ISSUER]: 'signer' } },
    data: Object.fromEntries(keys.map(key => [key, Buffer.from(text).toString('base64')])),
  };
  const { creator } = clientLeaf('server', profile416());
  checkDecision(creator.decide({ secret, signer: signer.chain, bundle: signer.chain, refreshMs: days(803), refreshOnlyWhenExpired: false, now: NOW }), expected);
}

/** Old and new signer share a name, so only the key tells them apart (spec 40, L-9). */
async function changeSigner(given: Json, expected: Json): Promise<void> {
  const make = () => (given.signerHasSubjectKeyId ? makeSigner(given.signerCommonName) : signerWithoutKeyId(given.signerCommonName));
  const [old, current] = [await make(), await make()];
  const kube = new MemoryKube();
  const clock = new VirtualClock(NOW);
  const events = recordingEvents();
  const config = { ...clientLeaf('server', profile416()), keyAlgorithm: 'P-256' } as const;
  const signedBy = given.leafIssuedByCurrentSigner ? current : old;
  const leaf = await config.creator.make({ signer: signedBy, lifetimeMs: days(1095), now: NOW, keys: systemKeys, algorithm: 'P-256' });
  const secret: Secret = { metadata: { namespace: config.namespace, name: config.name }, type: 'kubernetes.io/tls' };
  const stored = await kube.create(SECRETS, withCertificate(secret, leaf, 'target', config.refreshMs));
  const bundle = [...old.chain, ...current.chain];
  const question = { secret: stored, signer: current.chain, bundle, refreshMs: config.refreshMs, refreshOnlyWhenExpired: false, now: NOW };
  checkDecision(config.creator.decide(question), expected);
  const rotation = { kube, objects: liveObjects(kube), clock, keys: systemKeys, events, locks: new ObjectLocks() };
  await ensureTarget(config, current, bundle, rotation);
  const after = await kube.get(SECRETS, config);
  if (expected.secretUpdated !== undefined) assert.equal(after.data?.['tls.crt'] !== stored.data?.['tls.crt'], expected.secretUpdated);
}

async function changeAddress(given: Json, expected: Json, is416: boolean): Promise<void> {
  const nodes = { 'master-0': ['10.0.0.1'], [given.node]: given.internalIPsBefore, 'master-2': ['10.0.0.3'] };
  const etcd = await TestEtcd.create({ kube: new MemoryKube(), nodes, profile: { ...profileLater(), lifetimes: (is416 ? profile416() : profileLater()).lifetimes } });
  await etcd.settle();
  const before = await etcd.snapshot('openshift-etcd');
  const node = await etcd.kube.get(NODES, { name: given.node });
  const addresses = given.internalIPsAfter.map((address: string) => ({ type: 'InternalIP', address }));
  await etcd.kube.updateStatus(NODES, { ...node, status: { addresses } });
  etcd.events.length = 0;
  await etcd.sync();
  const after = await etcd.snapshot('openshift-etcd');
  const changed = [...after].filter(([name, content]) => before.get(name) !== content).map(([name]) => name.replace(/^\S+ [^/]+\//, ''));
  assert.deepEqual(changed.filter(name => name !== 'etcd-all-certs').toSorted(), expected.rotatedSecrets.toSorted());
  assert.equal(changed.includes('etcd-all-certs'), expected.etcdAllCertsChanged);
  const messages = etcd.events.filter(({ reason }) => reason === 'TargetUpdateRequired').map(({ message }) => message);
  assert.ok(messages.every(message => message.endsWith(expected.reason)), messages.join('\n'));
  for (const name of expected.rotatedSecrets) {
    const leaf = await etcd.certificate(name);
    for (const wanted of expected.newDnsNamesContain ?? []) assert.ok(leaf.dnsNames.includes(wanted));
    if (expected.extKeyUsage !== undefined) assert.deepEqual(leaf.extKeyUsages, expected.extKeyUsage);
  }
}

async function bundleWorld() {
  const kube = new MemoryKube();
  const events = recordingEvents();
  const rotation = { kube, objects: liveObjects(kube), clock: new VirtualClock(NOW), keys: systemKeys, events, locks: new ObjectLocks() };
  const key = { namespace: 'openshift-etcd', name: 'etcd-ca-bundle' };
  return {
    rotation,
    events: events.events,
    read: (): Promise<ConfigMap | undefined> => kube.get(CONFIG_MAPS, key).catch(() => undefined),
    put: (text: string) => kube.create(CONFIG_MAPS, { metadata: key, data: { [BUNDLE_KEY]: text } }),
  };
}

function pemOf({ der }: Certificate): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
