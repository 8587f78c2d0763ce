/**
 * The tables of ckao-vectors.json against the data the controllers of src/kube-apiserver work with. A table this file does
 * not know fails; those that only tell in words what the cases show are named in `IN_WORDS`.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import * as annotations from '../../src/certrotation/annotations.ts';
import { BUNDLE_KEY } from '../../src/certrotation/bundle.ts';
import { liveObjects, type Rotation } from '../../src/certrotation/ensure.ts';
import { ObjectLocks } from '../../src/certrotation/locks.ts';
import { reconcileUnit } from '../../src/certrotation/reconcile.ts';
import { rotationDay, parseScale } from '../../src/certrotation/scale.ts';
import { loadSecret, TLS_CERT, TLS_KEY, TLS_SECRET } from '../../src/certrotation/secret.ts';
import {
  type CertificateObject,
  type Chain,
  CHAIN_ANNOTATIONS,
  KUBE_APISERVER_CHAINS,
  signersOf,
} from '../../src/kube-apiserver/chains.ts';
import { COMBINED_BUNDLES, combinedConfigMap } from '../../src/kube-apiserver/combined-bundles.ts';
import { CONDITION_TYPES, rotationCondition } from '../../src/kube-apiserver/conditions.ts';
import { type CopyRule, FIXED_COPIES } from '../../src/kube-apiserver/copies.ts';
import * as namespaces from '../../src/kube-apiserver/namespaces.ts';
import { observeAll } from '../../src/kube-apiserver/observe/observe.ts';
import type { ObserveInputs } from '../../src/kube-apiserver/observe/observation.ts';
import {
  hostDirectoryOf,
  mountedDirectoryOf,
  OPERAND_OBJECTS,
  type OperandObject,
  operandRef,
  REVISIONED,
  UNREVISIONED,
} from '../../src/kube-apiserver/operand-objects.ts';
import { ROTATION_BASE } from '../../src/kube-apiserver/rotation/base.ts';
import { hostnameSources } from '../../src/kube-apiserver/rotation/follow-hostnames.ts';
import { decideHostnames } from '../../src/kube-apiserver/rotation/hostnames.ts';
import { rotationUnits } from '../../src/kube-apiserver/rotation/units.ts';
import { kubeApiserverTrust } from '../../src/kube-apiserver/trust.ts';
import { VirtualClock } from '../../src/kube/clock.ts';
import { days, minutes, seconds } from '../../src/kube/duration.ts';
import { recordingEvents } from '../../src/kube/events.ts';
import { MemoryKube } from '../../src/kube/memory.ts';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resource.ts';
import type { Certificate } from '../../src/pki/certificate.ts';
import { issueClient, issueServing, issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodePrivateKey } from '../../src/pki/pem.ts';
import { MANIFEST_MODE } from '../../src/staticpod/node/manifest.ts';
import { fileMode } from '../../src/staticpod/node/object-files.ts';
import { effectOfChange, verdictOf } from '../../src/trust/effect.ts';
import { configMap, secret } from '../../src/trust/object.ts';

// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

const file = JSON.parse(readFileSync(new URL('ckao-vectors.json', import.meta.url), 'utf8')) as Record<string, Json>;
const graph = kubeApiserverTrust();
const NOW = new Date('2026-01-01T00:00:00Z');

/** Words about rules that the cases and the other tables exercise. */
const IN_WORDS = new Set(['schema', 'baseline', 'cases', 'decisionRules', 'combinationRule']);

/** How the table of an object says what a change does. */
const EFFECTS: Record<string, RegExp> = {
  restart: /^new-revision$/,
  reload: /^hot-reload/,
  'file-only': /^(file-sync-only$|never produced)/,
};

const tables: Record<string, (table: Json) => void | Promise<void>> = {
  namespaces(table) {
    assert.deepEqual(table, {
      operator: namespaces.OPERATOR_NAMESPACE,
      operand: namespaces.OPERAND_NAMESPACE,
      userConfig: namespaces.CONFIG_NAMESPACE,
      managedConfig: namespaces.MANAGED_NAMESPACE,
    });
  },

  async certificateFormat(table) {
    // The unit's default, not the tests' P-256.
    const context = { keys: systemKeys, now: NOW, lifetimeMs: days(1) };
    const ca = await issueSigner({ ...context, commonName: 'ns_name@1767225600' });
    const leaf = (await issueServing({ ...context, signer: ca, hostnames: ['localhost', '127.0.0.1'] })).chain[0] as Certificate;
    const client = await issueClient({ ...context, signer: ca, user: { name: 'x', groups: ['ccc', 'b', 'aa', 'a'] } });
    const [authority] = ca.chain as [Certificate];
    const { publicKey } = leaf;
    assert.equal(publicKey.asymmetricKeyType?.toUpperCase(), table.keyAlgorithm);
    assert.equal(publicKey.asymmetricKeyDetails?.modulusLength, table.keyBits);
    assert.equal(leaf.signatureAlgorithm, { SHA256WithRSA: 'sha256WithRSAEncryption' }[table.signature as string]);
    assert.ok(table.keyPem.startsWith(/-----BEGIN (.*)-----/.exec(encodePrivateKey(ca.key))?.[1]));
    assert.equal(leaf.notBefore.getTime() - NOW.getTime(), seconds(table.notBeforeSkewSeconds));
    assert.ok(leaf.serial > 0n && leaf.serial < 2n ** 63n, table.serial);
    assert.deepEqual(authority.keyUsages, table.signerKeyUsage);
    assert.deepEqual(leaf.keyUsages, table.leafKeyUsage);
    assert.deepEqual([leaf.dnsNames, leaf.ipAddresses], [['localhost', '127.0.0.1'], ['127.0.0.1']], table.servingSANs);
    assert.deepEqual(client.chain[0]?.subject.organizations, ['a', 'b', 'aa', 'ccc'], table.groupOrder);
  },

  annotations(table) {
    const { notBefore, notAfter, issuer, hostnames, owningComponent } = table;
    assert.deepEqual(
      [notBefore, notAfter, issuer, hostnames],
      [annotations.NOT_BEFORE, annotations.NOT_AFTER, annotations.ISSUER, annotations.HOSTNAMES],
    );
    const { result } = annotations.withDescriptions({}, CHAIN_ANNOTATIONS);
    assert.deepEqual(result, { [owningComponent]: 'kube-apiserver' });
  },

  labels(table) {
    assert.equal(table.managedType, annotations.MANAGED_CERTIFICATE_TYPE);
    for (const value of table.values) assert.equal(annotations.roleOf({ [table.managedType]: value }), value);
  },

  rotationBase(table) {
    assert.deepEqual(table.configMap, [ROTATION_BASE.namespace, ROTATION_BASE.name]);
    assert.equal(rotationDay(parseScale({ data: { [table.key]: '1m' } })), minutes(1));
    assert.equal(rotationDay(parseScale({ data: { [table.key]: table.maximum } })), days(1));
    assert.throws(() => parseScale({ data: { [table.key]: '24h1s' } }));
    const objects = KUBE_APISERVER_CHAINS.flatMap(({ signer, target }) => [signer, target]);
    const named = (scaled: boolean) =>
      new Set(objects.filter(object => object.in416.scaled === scaled).map(({ name }) => name));
    assert.deepEqual(named(true), new Set(table.scaled));
    assert.deepEqual(named(false), new Set(table.notScaled));
  },

  hostnameSources(table) {
    const status = { apiServerURL: 'https://ext:1', apiServerInternalURI: 'https://int:1' };
    const inputs = { network: { status: { serviceNetwork: ['10.0.0.0/8'] } }, infrastructure: { status } };
    const found = {
      'service-network': 10 - 1,
      'external-load-balancer': ['ext'],
      'internal-load-balancer': ['int'],
    } as const;
    for (const [source, expected] of Object.entries(found)) {
      assert.ok(table[source], source);
      const answer = decideHostnames(source as keyof typeof found, inputs);
      assert.ok(answer.ok);
      if (typeof expected === 'number') assert.equal(answer.hostnames.length, expected);
      else assert.deepEqual(answer.hostnames, expected);
    }
    const known = new Set([...Object.keys(found), 'static', 'nodeAddresses']);
    assert.deepEqual(new Set(Object.keys(table)), known);
  },

  chains(table) {
    assert.equal(table.length, KUBE_APISERVER_CHAINS.length);
    for (const [index, row] of table.entries()) checkChain(row, KUBE_APISERVER_CHAINS[index] as Chain, index);
  },

  signers(table) {
    const found = signersOf(KUBE_APISERVER_CHAINS).map(({ signer, bundle, chains }) => ({
      namespace: signer.namespace,
      name: signer.name,
      caBundle: [bundle.namespace, bundle.name],
      usedBy: chains.map(({ controller }) => controller),
      ...lifetime(signer),
    }));
    assert.deepEqual(found, table);
  },

  revisioned(table) {
    checkObjects(table, 'revision');
    assert.equal(REVISIONED.configMaps[0]?.name, 'kube-apiserver-pod', table.orderMatters);
  },

  unrevisioned(table) {
    checkObjects(table, 'sync');
    assert.equal(table.directory, UNREVISIONED.directory);
  },

  fileModes(table) {
    const octal = (mode: number) => `0${mode.toString(8)}`;
    const { certSyncer, installer } = table;
    assert.equal(octal(fileMode('cert-syncer', 'configmaps', 'x')), certSyncer.configMapFiles);
    assert.equal(octal(fileMode('cert-syncer', 'secrets', 'x')), certSyncer.secretFiles);
    assert.equal(octal(fileMode('installer', 'configmaps', 'x')), installer.configMapFiles);
    assert.equal(octal(fileMode('installer', 'secrets', 'x')), installer.secretFiles);
    assert.equal(octal(fileMode('installer', 'configmaps', 'x.sh')), installer.shSuffixConfigMap);
    assert.equal(octal(fileMode('installer', 'secrets', 'x.sh')), installer.shSuffixSecret);
    assert.equal(octal(MANIFEST_MODE), installer.manifest);
  },

  caBundles(table) {
    for (const row of table) {
      const { destination, sources, kind } = row;
      const published = FIXED_COPIES.filter(
        ({ source }) => source?.namespace === destination.namespace && source?.name === destination.name,
      ).map(rule => rule.destination);
      assert.deepEqual(published, row.publishedAs, destination.name);
      const effects = effectOfChange(graph, configMap(destination.namespace, destination.name));
      const own = effects.filter(({ path }) => path.length === 1);
      assert.match(row.effect, EFFECTS[verdictOf(own)] ?? /never/);
      if (kind === 'copied') {
        const rule = FIXED_COPIES.find(({ destination: to }) => to.name === destination.name && to.namespace === destination.namespace);
        assert.deepEqual([{ namespace: rule?.source?.namespace, name: rule?.source?.name }], sources);
        assert.deepEqual(row.by, ['ResourceSyncController']);
        continue;
      }
      assert.equal(kind, 'combined');
      const bundle = COMBINED_BUNDLES.find(({ destination: to }) => to.name === destination.name);
      assert.ok(bundle, destination.name);
      assert.deepEqual([bundle.destination, bundle.sources], [destination, sources]);
      assert.deepEqual(bundle.builtBy.map(by => by.split(' ')[0]), row.by.map((by: string) => by.split(' ')[0]));
      assert.equal(row.key, BUNDLE_KEY);
      assert.deepEqual(combinedConfigMap(bundle, 'x').metadata?.annotations, row.annotation);
    }
  },

  resourceSync(table) {
    const always = table.filter(({ condition }: Json) => condition === 'always');
    const found = FIXED_COPIES.map(rule => ({ ...placesOf(rule), condition: 'always' }));
    assert.deepEqual(found, always);
    for (const row of table.filter(({ condition }: Json) => condition !== 'always')) checkObservedCopy(row);
  },

  kubeAPIServerReload(table) {
    const uses = OPERAND_OBJECTS.flatMap(object => object.uses.map(use => ({ ...use, carrier: object.carrier })));
    for (const { input, reloads } of table) {
      const settings = SETTINGS[input] ?? input.split('/').map((part: string) => (part.startsWith('--') ? part : undefined));
      const matching = uses.filter(({ setting }) => settings.some((name: string | undefined) => name && setting.startsWith(name)));
      assert.ok(matching.length > 0, input);
      const isLive = matching.every(({ takes }) => takes === 'watch' || takes === 'per-handshake');
      // Read again for every handshake, but from a directory that never changes.
      const isInVain = isLive && matching.every(({ carrier }) => carrier === 'revision');
      if (typeof reloads === 'string') assert.ok(isInVain, input);
      else assert.equal(isLive, reloads, input);
    }
  },

  conditions(table) {
    for (const type of table) {
      const types = type.includes('<controller>')
        ? KUBE_APISERVER_CHAINS.map(({ controller }) => type.replace('<controller>', controller))
        : [type];
      for (const each of types) assert.ok(CONDITION_TYPES.includes(each), each);
    }
  },

  async timelines(table) {
    for (const row of table) {
      for (const controller of row.chain.split(', ')) await checkTimeline(row, controller);
    }
  },
};

describe('ckao-vectors: tables', () => {
  for (const [name, table] of Object.entries(file)) {
    if (IN_WORDS.has(name)) continue;
    test(name, async () => {
      const run = tables[name];
      assert.ok(run, `no adapter for table ${name}`);
      await run(table);
    });
  }
});

/** Where the table does not name the flag itself. */
const SETTINGS: Record<string, string[]> = {
  '--tls-sni-cert-key (servingInfo.namedCertificates)': ['servingInfo.namedCertificates'],
  '--proxy-client-cert-file/-key-file': ['--proxy-client-cert-file', '--proxy-client-key-file'],
  '--kubelet-client-certificate/-key': ['--kubelet-client-certificate', '--kubelet-client-key'],
  '--etcd-certfile/-keyfile': ['--etcd-certfile', '--etcd-keyfile'],
  'service-account public key directories': ['serviceAccountPublicKeyFiles'],
  'system trust store': ['copied over the system trust store'],
};

function lifetime({ validityDays, refreshDays, in416 }: CertificateObject): Json {
  return {
    validityDays,
    refreshDays,
    scaledByBase: in416.scaled,
    refreshOnlyWhenExpiredInRegeneration: in416.recoversOnlyExpired,
  };
}

function checkChain(row: Json, chain: Chain, index: number): void {
  const { signer, bundle, target } = chain;
  assert.equal(row.order, index + 1);
  assert.equal(row.controller, chain.controller);
  assert.equal(row.degradedCondition, rotationCondition(chain.controller));
  assert.deepEqual(row.signer, {
    kind: 'Secret',
    namespace: signer.namespace,
    name: signer.name,
    type: TLS_SECRET,
    commonNamePattern: `${signer.namespace}_${signer.name}@<unix-seconds>`,
    ...lifetime(signer),
  });
  assert.deepEqual(row.caBundle, { kind: 'ConfigMap', ...bundle, key: BUNDLE_KEY });
  const { creator } = target;
  assert.deepEqual(row.target, {
    kind: 'Secret',
    namespace: target.namespace,
    name: target.name,
    type: TLS_SECRET,
    keys: [TLS_CERT, TLS_KEY],
    ...lifetime(target),
    creator: creator.kind,
    ...(creator.kind === 'client'
      ? { commonName: creator.user.name, groups: creator.user.groups ?? [], extKeyUsage: ['clientAuth'], pemChain: 'leaf only' }
      : {
          hostnames: typeof creator.hostnames === 'string' ? null : creator.hostnames,
          hostnamesSource: typeof creator.hostnames === 'string' ? creator.hostnames : 'static',
          commonName: 'first element of the lexically sorted hostname set',
          extKeyUsage: ['serverAuth'],
          pemChain: 'leaf followed by the signer certificate',
        }),
  });
  assert.equal(row.owningComponent, CHAIN_ANNOTATIONS.jiraComponent);
  assert.equal(row.description, CHAIN_ANNOTATIONS.description ?? null);
  const effects = effectOfChange(graph, secret(target.namespace, target.name));
  const expected: Record<string, string> = {
    'hot-reload': 'reload',
    'new-revision': 'restart',
    'file-sync-only': 'file-only',
    'none-in-this-operand': 'none',
    'rebuilds Secret node-kubeconfigs, then file-sync-only': 'file-only',
  };
  assert.equal(verdictOf(effects), expected[row.effectOfTargetChange], chain.controller);
}

function checkObjects(table: Json, carrier: OperandObject['carrier']): void {
  for (const [key, kind] of [
    ['configMaps', 'ConfigMap'],
    ['secrets', 'Secret'],
  ] as const) {
    const ours = OPERAND_OBJECTS.filter(object => object.carrier === carrier && object.kind === kind);
    assert.deepEqual(ours.map(({ name }) => name), table[key].map(({ name }: Json) => name));
    for (const [index, row] of table[key].entries()) checkObject(row, ours[index] as OperandObject);
  }
}

function checkObject(row: Json, object: OperandObject): void {
  const ref = operandRef(object);
  assert.deepEqual([row.kind, row.namespace, row.name, row.optional], [ref.kind, ref.namespace, ref.name, object.optional]);
  const files = row.files.filter((name: string) => !/ \(only when/.test(name));
  const isOpen = files.every((name: string) => name.startsWith('<'));
  if (!isOpen) assert.deepEqual(object.files, files, row.name);
  assert.equal(hostDirectoryOf(object), row.hostDir);
  assert.equal(mountedDirectoryOf(object), row.containerDir);
  const effects = effectOfChange(graph, ref).filter(({ path }) => path.length === 1);
  assert.match(row.effectOfDataChange, EFFECTS[verdictOf(effects)] ?? /none/, row.name);
  assert.deepEqual([...new Set(object.uses.map(({ setting }) => setting))].filter(Boolean), row.flagsOrConfig, row.name);
  assert.equal(object.writtenBy, row.writtenBy);
  const live = effects.filter(({ kind }) => kind === 'reload').flatMap(({ uses }) => uses);
  assert.equal(live.length > 0, row.reloadedBy !== null, row.name);
  for (const { process } of live) assert.ok(row.reloadedBy.includes(process), row.reloadedBy);
}

function placesOf({ kind, source, destination }: CopyRule): Json {
  return {
    kind: kind === 'secret' ? 'Secret' : 'ConfigMap',
    source: source && [source.namespace, source.name],
    destination: [destination.namespace, destination.name],
  };
}

/** A rule that depends on the configuration: there with the condition, gone without. */
function checkObservedCopy(row: Json): void {
  const name = row.destination[1].replace('<iii>', '003');
  const some = { metadata: { name: 'some' }, data: {} };
  const kubeconfig = {
    clusters: [{ name: 'c', cluster: { server: 'https://x' } }],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'k', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'k',
  };
  const four = ['a', 'b', 'c', 'given'].map(secretName => ({ servingCertificate: { name: secretName } }));
  const on: Record<string, ObserveInputs> = {
    'user-client-ca': { userSecret: () => some, apiServer: { spec: { clientCA: { name: 'given' } } } },
    'user-serving-cert-003': { userSecret: () => some, apiServer: { spec: { servingCerts: { namedCertificates: four } } } },
    'oauth-metadata': { userSecret: () => some, authentication: { spec: { oauthMetadata: { name: 'given' } } } },
    'webhook-authenticator': {
      userSecret: () => ({ data: { kubeConfig: Buffer.from(JSON.stringify(kubeconfig)).toString('base64') } }),
      authentication: { spec: { webhookTokenAuthenticator: { kubeConfig: { name: 'given' } } } },
    },
    'cloud-config': {
      userSecret: () => some,
      infrastructure: { spec: { cloudConfig: { name: 'given', key: 'k' }, platformSpec: { type: 'AWS' } } },
    },
    'encryption-config': { userSecret: () => some, apiServer: { spec: { encryption: { type: 'aescbc' } } } },
  };
  const inputs = on[name];
  assert.ok(inputs, `no configuration that asks for ${name}`);
  const ruleIn = (given: ObserveInputs) =>
    observeAll(given, {}).copies.find(({ destination }) => destination.name === name);
  const rule = ruleIn(inputs);
  assert.ok(rule, name);
  assert.equal(placesOf(rule).kind, row.kind);
  assert.deepEqual(placesOf(rule).destination, [row.destination[0], name]);
  const [namespace, source] = row.source;
  if (!namespace.includes(' ')) assert.equal(rule.source?.namespace, namespace);
  assert.equal(rule.source?.name, source.includes('<') ? 'given' : source);
  const off = ruleIn({ userSecret: () => some, apiServer: {}, authentication: {}, infrastructure: {} });
  // Encryption that is not in use is left alone; everything else goes away.
  if (name === 'encryption-config') assert.equal(off, undefined);
  else assert.deepEqual([off?.destination.name, off?.source], [name, undefined]);
}

/** Lets one chain run and compares when what was issued, in days. */
async function checkTimeline(row: Json, controller: string): Promise<void> {
  const chain = KUBE_APISERVER_CHAINS.find(candidate => candidate.controller === controller);
  assert.ok(chain, controller);
  const clock = new VirtualClock(NOW);
  const kube = new MemoryKube();
  const events = recordingEvents();
  const [unit] = rotationUnits({ dayMs: days(1), hostnames: hostnameSources(), keyAlgorithm: 'P-256', chains: [chain] });
  const rotation: Rotation = { kube, objects: liveObjects(kube), clock, keys: systemKeys, events, locks: new ObjectLocks() };
  const issued: Record<'signer' | 'target', number[]> = { signer: [], target: [] };
  const validity: number[] = [];
  const fromSecondSigner: number[] = [];
  const enough = Math.max(...row.signerIssuedAtDays, ...(row.targetIssuedAtDays ?? [])) + 12;
  while (clock.now().getTime() <= NOW.getTime() + days(enough)) {
    const again = await reconcileUnit(unit!, rotation);
    const day = (clock.now().getTime() - NOW.getTime()) / days(1);
    for (const { reason } of events.events.splice(0)) {
      if (reason === 'SignerUpdateRequired') issued.signer.push(day);
      if (reason !== 'TargetUpdateRequired') continue;
      issued.target.push(day);
      const [leaf] = loadSecret(await kube.get(SECRETS, chain.target)).chain as [Certificate];
      validity.push((leaf.notAfter.getTime() - clock.now().getTime()) / days(1));
      if (issued.signer.length === 2 && fromSecondSigner.length === 0) {
        const [signer] = loadSecret(await kube.get(SECRETS, chain.signer)).chain as [Certificate];
        if (leaf.issuer.commonName === signer.subject.commonName) fromSecondSigner.push(day);
      }
    }
    // The table counts with somebody who asks once a minute.
    await clock.advanceTo(new Date(Math.ceil(again.getTime() / minutes(1)) * minutes(1)));
  }
  const near = (found: readonly number[], expected: readonly number[], what: string) => {
    const shown = `${controller} ${what}: found ${found.join(', ')}, expected ${expected.join(', ')}`;
    assert.ok(found.length >= expected.length, shown);
    for (const [index, day] of expected.entries()) {
      assert.ok(Math.abs((found[index] as number) - day) <= row.toleranceDays, shown);
    }
  };
  near(issued.signer, row.signerIssuedAtDays, 'signer');
  const every = row.targetIssuedEveryDays;
  near(issued.target, row.targetIssuedAtDays ?? issued.target.map((_, index) => index * every), 'target');
  if (Array.isArray(row.targetValidityDays)) near(validity, row.targetValidityDays, 'validity');
  else near(validity, validity.map(() => row.targetValidityDays), 'validity');
  if (row.firstTargetFromSecondSignerAtDay) near(fromSecondSigner, [row.firstTargetFromSecondSignerAtDay], 'second signer');
  assert.ok((await kube.get(CONFIG_MAPS, chain.bundle)).data?.[BUNDLE_KEY]);
}
