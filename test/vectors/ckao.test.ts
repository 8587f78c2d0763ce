/**
 * Runs the cases of ckao-vectors.json through the functions the controllers use; its tables are in ckao-tables.test.ts. A case
 * of an unknown area, or with words an adapter does not know, fails. `CORRECTED` lists the places where a case shows a defect
 * of 4.16 and the spec asks for something better: there the better answer is asserted.
 */
import { knownWord, notCompared, runGroup } from './run-case.ts';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { load as parseYaml } from 'js-yaml';
import type { ConfigMap, Container, Secret } from 'kubernetes-types/core/v1.d.ts';
import { HOSTNAMES, ISSUER, MANAGED_CERTIFICATE_TYPE, NOT_AFTER, NOT_BEFORE } from '../../src/certrotation/annotations.ts';
import { BUNDLE_KEY, decideBundle, ensureBundle } from '../../src/certrotation/bundle.ts';
import type { SignerConfig } from '../../src/certrotation/config.ts';
import { clientCreator, servingCreator } from '../../src/certrotation/creator.ts';
import { liveObjects as rotationObjects, type Rotation } from '../../src/certrotation/ensure.ts';
import { hostnameDifference } from '../../src/certrotation/hostnames.ts';
import { ObjectLocks } from '../../src/certrotation/locks.ts';
import { reconcileUnit } from '../../src/certrotation/reconcile.ts';
import { readRotationScale, rotationDay } from '../../src/certrotation/scale.ts';
import { loadSecret, withCertificate } from '../../src/certrotation/secret.ts';
import { ensureSigner } from '../../src/certrotation/signer.ts';
import { ensureTarget } from '../../src/certrotation/target.ts';
import type { Condition } from '../../src/controller/condition.ts';
import { inertiaOf, unionOfConditions } from '../../src/controller/condition-union.ts';
import { decideClusterOperatorStatus } from '../../src/controller/cluster-operator-status.ts';
import { reportingDegraded } from '../../src/controller/degraded.ts';
import { silentLog } from '../../src/controller/log.ts';
import type { Reconcile } from '../../src/controller/reconcile.ts';
import { KUBE_APISERVER_CHAINS, lifetimeOf, signersOf } from '../../src/kube-apiserver/chains.ts';
import { COMBINED_BUNDLES, ensureCombinedBundle } from '../../src/kube-apiserver/combined-bundles.ts';
import { rotationCondition } from '../../src/kube-apiserver/conditions.ts';
import {
  ACTIVE_SIGNING_KEY,
  decidePromotion,
  needsSigningKey,
  newSigningKey,
  NEXT_SIGNING_KEY,
  PRIVATE_KEY,
  PUBLIC_KEY,
  publicKeyOf,
  withPublicKey,
} from '../../src/kube-apiserver/keys/bound-keys.ts';
import { decideIssuers } from '../../src/kube-apiserver/keys/issuer.ts';
import { CONFIG_NAMESPACE, OPERAND_NAMESPACE, OPERATOR_NAMESPACE } from '../../src/kube-apiserver/namespaces.ts';
import { nodeKubeconfigReconcile } from '../../src/kube-apiserver/node-kubeconfigs.ts';
import type { ObserveInputs } from '../../src/kube-apiserver/observe/observation.ts';
import { observeAll } from '../../src/kube-apiserver/observe/observe.ts';
import { CERTS_MOUNT, OPERAND_OBJECTS, operandRef, RESOURCES_MOUNT, REVISIONED, UNREVISIONED } from '../../src/kube-apiserver/operand-objects.ts';
import { CLUSTER, type Config, INFRASTRUCTURES, KUBE_API_SERVERS } from '../../src/kube-apiserver/resources.ts';
import { ROTATION_BASE, rotationBaseCondition } from '../../src/kube-apiserver/rotation/base.ts';
import { followHostnames, hostnameSources } from '../../src/kube-apiserver/rotation/follow-hostnames.ts';
import { decideHostnames } from '../../src/kube-apiserver/rotation/hostnames.ts';
import { rotationUnits } from '../../src/kube-apiserver/rotation/units.ts';
import { targetConfigReconcile } from '../../src/kube-apiserver/target-config/controller.ts';
import { serverConfig } from '../../src/kube-apiserver/target-config/config.ts';
import { valueAt } from '../../src/kube-apiserver/target-config/merge.ts';
import { kubeApiserverPod } from '../../src/kube-apiserver/target-config/pod.ts';
import { missingConfig } from '../../src/kube-apiserver/target-config/required-config.ts';
import { podValues } from '../../src/kube-apiserver/target-config/template.ts';
import { kubeApiserverTrust, servedCertificates } from '../../src/kube-apiserver/trust.ts';
import { VirtualClock } from '../../src/kube/clock.ts';
import { days, parseGoDuration, seconds } from '../../src/kube/duration.ts';
import { recordingEvents } from '../../src/kube/events.ts';
import { MemoryKube } from '../../src/kube/memory.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, type KubeObject, keyOf, type Resource, SECRETS } from '../../src/kube/resource.ts';
import { formatRfc3339 } from '../../src/kube/time.ts';
import type { Certificate } from '../../src/pki/certificate.ts';
import { splitHosts } from '../../src/pki/hosts.ts';
import { issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, readCertificates } from '../../src/pki/pem.ts';
import { type CertSyncDeps, syncCertificates } from '../../src/staticpod/node/cert-sync.ts';
import { runCertSyncer } from '../../src/staticpod/node/cert-syncer.ts';
import { freeLock, temporaryFiles, visibleTree } from '../../src/staticpod/node/testing.ts';
import { liveObjects } from '../../src/staticpod/objects.ts';
import { StaticPodOperator } from '../../src/staticpod/operator.ts';
import { resourceSyncReconcile, SyncRules } from '../../src/staticpod/resource-sync.ts';
import { compareRevision, type RevisionedPair } from '../../src/staticpod/revision/compare.ts';
import { revisionReconcile } from '../../src/staticpod/revision/controller.ts';
import { effectOfChange, verdictOf } from '../../src/trust/effect.ts';
import { servedCertificate } from '../../src/trust/serving.ts';

// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;
interface Case {
  id: string;
  area: string;
  note?: string;
  given: Json;
  expected: Json;
}

const file = JSON.parse(readFileSync(new URL('ckao-vectors.json', import.meta.url), 'utf8')) as { cases: Case[] };
const NOW = new Date('2026-01-01T00:00:00Z');
const graph = kubeApiserverTrust();

/** Where we do what the spec asks for instead of what 4.16 did. The adapters assert it and point here. */
const CORRECTED = {
  emptyBundle: 'spec 20, trap 10.1.4: an empty bundle is refused, not published',
  issuerInRecovery: 'spec 10, T-3 and trap 14.4: recovery does not look at the issuer',
  addressHosts: 'spec 20, 1.8.4: an IPv6 address in a URL loses its brackets; a URL may lack its port',
  noServiceNetwork: 'spec 20, trap 10.1.14: without a service network there is no certificate',
  internalFollows: 'spec 20, trap 10.1.1: all host names follow their objects while the operator runs',
  leftovers: 'spec 30, T09: files that are not in the object disappear',
} as const;

const adapters: Record<string, (given: Json, expected: Json, t: TestContext, vector: Case) => void | Promise<void>> = {
  async 'required-config'(given, expected) {
    const observed = given.observedConfigRaw ?? given.observedConfig;
    const problem = missingConfig(observed);
    if (expected.errorContains === undefined) assert.equal(problem, undefined);
    else assert.ok(problem?.includes(expected.errorContains), `${problem} has no ${expected.errorContains}`);
    if (!expected.event) return;
    const world = await World.start({ observedConfig: observed });
    await assert.rejects(world.run(targetConfigReconcile(world.targetConfig)), new RegExp(expected.errorContains));
    world.hasEvent(expected.event);
  },

  'pod-template'(given, expected) {
    const spec = {
      ...(given.logLevel === null || given.logLevel === undefined ? {} : { logLevel: given.logLevel }),
      observedConfig: given.observedConfig ?? null,
      unsupportedConfigOverrides: given.unsupportedConfigOverrides ?? null,
    };
    const build = () =>
      kubeApiserverPod(podValues(spec), {
        image: given.image ?? 'IMG',
        operatorImage: given.operatorImage ?? 'OPIMG',
        operatorCommand: ['rotunda'],
        server: { flavor: 'openshift' },
      });
    if (expected.error || expected.errorContains) {
      assert.throws(build, new RegExp(typeof expected.errorContains === 'string' ? expected.errorContains : '.'));
      return;
    }
    const pod = build().spec!;
    const [server, ...sides] = pod.containers as [Container, ...Container[]];
    const [setup] = pod.initContainers as [Container];
    const script = server.args?.join('\n') ?? '';
    const found: Record<string, unknown> = {
      Image: server.image,
      OperatorImage: sides.every(({ image }) => image === sides[0]?.image) && sides[0]?.image,
      Verbosity: / -v=\d+/.exec(script)?.[0],
      GracefulTerminationDuration: pod.terminationGracePeriodSeconds,
      SetupContainerTimeoutDuration: Number(setup.command?.[1]),
      GOGC: Number(server.env?.find(({ name }) => name === 'GOGC')?.value),
    };
    for (const [name, value] of Object.entries(expected)) {
      if (name === 'rule') continue;
      if (name === 'everyContainerEnvEndsWith') {
        for (const { env = [] } of pod.containers) assert.deepEqual(env.slice(-(value as Json[]).length), value);
      } else if (name === 'initContainersUntouched') {
        assert.ok(!(setup.env ?? []).some(variable => /PROXY/.test(variable.name)));
      } else {
        assert.ok(name in found, `unknown expectation ${name}`);
        assert.equal(found[name], value, name);
      }
    }
    assert.match(script, new RegExp(`--graceful-termination-duration=${pod.terminationGracePeriodSeconds}s`));
  },

  async 'combined-bundle'(given, expected) {
    const bundle = COMBINED_BUNDLES.find(({ destination }) => destination.name === given.build);
    assert.ok(bundle, given.build);
    const kube = new MemoryKube();
    for (const { ns, name, certs, expiredCerts, data, annotations, ...unknown } of given.existing) {
      assert.deepEqual(Object.keys(unknown), []);
      const expired = (expiredCerts ?? []).map((symbol: string) => `expired ${symbol}`);
      const text = data ?? { [BUNDLE_KEY]: await pemOf([...(certs ?? []), ...expired]) };
      await kube.create(CONFIG_MAPS, { metadata: { namespace: ns, name, annotations: annotations ?? {} }, data: text });
    }
    const objects = liveObjects(kube);
    const before = await objects.get(CONFIG_MAPS, bundle.destination);
    const read = (source: { namespace: string; name: string }) => objects.get(CONFIG_MAPS, source);
    const work = ensureCombinedBundle(bundle, read, { kube, events: recordingEvents() }, NOW);
    const after = () => objects.get(CONFIG_MAPS, bundle.destination);
    if (expected.data?.[BUNDLE_KEY] === '' || expected.certs?.length === 0) {
      await assert.rejects(work, /would be empty/, CORRECTED.emptyBundle);
      assert.deepEqual(await after(), before);
      notCompared(expected, 'data', 'certs', 'annotations', 'changed');
      return;
    }
    if (expected.error) {
      await assert.rejects(work, (error: Error) => {
        for (const word of expected.errorMentions ?? []) assert.ok(error.message.includes(word), `${error.message} lacks ${word}`);
        return true;
      });
      assert.deepEqual(await after(), before);
      knownWord(expected.destinationWritten, undefined, false);
      return;
    }
    const { changed } = await work;
    if ('changed' in expected) assert.equal(changed, expected.changed);
    const stored = await after();
    if (expected.certs) assert.equal(stored?.data?.[BUNDLE_KEY], await pemOf(expected.certs));
    if (expected.data) assert.deepEqual(stored?.data, expected.data);
    for (const [key, value] of Object.entries(expected.annotations ?? {})) {
      assert.equal(stored?.metadata?.annotations?.[key], value);
    }
  },

  async 'rotation-base'(given, expected) {
    const data = given.configMapData ?? (typeof given.base === 'string' ? { base: given.base } : undefined);
    const kube = new MemoryKube();
    const isMissing = given.configMap === null || given.configMapExists === false || given.configMapMissing;
    const key = {
      namespace: given.configMapNamespace ?? ROTATION_BASE.namespace,
      name: given.configMapName ?? ROTATION_BASE.name,
    };
    if (!isMissing) await kube.create(CONFIG_MAPS, { metadata: key, data: data ?? {} });
    const condition = rotationBaseCondition(await liveObjects(kube).get(CONFIG_MAPS, ROTATION_BASE));
    const warnings: string[] = [];
    const scale = () => readRotationScale(kube, CONFIG_NAMESPACE, new VirtualClock(NOW), text => warnings.push(text));
    for (const [name, value] of Object.entries<Json>(expected)) {
      if (name === 'note') continue;
      if (name === 'unscaled') {
        // Ours scales every chain alike, so that a day is a day.
        notCompared({ value }, 'value');
        continue;
      }
      if (name === 'condition') {
        for (const [field, wanted] of Object.entries(value)) assert.equal(condition[field as keyof Condition], wanted);
      } else if (name === 'clusterOperator') {
        const union = unionOfConditions(value.type, 'True', [condition], NOW);
        assert.equal(union.status, value.status);
        if (value.reasonContains) assert.ok(union.reason?.includes(value.reasonContains), union.reason);
      } else if (name === 'startupError') {
        await assert.rejects(scale());
      } else if (name === 'base') {
        assert.equal(rotationDay(await scale()), parseGoDuration(value));
      } else if (name === 'warningLogged') {
        warnings.length = 0;
        await scale();
        assert.equal(warnings.length > 0, value);
      } else if (name === 'upgradeable') {
        assert.equal(condition.status, value);
      } else {
        checkScaled(name, value, await scale());
      }
    }
  },

  async 'node-kubeconfigs'(given, expected) {
    const missing: string = given.missing ?? '';
    const parts = {
      client: given['secret openshift-kube-apiserver-operator/node-system-admin-client'] ?? { 'tls.crt': 'c', 'tls.key': 'k' },
      serverCA: given['configmap openshift-kube-apiserver/kube-apiserver-server-ca'] ?? { 'ca-bundle.crt': 'ca' },
      external: given.infrastructure?.['status.apiServerURL'] ?? 'https://ext:6443',
      internal: given.infrastructure?.['status.apiServerInternalURL'] ?? 'https://int:6443',
    };
    for (const key of ['tls.key', 'tls.crt']) if (missing.includes(key)) parts.client = { ...parts.client, [key]: '' };
    if (/server-ca|ca-bundle|serving CA/i.test(missing)) parts.serverCA = {};
    if (/internal/i.test(missing)) parts.internal = '';
    else if (/apiServerURL/i.test(missing)) parts.external = '';
    const world = await World.start();
    await world.kube.create(SECRETS, {
      metadata: { namespace: OPERATOR_NAMESPACE, name: 'node-system-admin-client' },
      data: Object.fromEntries(Object.entries<string>(parts.client).map(([key, text]) => [key, base64(text)])),
    });
    await world.kube.create(CONFIG_MAPS, {
      metadata: { namespace: OPERAND_NAMESPACE, name: 'kube-apiserver-server-ca' },
      data: parts.serverCA,
    });
    const status = { apiServerURL: parts.external, apiServerInternalURI: parts.internal };
    await world.kube.create(INFRASTRUCTURES, { metadata: CLUSTER, status });
    const reported: Condition[] = [];
    const reconcile = reportingDegraded(nodeKubeconfigReconcile(world.shared), {
      name: 'NodeKubeconfigController',
      write: async condition => reported.push(condition),
    });
    const error = await world.run(reconcile).then(
      () => undefined,
      (thrown: Error) => thrown,
    );
    const key = { namespace: OPERAND_NAMESPACE, name: 'node-kubeconfigs' };
    const secret = await world.cached.get(SECRETS, key);
    if (expected.errorMeaning) assert.ok(error?.message.includes(expected.errorMeaning), error?.message);
    if ('secretWritten' in expected) assert.equal(secret !== undefined, expected.secretWritten);
    if (expected.condition) {
      const [condition] = reported;
      const { type, status: state, reason } = condition ?? {};
      assert.deepEqual({ type, status: state, reason }, expected.condition);
    }
    if (expected.secret) assert.deepEqual([key.namespace, key.name], expected.secret);
    for (const [name, wanted] of Object.entries<Json>(expected.keys ?? {})) {
      const config = parseYaml(Buffer.from(secret?.data?.[name] ?? '', 'base64').toString()) as Json;
      assert.equal(config.clusters[0].cluster.server, wanted.server);
      assert.equal(config.clusters[0].cluster['tls-server-name'], wanted['tls-server-name']);
      assert.equal(config.clusters[0].name, wanted.clusterName);
      const all = expected.allFiles;
      const found = {
        contextName: config.contexts[0].name,
        userName: config.users[0].name,
        'current-context': config['current-context'],
        'certificate-authority-data': config.clusters[0].cluster['certificate-authority-data'],
        'client-certificate-data': config.users[0].user['client-certificate-data'],
        'client-key-data': config.users[0].user['client-key-data'],
      };
      assert.deepEqual(found, all);
      assert.deepEqual(config.contexts[0].context, { cluster: wanted.clusterName, user: all.userName });
    }
    if (expected.keys) assert.deepEqual(Object.keys(secret?.data ?? {}).sort(), Object.keys(expected.keys).sort());
  },

  'named-certificates'(given, expected) {
    const previous: Config = { servingInfo: { namedCertificates: [{ certFile: 'existing', keyFile: 'existing' }] } };
    const entries = (given.namedCertificates ?? []).map(({ names, secret }: Json) => ({
      ...(names === undefined ? {} : { names }),
      servingCertificate: secret === undefined ? {} : { name: secret },
    }));
    const inputs: ObserveInputs = {
      userSecret: name => (name === given.missingSecret ? undefined : { metadata: { name } }),
      apiServer: given.apiServerExists ? { spec: { servingCerts: { namedCertificates: entries } } } : undefined,
    };
    const { config, copies, errors, events } = observeAll(inputs, given.previouslyObserved ? previous : {});
    const own = errors.filter(error => /namedCertificates/.test(error));
    assert.equal(own.length > 0, expected.errors);
    if (expected.errors) assert.ok(events.some(({ reason }) => reason === 'ObserveNamedCertificatesFailed'));
    const rules = copies.filter(({ destination }) => destination.name.startsWith('user-serving-cert'));
    checkRules(rules, expected.syncRules);
    const path = ['servingInfo', 'namedCertificates'];
    if (expected.observed === 'previous') {
      assert.deepEqual(valueAt(config, path), valueAt(previous, path));
    } else if (!Array.isArray(expected.observed)) {
      assert.equal(valueAt(config, path), undefined);
    } else {
      const wanted = expected.observed.map((entry: Json) => {
        const [place, names] = typeof entry === 'string' ? [entry, null] : (Object.entries(entry)[0] as [string, string[] | null]);
        const [name, where] = place.split('@');
        const directory = `${where === 'certs' ? CERTS_MOUNT : RESOURCES_MOUNT}/secrets/${name}`;
        return { certFile: `${directory}/tls.crt`, keyFile: `${directory}/tls.key`, ...(names ? { names } : {}) };
      });
      assert.deepEqual(valueAt(config, path), wanted);
    }
  },

  'user-client-ca'(given, expected) {
    const isThere = given.apiServerExists !== false;
    const apiServer = isThere ? { spec: given.clientCA ? { clientCA: { name: given.clientCA } } : {} } : undefined;
    const { config, copies } = observeAll({ userSecret: () => undefined, apiServer }, {});
    checkRules(copies.filter(({ destination }) => destination.name === 'user-client-ca'), expected.syncRules);
    assert.deepEqual(expected.observed, {});
    assert.ok(!JSON.stringify(config).includes('user-client-ca'));
  },

  'served-certificate'(given, expected) {
    const names = { external: 'api.c.example.com', internal: 'api-int.c.example.com', user: 'www.user.example.com' };
    const addresses = { service: '172.30.0.1', external: '10.0.0.5', internal: '10.0.0.5', localhost: '127.0.0.1' };
    const service = decideHostnames('service-network', {
      network: { status: { serviceNetwork: ['172.30.0.0/16'] } },
      infrastructure: undefined,
    });
    assert.ok(service.ok);
    const served = servedCertificates(
      {
        'service-network': service.hostnames,
        'external-load-balancer': [names.external],
        'internal-load-balancer': [names.internal],
      },
      [{ names: [names.user], isExplicit: true }],
    );
    const serverName = given.serverName
      .replace(/^<.*cluster IP>$/, addresses.service)
      .replace(/^<external.*>$/, names.external)
      .replace(/^<internal.*>$/, names.internal)
      .replace(/^<.*user.*>$/, names.user);
    assert.ok(!serverName.includes('<'), given.serverName);
    const via: string = given.connectVia ?? 'external load balancer';
    const address = /localhost|loopback/.test(via) ? addresses.localhost : /service/.test(via) ? addresses.service : addresses.external;
    const [wanted] = expected.presentedCertificateFrom.split(' ');
    assert.equal(servedCertificate(served, { serverName, address }).name, wanted);
  },

  termination(given, expected) {
    const infrastructure = {
      spec: given.platform ? { platformSpec: { type: given.platform } } : {},
      status: given.controlPlaneTopology ? { controlPlaneTopology: given.controlPlaneTopology } : {},
    };
    const { config } = observeAll({ userSecret: () => undefined, infrastructure }, given.existing ?? given.existingConfig ?? {});
    const spec = { observedConfig: config };
    for (const [name, value] of Object.entries<Json>(expected)) {
      if (name === 'gracefulTerminationDuration') assert.equal(valueAt(config, [name]) ?? null, value);
      else if (name === 'effectiveSeconds') assert.equal(podValues(spec).gracefulTerminationSeconds, value);
      else if (name === 'shutdown-delay-duration') {
        assert.deepEqual(valueAt(config, ['apiServerArguments', name]) ?? null, value === null ? null : [value].flat());
      } else if (name === 'effective') {
        const effective = serverConfig('openshift', spec);
        assert.deepEqual(valueAt(effective, ['apiServerArguments', 'shutdown-delay-duration']), [value]);
      } else assert.fail(`unknown expectation ${name}`);
    }
  },

  'sa-issuer'(given, expected) {
    const status = (entries: Json[]) =>
      entries.map(({ name, expires }) => ({ name, ...(expires ? { expirationTime: formatRfc3339(relative(expires)) } : {}) }));
    const before = status(given.statusBefore);
    const decision = decideIssuers(given['authentication.spec.serviceAccountIssuer'] ?? '', before, NOW);
    assert.equal(decision.action === 'fail', expected.error ?? false);
    assert.equal(decision.action === 'set', expected.immediateResync ?? false);
    const after = decision.action === 'set' ? decision.issuers : before;
    if (expected.statusAfter) assert.deepEqual(after, status(expected.statusAfter));
    // A second look changes nothing.
    if (decision.action === 'set') {
      const wanted = given['authentication.spec.serviceAccountIssuer'] ?? '';
      const again = decideIssuers(wanted, after, NOW);
      const isFirstStep = wanted !== '' && before.length === 0;
      assert.equal(again.action, isFirstStep && wanted !== after[0]?.name ? 'set' : 'keep');
    }
  },

  async 'target-decision'(given, expected) {
    // What is not relative to now is meant as it stands.
    const at = (text: string | null | undefined, fallback: string) =>
      (text ?? fallback).startsWith('now') ? formatRfc3339(relative(text ?? fallback)) : (text as string);
    const isFresh = given.timesFresh || given.notExpired;
    const annotations: Record<string, string> = {
      ...(given.notBefore !== null && { [NOT_BEFORE]: at(given.notBefore, 'now-1m') }),
      ...(given.notAfter !== null && { [NOT_AFTER]: at(given.notAfter, isFresh ? 'now+100h' : 'now+1h') }),
      [ISSUER]: given.issuerAnnotation ?? (given.issuerAnnotation === null ? '' : 'signer'),
    };
    const bundle = await Promise.all((given.bundleCommonNames ?? ['signer']).map((name: string) => authority(name)));
    const signer = await authority('signer', relative(given.signerCreated ?? 'now-100h'));
    const creator = given.requiredHostnames ? servingCreator({ hostnames: given.requiredHostnames }) : clientCreator({ name: 'x' });
    const decision = creator.decide({
      secret: { metadata: { annotations } },
      signer: [signer],
      bundle,
      refreshMs: parseGoDuration(given.refresh ?? '50h') as number,
      refreshOnlyWhenExpired: given.refreshOnlyWhenExpired ?? false,
      now: NOW,
    });
    const reason = decision.action === 'regenerate' ? decision.reason : '';
    const asksIssuer = 'issuerAnnotation' in given && given.refreshOnlyWhenExpired;
    const wanted = expected.regenerated ?? expected.reasonStartsWith !== '';
    if (asksIssuer && wanted) assert.equal(decision.action, 'keep', CORRECTED.issuerInRecovery);
    else {
      assert.equal(decision.action === 'regenerate', wanted, reason);
      // A missing notBefore is called what it is (spec 10, D-3).
      const mayDiffer = given.notBefore === null && (expected.reasonStartsWith ?? '').startsWith('bad expiry');
      if (expected.reasonStartsWith && !mayDiffer) assert.ok(reason.startsWith(expected.reasonStartsWith), reason);
    }
  },

  'hostname-check'(given, expected) {
    const reason = hostnameDifference(given.hostnamesAnnotation ?? undefined, given.requiredHostnames);
    assert.equal(reason ?? '', expected.reason ?? '');
  },

  async 'target-validity'(given, expected) {
    const rotation = rotationOn(new MemoryKube());
    const { validityDays, signerRemainingDays, ...unknown } = given;
    assert.deepEqual(Object.keys(unknown), []);
    const signer = await issueSigner({
      commonName: 'signer',
      lifetimeMs: days(signerRemainingDays + 30),
      now: new Date(NOW.getTime() - days(30)),
      keys: systemKeys,
      algorithm: 'P-256',
    });
    const config = {
      namespace: 'ns',
      name: 'target',
      validityMs: days(validityDays),
      refreshMs: days(1),
      keyAlgorithm: 'P-256' as const,
      creator: clientCreator({ name: 'x' }),
    };
    const result = await ensureTarget(config, signer, signer.chain, rotation);
    assert.ok(result.outcome === 'ready');
    const [leaf] = loadSecret(result.secret).chain as [Certificate];
    assert.equal((leaf.notAfter.getTime() - NOW.getTime()) / days(1), expected.issuedValidityDays);
  },

  async 'target-annotation'(given, expected) {
    const signer = await issueSigner({ commonName: 's', lifetimeMs: days(9), now: NOW, keys: systemKeys, algorithm: 'P-256' });
    const creator = servingCreator({ hostnames: given.hostnames });
    const made = await creator.make({ signer, lifetimeMs: days(1), now: NOW, keys: systemKeys, algorithm: 'P-256' });
    const annotations = creator.annotations(made.chain[0] as Certificate);
    for (const [name, value] of Object.entries(expected)) assert.equal(annotations[name.replace('annotation ', '')], value);
    assert.ok(HOSTNAMES in annotations);
  },

  async signer(given, expected) {
    const { kube, writes } = recordingKube(given.updateOnly ?? false);
    const config: SignerConfig = {
      namespace: 'ns',
      name: 'signer',
      validityMs: days(1),
      refreshMs: days(0.5),
      keyAlgorithm: 'P-256',
      useSecretUpdateOnly: given.updateOnly ?? false,
    };
    let kept: string | undefined;
    if (given.twoWorkersSameSigner || given.secret) {
      const stored = await signerSecret(given.twoWorkersSameSigner ? { type: given.secretTypeWrong ? 'SecretTypeTLS' : 'kubernetes.io/tls', annotations: 'fresh' } : given.secret);
      kept = stored.data?.['tls.key'];
      await kube.create(SECRETS, stored);
      writes.length = 0;
    }
    const run = () => ensureSigner(config, rotationOn(kube));
    if (expected.errorContains) {
      await assert.rejects(run(), new RegExp(expected.errorContains));
      if (expected.writes === 0) assert.deepEqual(writes, []);
      return;
    }
    await Promise.all(given.twoWorkersSameSigner ? [run(), run()] : [run()]);
    const secret = await kube.get(SECRETS, { namespace: 'ns', name: 'signer' });
    for (const [name, value] of Object.entries<Json>(expected)) {
      if (name === 'action') assert.deepEqual(writes, [value]);
      else if (name.startsWith('label ')) assert.equal(secret.metadata?.labels?.[name.slice(6)], value);
      else if (name === 'type') assert.equal(secret.type, value);
      else if (name === 'writes') assert.deepEqual(writes, value === 0 ? [] : value);
      else if (name === 'signerKeyPairUnchanged' || name === 'keyPairUnchanged') {
        assert.equal(secret.data?.['tls.key'] === kept, value);
      } else assert.fail(`unknown expectation ${name}`);
    }
    loadSecret(secret);
  },

  async 'rotated-bundle'(given, expected) {
    const named = await inOrder(given.derByteOrder ?? []);
    const of = async (name: string) => named.get(name) ?? authority(name);
    const signer = { namespace: 'ns', name: 'signer', certificate: await of(given.signer ?? 'NEW') };
    const existing = await Promise.all((given.existing ?? []).map(of));
    const text = given.text ?? given.data?.[BUNDLE_KEY] ?? encodeCertificates(existing);
    const kube = new MemoryKube();
    const key = { namespace: 'ns', name: 'bundle' };
    if (given.configMap !== null) await kube.create(CONFIG_MAPS, { metadata: key, data: text === '' ? {} : { [BUNDLE_KEY]: text } });
    const decision = decideBundle(await liveObjects(kube).get(CONFIG_MAPS, key), signer, NOW);
    if (expected.error) {
      assert.equal(decision.action, 'fail');
      return;
    }
    assert.ok(decision.action !== 'fail');
    await ensureBundle(key, signer, rotationOn(kube));
    const stored = await kube.get(CONFIG_MAPS, key);
    const { certificates } = readCertificates(stored.data?.[BUNDLE_KEY] ?? '');
    for (const [name, value] of Object.entries<Json>(expected)) {
      if (name === 'action') assert.equal(decision.action === 'rewrite' ? (given.configMap === null ? 'create' : 'update') : 'none', value);
      else if (name === 'certCount') assert.equal(certificates.length, value);
      else if (name === 'changed' || name === 'written') assert.equal(decision.action === 'rewrite', value);
      else if (name === 'writes') assert.equal(decision.action === 'rewrite' ? 1 : 0, value);
      else if (name.startsWith('label ')) assert.equal(stored.metadata?.labels?.[name.slice(6)], value);
      else if (name === 'order') {
        assert.deepEqual(certificates.map(({ der }) => [...named].find(([, known]) => known.der.equals(der))?.[0]), value);
      } else assert.fail(`unknown expectation ${name}`);
    }
    assert.equal(stored.metadata?.labels?.[MANAGED_CERTIFICATE_TYPE] ?? 'ca-bundle', 'ca-bundle');
  },

  async 'resource-sync'(given, expected) {
    const world = await World.start({ managementState: given.managementState ?? 'Managed' });
    const rules = new SyncRules([CONFIG_NAMESPACE, OPERAND_NAMESPACE]);
    const destination = { namespace: OPERAND_NAMESPACE, name: 'copy' };
    const isZero = given.source === 'zero location' || given.source === null;
    const source = { namespace: CONFIG_NAMESPACE, name: 'source' };
    if (given.namespaceWatched === false) {
      const elsewhere = { namespace: 'other', name: 'x' };
      assert.throws(() => rules.add('configmap', destination, elsewhere), { message: expected.error });
      assert.throws(() => rules.add('configmap', elsewhere, source), { message: expected.error });
      return;
    }
    const precondition = given.precondition;
    rules.add('secret', destination, isZero ? undefined : { ...source, ...(precondition === undefined ? {} : { precondition: () => precondition }) });
    const hasSource = given.sourceExists ?? !isZero;
    const type = given.secretType ?? given.sourceType ?? 'Opaque';
    if (hasSource) {
      const annotations = { 'kubernetes.io/service-account.name': 'sa', 'kubernetes.io/service-account.uid': 'u', keep: 'me' };
      const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: 'u' }];
      await world.kube.create(SECRETS, { metadata: { ...source, annotations, ownerReferences }, type, data: { token: 'dA==' } });
    }
    if (given.destinationExists) await world.kube.create(SECRETS, { metadata: destination, type: 'Opaque', data: { old: 'eA==' } });
    world.writes.length = 0;
    await world.run(resourceSyncReconcile({ ...world.shared, rules, events: world.events }));
    const stored = await world.cached.get(SECRETS, destination);
    for (const [name, value] of Object.entries<Json>(expected)) {
      if (name === 'destination' && value === 'deleted') assert.equal(stored, undefined);
      else if (name === 'destination' && (value === 'created' || value === 'copied' || value === 'updated')) assert.ok(stored?.data?.token);
      else if (name === 'destination' && /untouched|unchanged|not created|absent|skipped/.test(value)) {
        assert.equal(stored?.data?.old !== undefined, given.destinationExists ?? false);
        assert.equal(stored?.data?.token, undefined);
      } else if (name === 'deleteCalls') assert.equal(world.writes.filter(verb => verb === 'delete').length, value);
      else if (name === 'writes') assert.equal(world.writes.length, value);
      else if (name === 'type' || name === 'destinationType') assert.equal(stored?.type, value);
      else if (name === 'ownerReferences') assert.deepEqual(stored?.metadata?.ownerReferences ?? [], []);
      else if (name === 'annotationsRemoved') {
        for (const key of value) assert.equal(stored?.metadata?.annotations?.[key], undefined);
      } else assert.fail(`unknown expectation ${name}: ${JSON.stringify(value)}`);
    }
  },

  async revision(given, expected) {
    const world = await World.start({
      managementState: given.managementState ?? 'Managed',
      latestAvailableRevision: given.latestAvailableRevision ?? 0,
    });
    const listed = (given.sources ?? ['configmap test-config', 'secret test-secret']).map((text: string) => text.split(' '));
    const names = (kind: string) => listed.filter(([found]: string[]) => found === kind).map(([, name]: string[]) => ({ name }));
    const missing = [given.missing ?? given.missingSource ?? given.missingRequired ?? []].flat().join(' ');
    for (const [kind, name] of listed) {
      if (missing.includes(name)) continue;
      const metadata = { namespace: OPERAND_NAMESPACE, name };
      if (kind === 'secret') await world.kube.create(SECRETS, { metadata, type: 'Opaque', data: { k: 'dg==' } });
      else await world.kube.create(CONFIG_MAPS, { metadata, data: { k: 'v' } });
    }
    world.writes.length = 0;
    const config = {
      operandNamespace: OPERAND_NAMESPACE,
      revisioned: { configMaps: names('configmap'), secrets: names('secret') },
    };
    await world.run(revisionReconcile({ ...world.shared, config }));
    const created = world.created.filter(text => !listed.some(([kind, name]: string[]) => text === `${kind} ${name}`));
    const operator = await world.kube.get(KUBE_API_SERVERS, CLUSTER);
    for (const [name, value] of Object.entries<Json>(expected)) {
      if (name === 'created') assert.equal(created.length, value);
      else if (name === 'createdInOrder') assert.deepEqual(created, value);
      else if (name === 'latestAvailableRevision') assert.equal(operator.status?.latestAvailableRevision, value);
      else if (name === 'ownerReferences') {
        const copies = (await world.kube.list(SECRETS, { namespace: OPERAND_NAMESPACE })).items.filter(({ metadata }) => /-\d+$/.test(metadata?.name ?? ''));
        assert.ok(copies.length > 0);
        for (const { metadata } of copies) assert.deepEqual(metadata?.ownerReferences?.map(owner => owner.name), [value]);
      } else if (name === 'condition') {
        const found = operator.status?.conditions?.find(({ type }) => type === value.type);
        for (const [field, wanted] of Object.entries(value)) assert.equal(found?.[field as keyof Condition], wanted);
      } else if (name === 'event') world.hasEvent(value);
      else assert.fail(`unknown expectation ${name}`);
    }
  },

  'revision-effect'(given, expected) {
    const text: string = given.dataChanged ?? given.changed ?? given.metadataChanged;
    // The text of the wish is part of the ConfigMap with the manifest.
    const [, kind, name] = /(secret|configmap) ([\w.-]+)/.exec(text.startsWith('spec.') ? 'configmap kube-apiserver-pod' : text) ?? [];
    const object = OPERAND_OBJECTS.find(candidate => candidate.kind.toLowerCase() === kind && candidate.name === name);
    assert.ok(object, text);
    if (given.metadataChanged || /label|annotation/.test(text)) {
      // Only data counts: the same data is the same revision.
      const same = { data: { k: 'v' } };
      const pair: RevisionedPair = { name: object.name, kind: kind as 'secret', source: same, copy: same };
      assert.deepEqual([compareRevision(1, [pair]).outcome, expected.newRevision], ['current', false]);
      return;
    }
    const effects = effectOfChange(graph, operandRef(object)).filter(({ path }) => path.length === 1);
    const restarts = verdictOf(effects) === 'restart';
    assert.equal(restarts, expected.newRevision);
    if ('podRestart' in expected) assert.equal(restarts, expected.podRestart);
    if (!expected.reason) return;
    const isFirst = /first time|created/.test(text);
    const pairs: RevisionedPair[] = (['configmap', 'secret'] as const).flatMap(each =>
      (each === 'secret' ? REVISIONED.secrets : REVISIONED.configMaps).map(listed => {
        const isChanged = each === kind && listed.name === name;
        const copy = isChanged && isFirst ? undefined : { data: { k: 'old' } };
        return { ...listed, kind: each, source: { data: { k: isChanged ? 'new' : 'old' } }, copy };
      }),
    );
    const comparison = compareRevision(1, pairs);
    assert.equal(comparison.outcome === 'changed' && comparison.reason, expected.reason);
  },

  async 'cert-syncer'(given, expected, t) {
    if (given.kubeconfigFile) {
      await checkKubeconfigRestart(given.kubeconfigFile, t);
      assert.match(expected.process, /terminates/);
      return;
    }
    await checkSyncer(given, expected, t);
  },

  async hostnames(given, expected) {
    if (given.static) {
      const { commonName, dnsNames, ipAddresses } = splitHosts(given.static);
      assert.deepEqual([commonName, dnsNames, ipAddresses], [expected.commonName, expected.dnsSANs, expected.ipSANs]);
      assert.equal([...new Set([...dnsNames, ...ipAddresses])].sort().join(','), expected.annotation);
      return;
    }
    if (given.serviceNetwork) {
      const answer = decideHostnames('service-network', { network: { status: given }, infrastructure: undefined });
      if (given.serviceNetwork.length === 0) {
        assert.ok(!answer.ok, CORRECTED.noServiceNetwork);
        return;
      }
      if (!expected.adds && !expected.includes) {
        assert.ok(!answer.ok, JSON.stringify(expected));
        return;
      }
      assert.ok(answer.ok);
      for (const address of expected.adds ?? []) assert.ok(answer.hostnames.includes(address), address);
      if (expected.adds) assert.equal(answer.hostnames.length, 8 + expected.adds.length);
      if (expected.includes) for (const name of expected.includes) assert.ok(answer.hostnames.includes(name), name);
      return;
    }
    const isInternal = 'apiServerInternalURL' in given;
    const url: string | undefined = given.apiServerURL ?? given.apiServerInternalURL;
    if (url === undefined) {
      checkFollowing(CORRECTED.internalFollows);
      return;
    }
    const status = isInternal ? { apiServerInternalURI: url } : { apiServerURL: url };
    const source = isInternal ? 'internal-load-balancer' : 'external-load-balancer';
    const answer = decideHostnames(source, { network: undefined, infrastructure: { status } });
    const wanted = expected.internal ?? expected.external;
    if (wanted === 'unchanged' || url === '') assert.ok(!answer.ok);
    else {
      assert.ok(answer.ok, JSON.stringify(answer));
      const host = new URL(/^https?:/.test(url) ? url : `https://${url}`).hostname.replace(/^\[|\]$/g, '');
      const isPlain = Array.isArray(wanted) && !url.includes('[');
      if (!isPlain) notCompared({ wanted: [wanted].flat() }, 'wanted');
      assert.deepEqual(answer.hostnames, isPlain ? wanted : [host], CORRECTED.addressHosts);
    }
    if (expected.firstRunCertificate) {
      const chain = KUBE_APISERVER_CHAINS.find(({ target }) => target.creator.kind === 'serving' && target.creator.hostnames === source);
      const [unit] = rotationUnits({ dayMs: days(1), hostnames: hostnameSources(), keyAlgorithm: 'P-256', chains: [chain!] });
      const reports: [string, string][] = [];
      const report = async (name: string, error: Error | undefined) => {
        reports.push([`${rotationCondition(name)}=${error ? 'True' : 'False'}`, error?.message ?? '']);
        return true;
      };
      await assert.rejects(reconcileUnit(unit!, rotationOn(new MemoryKube()), report));
      assert.ok(`error ${reports[0]?.[1]}`.startsWith(expected.firstRunCertificate));
      if (expected.condition) assert.equal(reports[0]?.[0], expected.condition);
    }
  },

  async 'bound-sa-keys'(given, expected) {
    await checkBoundKeys(given, expected);
  },

  clusteroperator(given, expected) {
    const conditions = (given.conditions ?? []).map(({ ageMinutes = 60, ageSeconds, ...condition }: Json) => ({
      ...condition,
      lastTransitionTime: formatRfc3339(new Date(NOW.getTime() - (ageSeconds === undefined ? ageMinutes * 60_000 : seconds(ageSeconds)))),
    }));
    const policy = { inertia: inertiaOf(), relatedObjects: [] };
    const state = { managementState: given.managementState ?? 'Managed', conditions, versions: {} };
    const { status } = decideClusterOperatorStatus({}, state, policy, NOW);
    const all = expected.all ?? expected.everyCondition;
    const wanted: Record<string, Json> = all
      ? Object.fromEntries((status.conditions ?? []).map(({ type }) => [type, all]))
      : expected;
    for (const [type, fields] of Object.entries<Json>(wanted)) {
      const found = status.conditions?.find(condition => condition.type === type);
      assert.ok(found, type);
      for (const [field, value] of Object.entries(typeof fields === 'string' ? { status: fields } : fields)) {
        if (field === 'messageContains') assert.ok(found.message?.includes(value as string), found.message);
        else assert.equal(found[field as keyof Condition], value, `${type}.${field}`);
      }
    }
  },
};

for (const [area, vectors] of Map.groupBy(file.cases, vector => vector.area)) {
  const adapter = adapters[area] ?? (() => assert.fail(`no adapter for area ${area}`));
  runGroup(
    area,
    vectors.map(vector => ({
      ...vector,
      name: `${vector.id} ${area}${vector.note ? `: ${vector.note}` : ''}`,
      run: (given, expected, t) => adapter(given, expected, t, vector),
    })),
  );
}

/** Any change of the Infrastructure reaches both load balancers. */
function checkFollowing(why: string): void {
  let tell = () => {};
  let host = 'before';
  const source = <T>(object: () => T) => ({
    synced: Promise.resolve(),
    get: object,
    subscribe: (handlers: { add(object: T): void }) => {
      tell = () => handlers.add(object());
      return () => {};
    },
  });
  const sources = hostnameSources();
  const infrastructure = () => ({ status: { apiServerURL: `https://${host}:1`, apiServerInternalURI: `https://int-${host}:1` } });
  followHostnames(sources, source(() => ({})), source(infrastructure));
  for (host of ['before', 'after']) {
    tell();
    assert.deepEqual(sources['external-load-balancer'].get(), [host], why);
    assert.deepEqual(sources['internal-load-balancer'].get(), [`int-${host}`], why);
  }
}

/** The objects, the operator resource and what a controller needs around it. */
class World {
  readonly kube: Kube;
  readonly writes: string[];
  readonly created: string[];
  readonly clock = new VirtualClock(NOW);
  readonly events = recordingEvents();
  readonly operator: StaticPodOperator;
  readonly cached: ReturnType<typeof liveObjects>;

  private constructor() {
    const { kube, writes, created } = recordingKube(false);
    this.kube = kube;
    this.writes = writes;
    this.created = created;
    this.operator = new StaticPodOperator({ kube, resource: KUBE_API_SERVERS, clock: this.clock });
    this.cached = liveObjects(kube);
  }

  static async start(spec: Json = {}): Promise<World> {
    const world = new World();
    const { latestAvailableRevision, ...rest } = spec;
    await world.kube.create(KUBE_API_SERVERS, {
      metadata: CLUSTER,
      spec: { managementState: 'Managed', ...rest },
      status: latestAvailableRevision ? { latestAvailableRevision } : {},
    });
    world.writes.length = 0;
    world.created.length = 0;
    return world;
  }

  get shared() {
    const { kube, operator, cached } = this;
    return { kube, operator, cached };
  }

  get targetConfig() {
    const program = { flavor: 'openshift', image: 'i', operatorImage: 'o', operatorCommand: ['rotunda'], version: '1' } as const;
    return { ...this.shared, program, hasStartupMonitor: () => false };
  }

  run(reconcile: Reconcile) {
    const signal = new AbortController().signal;
    return reconcile('key', { signal, clock: this.clock, events: this.events, log: silentLog, enqueue: () => {} });
  }

  hasEvent({ type, reason }: { type: string; reason: string }): void {
    assert.ok(this.events.events.some(event => event.type === type && event.reason === reason), `no ${type} ${reason}`);
  }
}

/** Notes every write that succeeded. With `changesTypes` the API takes a new type of a Secret, as OpenShift's does. */
function recordingKube(changesTypes: boolean): { kube: Kube; writes: string[]; created: string[] } {
  const store = new MemoryKube();
  const writes: string[] = [];
  const created: string[] = [];
  const changeType = async (kind: Resource, object: KubeObject) => {
    const live = await store.get(kind, keyOf(object));
    const isNewType = kind === SECRETS && (live as Secret).type !== (object as Secret).type;
    if (!changesTypes || !isNewType) return store.update(kind, object);
    assert.equal(live.metadata?.resourceVersion, object.metadata?.resourceVersion);
    await store.delete(kind, keyOf(object));
    return store.create(kind, object);
  };
  const kube = new Proxy(store, {
    get(target, verb: keyof Kube) {
      const method = target[verb] as unknown as (...args: unknown[]) => Promise<unknown>;
      if (!['create', 'update', 'updateStatus', 'delete'].includes(verb)) return method.bind(target);
      return async (...args: unknown[]) => {
        const [kind, object] = args as [Resource, KubeObject];
        const result = verb === 'update' ? await changeType(kind, object) : await method.apply(target, args);
        // The copy that is set aside meanwhile is no part of what a vector tells.
        if (kind !== KUBE_API_SERVERS && !isSetAside(args[1] as Secret)) writes.push(verb);
        if (verb === 'create') created.push(`${kind.kind.toLowerCase()} ${object.metadata?.name}`);
        return result;
      };
    },
  });
  return { kube, writes, created };
}

function isSetAside({ metadata, name = metadata?.name }: KubeObject & { name?: string | undefined }): boolean {
  return name?.endsWith('.set-aside.rotunda.dev') ?? false;
}

function rotationOn(kube: Kube): Rotation {
  const clock = new VirtualClock(NOW);
  return { kube, objects: rotationObjects(kube), clock, keys: systemKeys, events: recordingEvents(), locks: new ObjectLocks() };
}

const authorities = new Map<string, Promise<Certificate>>();

/** A CA by name; one whose name says so has expired. */
function authority(name: string, created?: Date): Promise<Certificate> {
  const isExpired = /expired/i.test(name);
  const made = created ?? new Date(NOW.getTime() - days(isExpired ? 40 : 1));
  const key = `${name}@${made.getTime()}`;
  const known = authorities.get(key);
  if (known !== undefined) return known;
  const fresh = issueSigner({ commonName: name, lifetimeMs: days(30), now: made, keys: systemKeys, algorithm: 'P-256' });
  const certificate = fresh.then(({ chain }) => chain[0] as Certificate);
  authorities.set(key, certificate);
  return certificate;
}

async function pemOf(names: readonly string[]): Promise<string> {
  return encodeCertificates(await Promise.all(names.map(name => authority(name))));
}

/** Certificates whose bytes are in the order of the names. */
async function inOrder(names: readonly string[]): Promise<Map<string, Certificate>> {
  const certificates = await Promise.all(names.map((_, index) => authority(`ordered ${index}`)));
  certificates.sort((a, b) => Buffer.compare(a.der, b.der));
  return new Map(names.map((name, index) => [name, certificates[index] as Certificate]));
}

/** `now`, `now+24h`, `now-10s`. */
function relative(text: string): Date {
  const [, sign, duration] = /^now(?:([+-])(.+))?$/.exec(text) ?? [];
  const offset = duration === undefined ? 0 : parseGoDuration(duration);
  assert.ok(text.startsWith('now') && offset !== undefined, `cannot read ${text}`);
  return new Date(NOW.getTime() + (sign === '-' ? -offset : offset));
}

async function signerSecret({ type, annotations, data }: Json): Promise<Secret> {
  const ca = await issueSigner({ commonName: 'ns_signer@1', lifetimeMs: days(1), now: NOW, keys: systemKeys, algorithm: 'P-256' });
  const metadata = { namespace: 'ns', name: 'signer' };
  const fresh = { ...withCertificate({ metadata }, ca, 'signer', days(0.5)), type: type ?? 'kubernetes.io/tls' };
  const given =
    typeof annotations === 'object' && annotations !== null
      ? Object.fromEntries(
          Object.entries<string>(annotations).map(([name, value]) => [{ notBefore: NOT_BEFORE, notAfter: NOT_AFTER }[name] ?? name, value]),
        )
      : annotations === 'fresh'
        ? fresh.metadata?.annotations
        : {};
  return {
    ...fresh,
    metadata: { ...metadata, annotations: given ?? {} },
    ...(data === 'empty' ? { data: { 'tls.crt': '', 'tls.key': '' } } : {}),
  };
}

/** `<object>: { validity, refresh }` at a scale, with 4.16's rule of what is scaled; ours scales everything (issue 2). */
function checkScaled(name: string, { validity, refresh }: { validity: string; refresh: string }, scaleMs: number): void {
  const objects = [...signersOf(KUBE_APISERVER_CHAINS).map(({ signer }) => signer), ...KUBE_APISERVER_CHAINS.map(({ target }) => target)];
  const matching = objects.filter(object =>
    name === 'every30dTarget' ? object.validityDays === 30 && object.refreshDays === 15 : object.name === name,
  );
  assert.ok(matching.length > 0, name);
  for (const object of matching) {
    const dayMs = object.in416.scaled ? rotationDay(scaleMs) : days(1);
    const { validityMs, refreshMs } = lifetimeOf(object, dayMs);
    assert.deepEqual([validityMs, refreshMs], [parseGoDuration(validity), parseGoDuration(refresh)], object.name);
  }
}

function checkRules(rules: readonly { destination: { name: string }; source?: { namespace: string; name: string } | undefined }[], expected: Json): void {
  if (expected === null) {
    assert.deepEqual(rules, []);
    return;
  }
  const found = rules.map(({ destination, source }) => [destination.name, source ? `${source.namespace}/${source.name}` : 'DELETE']);
  assert.deepEqual(Object.fromEntries(found), expected);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

async function checkKubeconfigRestart(what: string, t: TestContext): Promise<void> {
  const { files } = await temporaryFiles(t);
  await files.makeDirectory('/etc');
  await files.createFile('/etc/kubeconfig', Buffer.from('one'), 0o600);
  const clock = new VirtualClock(NOW);
  const stop = new AbortController();
  const lists = { configMaps: [], secrets: [] };
  const options = { namespace: OPERAND_NAMESPACE, destinationDir: '/certs', kubeconfig: '/etc/kubeconfig', ...lists };
  const running = runCertSyncer(options, { kube: quietKube(), files, lock: freeLock, clock, log: silentLog, events: recordingEvents() }, stop.signal);
  let ended = false;
  const outcome = running.finally(() => (ended = true));
  // The program reads the real file in its own time: what is changed before its first look is changed once more.
  for (let turn = 0; !ended && turn < 10_000; turn++) {
    await files.remove('/etc/kubeconfig');
    const isGone = /vanish|removed|deleted/.test(what) && turn % 2 === 0;
    if (!isGone) await files.createFile('/etc/kubeconfig', Buffer.from(`content ${turn}`), 0o600);
    await clock.advance(seconds(1));
  }
  stop.abort();
  assert.equal(await outcome, 'kubeconfig changed');
}

/** An API with nothing in it, on which watches stay open. */
function quietKube(): Kube {
  const store = new MemoryKube();
  return new Proxy<Kube>(store, {
    get(target, verb: keyof Kube) {
      if (verb !== 'watch') return (target[verb] as unknown as (...args: unknown[]) => unknown).bind(target);
      // oxlint-disable-next-line require-yield -- nothing ever happens
      return async function* (_: Resource, { signal }: { signal?: AbortSignal } = {}) {
        await new Promise<void>(resolve => {
          if (signal?.aborted) resolve();
          else signal?.addEventListener('abort', () => resolve(), { once: true });
        });
      };
    },
  });
}

async function checkSyncer(given: Json, expected: Json, t: TestContext): Promise<void> {
  const [noun, name] = given.object.split(' ') as ['secret' | 'configmap', string];
  const kind = noun === 'secret' ? 'secrets' : 'configmaps';
  const listed = UNREVISIONED[noun === 'secret' ? 'secrets' : 'configMaps'].find(object => object.name === name);
  assert.ok(listed, given.object);
  const isOptional = given.optional ?? listed.optional ?? false;
  assert.equal(listed.optional ?? false, isOptional, name);
  const { files } = await temporaryFiles(t);
  const directory = join('/certs', kind, name);
  const object = OPERAND_OBJECTS.find(candidate => candidate.name === name)!;
  const key = { namespace: OPERAND_NAMESPACE, name };
  const content = (version: string, keys: readonly string[] = object.files): Secret | ConfigMap => {
    const data = Object.fromEntries(keys.map(each => [each, noun === 'secret' ? base64(version) : version]));
    return { metadata: key, data, ...(noun === 'secret' ? { type: 'Opaque' } : {}) };
  };
  const put = async (version: string, keys: readonly string[]) => {
    await files.makeDirectory(directory);
    for (const each of keys) await files.createFile(join(directory, each), Buffer.from(version), 0o600);
  };
  const inCache = given.inCache ?? true;
  const cachedVersion: string = given.cached ?? 'new';
  const liveVersion: string = given.live ?? cachedVersion;
  const disk: string = given.disk ?? (given.dirExists === false ? 'missing' : given.dirExists ? 'old' : 'missing');
  const removedKeys = given.keyRemoved ?? given.removedKey;
  const diskVersion = disk === 'identical' ? cachedVersion : disk === 'differs' ? 'old' : disk;
  if (disk !== 'missing' && given.dirExists !== false) {
    await put(diskVersion, [...object.files, ...(removedKeys ? ['left-over'] : [])]);
  }
  const store = new MemoryKube();
  if (liveVersion !== 'NotFound' && (inCache || given.live)) {
    const wanted = content(liveVersion);
    if (noun === 'secret') await store.create(SECRETS, wanted as Secret);
    else await store.create(CONFIG_MAPS, wanted as ConfigMap);
  }
  let gets = 0;
  const kube = new Proxy<Kube>(store, {
    get(target, verb: keyof Kube) {
      if (verb === 'get') gets++;
      return (target[verb] as unknown as (...args: unknown[]) => unknown).bind(target);
    },
  });
  const events = recordingEvents();
  const options = { namespace: OPERAND_NAMESPACE, destinationDir: '/certs', configMaps: [], secrets: [], [noun === 'secret' ? 'secrets' : 'configMaps']: [listed] };
  const cached: CertSyncDeps['cached'] = () => (inCache ? content(cachedVersion) : undefined);
  const before = await visibleTree(files, '/certs').catch(() => ({}));
  const error = await syncCertificates(options, { kube, cached, files, lock: freeLock, events, log: silentLog }).then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  const after = await visibleTree(files, '/certs').catch((): Record<string, string> => ({}));
  const contentOf = (tree: Record<string, string>, each: string) => tree[`${kind}/${name}/${each}`];
  const written = object.files.filter(each => contentOf(after, each) !== contentOf(before as Record<string, string>, each));
  for (const [what, value] of Object.entries<Json>(expected)) {
    if (what === 'writes') assert.deepEqual([...written].sort(), value === 0 ? [] : (value as string[]).toSorted());
    else if (what === 'liveGet') assert.equal(gets > 0, value);
    else if (what === 'mode') {
      for (const each of written) assert.equal(`0${contentOf(after, each)?.split(' ')[0]}`, value);
    } else if (what === 'error') assert.equal(error !== undefined, Boolean(value));
    else if (what === 'event') {
      assert.ok(events.events.some(event => event.type === value.type && event.reason === value.reason));
    } else if (what === 'directory' && /removed/.test(value)) assert.equal(await files.info(directory), undefined);
    else if (what === 'directory' || what === 'disk' || what === 'diskUntouched') assert.deepEqual(after, before);
    else if (/leftover|leftOver|remains/i.test(what)) assert.equal(contentOf(after, 'left-over'), undefined, CORRECTED.leftovers);
    else assert.fail(`unknown expectation ${what}`);
  }
  if (expected.error === undefined) assert.equal(error, undefined, error?.message);
}

/** Symbolic keys stand for themselves: `K1` is the public half of the pair K1. */
async function checkBoundKeys(given: Json, expected: Json): Promise<void> {
  const pair = (symbol: string): Secret => ({
    metadata: NEXT_SIGNING_KEY,
    data: { [PRIVATE_KEY]: base64(`${symbol} private`), [PUBLIC_KEY]: base64(symbol) },
  });
  const numbered = (keys: readonly string[]) =>
    Object.fromEntries(keys.map((key, index) => [`service-account-${String(index + 1).padStart(3, '0')}.pub`, key]));
  const present = given.next && given.next !== 'missing' ? pair(given.next) : undefined;
  const next = needsSigningKey(present) ? await newSigningKey(systemKeys) : (present as Secret);
  const publicKey = publicKeyOf(next) as string;
  const before: Record<string, string> = Array.isArray(given.publicKeys) ? numbered(given.publicKeys) : (given.publicKeys ?? {});
  const publicKeys = withPublicKey(before, publicKey);
  const revisions = given.nodeStatuses?.map((node: Json) => node.currentRevision) ?? Object.values<number>(given.nodeRevisions ?? {});
  const active = !given.operand || given.operand === 'missing' ? undefined : pair(given.operand);
  const promotion = decidePromotion({
    next,
    active: 'nodeStatuses' in given ? pair('K0') : active,
    publicKeys: { data: { ...publicKeys } },
    nodeRevisions: revisions,
    revisioned: revision => {
      const copy = given.revisioned?.[`bound-sa-token-signing-certs-${revision}`];
      return copy && { data: Array.isArray(copy) ? numbered(copy) : copy };
    },
  });
  for (const [name, value] of Object.entries<Json>(expected)) {
    if (name === 'next') {
      assert.match(value, /created/);
      assert.equal(present, undefined);
      const { createPublicKey } = await import('node:crypto');
      const der = Buffer.from(publicKey.split('\n').slice(1, -2).join(''), 'base64');
      const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
      assert.deepEqual([key.asymmetricKeyType, key.asymmetricKeyDetails?.modulusLength], ['rsa', 2048]);
      assert.match(publicKey, /^-----BEGIN RSA PUBLIC KEY-----/);
    } else if (name === 'publicKeys') {
      const wanted = Array.isArray(value) ? numbered(value) : value;
      assert.deepEqual(publicKeys, Object.fromEntries(Object.entries<string>(wanted).map(([key, text]) => [key, text === 'new' ? publicKey : text])));
    } else if (name === 'allNodesHaveKey') assert.equal(promotion.action === 'promote', value);
    else if (name === 'error') assert.equal(promotion.action === 'fail', Boolean(value));
    else if (name === 'operand' && /pending|wait/.test(value)) assert.equal(promotion.action, /error/.test(value) ? 'fail' : 'wait');
    else if (name === 'operand' && /copied|promoted/.test(value)) assert.equal(promotion.action, 'promote');
    else if (name === 'operand' && value === given.next) assert.ok(['promote', 'done'].includes(promotion.action));
    else if (name === 'operand' && value === given.operand) assert.ok(['wait', 'fail', 'done'].includes(promotion.action));
    else assert.fail(`unknown expectation ${name}: ${JSON.stringify(value)}`);
  }
  assert.notDeepEqual(ACTIVE_SIGNING_KEY, NEXT_SIGNING_KEY);
}
