import assert from 'node:assert/strict';
import { VirtualClock } from '../../../src/kube/clock.ts';
import { KubeError } from '../../../src/kube/error.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import type { Kube } from '../../../src/kube/port.ts';
import { CONFIG_MAPS } from '../../../src/kube/resource.ts';
import { readSources } from '../../../src/machine-config/operator/sources.ts';
import { ServerCaFollower } from '../../../src/machine-config/operator/server-ca.ts';
import { ensureMachineConfig } from '../../../src/machine-config/render/ensure-config.ts';
import { MACHINE_CONFIGS } from '../../../src/machine-config-api/machine-config.ts';
import { knownWord, notCompared } from '../run-case.ts';
import { seconds } from '../../../src/kube/duration.ts';
import { certificateInventory } from '../../../src/machine-config/controller-config/certificates.ts';
import { mergeControllerConfig } from '../../../src/machine-config/controller-config/apply.ts';
import { decideServerCa, digestOf } from '../../../src/machine-config/controller-config/server-ca.ts';
import { certificateStatus, completedStatus, failedStatus, startedStatus, whyIncomplete } from '../../../src/machine-config/controller-config/status.ts';
import { ignitionHost, pointerConfig, userDataSecret } from '../../../src/machine-config/operator/pointer.ts';
import { mergeMachineConfig } from '../../../src/machine-config/render/apply.ts';
import { cloudConfig } from '../../../src/machine-config/source/cloud-config.ts';
import { readBytes, readText } from '../../../src/machine-config/source/config-map.ts';
import { clusterDnsIp, discoveredSpec, ipFamilies } from '../../../src/machine-config/source/discovered.ts';
import { parseDockercfg, parseDockerConfig, toDockercfg, toDockerConfigJson } from '../../../src/machine-config-api/docker-config.ts';
import { kubeletClientCa, replaceCertificate } from '../../../src/machine-config/source/kubelet-ca.ts';
import { internalPullSecret } from '../../../src/machine-config/source/pull-secret.ts';
import { mergedRegistryCa, registryBundles, registryCaPath } from '../../../src/machine-config/source/registry-ca.ts';
import { trustBundle } from '../../../src/machine-config/source/trust-bundle.ts';
import { type Adapter, base64, configMap, defined, expectError, type Json, NOW, utf8 } from './case.ts';

const BYTE_FIELDS = ['kubeAPIServerServingCAData', 'rootCAData', 'cloudProviderCAData', 'additionalTrustBundle', 'internalRegistryPullSecret'];

export const sourceAdapters: Record<string, Adapter> = {
  'cm-decode'(given, expected) {
    const { namespace, name, ...rest } = given.configMap;
    const object = { metadata: { namespace, name }, ...rest };
    const read = given.reader === 'cloudConfig' ? () => Buffer.from(readText(object, given.key)) : () => readBytes(object, given.key);
    return expectError(expected, read, bytes => {
      if (expected.bytesHex !== undefined) assert.equal(bytes.toString('hex'), expected.bytesHex);
      if (expected.bytesUtf8 !== undefined) assert.equal(bytes.toString('utf8'), expected.bytesUtf8);
    });
  },

  'cloud-config'(given, expected) {
    const found = configMap(given.kubeCloudConfig, 'openshift-config-managed', 'kube-cloud-config');
    return expectError(expected, () => cloudConfig(given.infrastructure, found), ({ config, ca }) => {
      assert.equal(config, expected.cloudProviderConfig);
      assert.equal(ca?.toString('utf8') ?? null, expected.cloudProviderCAData ?? expected.cloudProviderCADataUtf8 ?? null);
    });
  },

  'docker-config'(given, expected) {
    const sameJson = (found: string, wanted: string) => assert.deepEqual(JSON.parse(found), JSON.parse(wanted));
    switch (given.op) {
      case 'toDockercfg':
        return expectError(expected, () => toDockercfg(given.input), text => sameJson(text, expected.output));
      case 'toDockerconfigjson':
        return expectError(expected, () => toDockerConfigJson(given.input), ({ text, converted }) => {
          // 4.16 takes an empty `auths` for the legacy form and wraps it once more (PS-7): ours leaves it alone.
          const isEmptyModern = Object.keys(JSON.parse(given.input).auths ?? { some: '' }).length === 0;
          if (isEmptyModern) {
            notCompared(expected, 'output', 'converted');
            sameJson(text, given.input);
            assert.equal(converted, false);
            return;
          }
          sameJson(text, expected.output);
          assert.equal(converted, expected.converted);
        });
      case 'parse':
        return expectError(expected, () => parseDockerConfig(given.input), auths => assert.deepEqual({ ...auths }, expected.auths));
      case 'mergeInto':
        return expectError(expected, () => ({ ...given.entries, ...parseDockercfg(given.input) }), entries => {
          for (const [host, wanted] of Object.entries(expected.entries)) assert.deepEqual(shown(entries[host], wanted), wanted);
          assert.deepEqual(Object.keys(entries).sort(), Object.keys(expected.entries).sort());
        });
      default:
        assert.fail(`no docker-config operation ${given.op}`);
    }
  },

  'internal-pull-secret'(given, expected) {
    const secrets = new Map<string, Json>((given.saSecrets ?? []).map((secret: Json) => [secret.name, secret]));
    const global = given.globalPullSecret;
    const build = () =>
      internalPullSecret({
        hasImageRegistry: given.imageRegistryClusterOperatorExists,
        dns: given.dnsBaseDomain === undefined || given.dnsBaseDomain === null ? undefined : { spec: { baseDomain: given.dnsBaseDomain } },
        puller: given.machineOsPullerExists ? { imagePullSecrets: [...secrets.keys()].map(name => ({ name })) } : undefined,
        pullerSecret(name) {
          const secret = secrets.get(name);
          if (secret === undefined || secret.missing) return undefined;
          return { metadata: { name }, data: secret.dockercfg === null ? {} : { '.dockercfg': base64(secret.dockercfg) } };
        },
        global: global ? { type: global.type, data: { '.dockerconfigjson': base64(global.dockerconfigjson) } } : undefined,
      });
    return expectError(expected, build, text => {
      if (expected.result === null) assert.equal(text, undefined);
      else {
        assert.deepEqual(JSON.parse(text ?? ''), { auths: expected.auths });
        assert.deepEqual(Object.keys(JSON.parse(text ?? '').auths), Object.keys(expected.auths).sort());
      }
    });
  },

  'image-registry-ca'(given, expected) {
    const find = (key: string) => configMap(given.configMaps[key], '', '');
    const userName = given.imageConfig.spec?.additionalTrustedCA?.name;
    const managed = registryBundles(find('openshift-config-managed/image-registry-ca'));
    const user = registryBundles(userName ? find(`openshift-config/${userName}`) : undefined);
    const shownList = (list: Json[]) => list.map(({ file, data }) => ({ file, dataUtf8: utf8(data) }));
    assert.deepEqual(shownList(managed), expected.imageRegistryBundleData);
    assert.deepEqual(shownList(user), expected.imageRegistryBundleUserData);
    const merged = mergedRegistryCa(managed, user);
    if (expected.mergedConfigMapPatched === false && managed.length + user.length === 0) {
      // 4.16 leaves the last entries behind (IR-4): ours are gone with their source.
      assert.deepEqual(merged.data, {});
      notCompared(expected.mergedConfigMap ?? {}, 'namespace', 'name', 'data');
    } else if (expected.mergedConfigMap) {
      const { data, ...place } = expected.mergedConfigMap;
      assert.deepEqual(merged.data, data);
      for (const [field, value] of Object.entries(place)) assert.equal((merged.metadata as Json)[field], value, field);
    }
    if (expected.nodePaths) assert.deepEqual([...managed, ...user].map(({ file }) => registryCaPath(file)), expected.nodePaths);
  },

  'discovered-spec'(given, expected) {
    if (given.op === 'clusterDNSIP') return expectError(expected, () => clusterDnsIp(given.serviceCIDR), ip => assert.equal(ip, expected.ip));
    if (given.op === 'ipFamilies') return expectError(expected, () => ipFamilies(given.serviceCIDRs), found => assert.equal(found, expected.ipFamilies));
    assert.equal(given.op, 'discover');
    const proxy = given.proxyStatus === null || given.proxyStatus === undefined ? undefined : { status: given.proxyStatus };
    return expectError(expected, () => discoveredSpec({ status: given.infraStatus }, given.network, proxy, given.dns ?? undefined), spec => {
      for (const [field, wanted] of Object.entries(expected)) {
        if (field === 'infraPlatformType') assert.equal(spec.infra?.status?.platformStatus?.type, wanted);
        else assert.deepEqual((spec as Json)[field] ?? null, wanted, field);
      }
    });
  },

  'pointer-config'(given, expected) {
    if (given.op === 'ignitionHost') return expectError(expected, () => ignitionHost(given.infraStatus), host => assert.equal(host, expected.host));
    assert.equal(given.op, 'pointerConfig');
    const secret = userDataSecret({ metadata: { name: given.pool, uid: 'u' } }, given.ignitionHost, Buffer.from(given.rootCAUtf8));
    assert.equal(secret.metadata?.namespace, expected.secret.namespace);
    assert.equal(secret.metadata?.name, expected.secret.name);
    assert.equal(secret.type, expected.secret.type);
    assert.equal(utf8(secret.data?.['disableTemplating']), expected.secret.disableTemplatingUtf8);
    assert.deepEqual(JSON.parse(utf8(secret.data?.['userData'])), expected.userData);
    assert.deepEqual(pointerConfig(given.ignitionHost, Buffer.from(given.rootCAUtf8), given.pool), expected.userData);
  },

  'ca-bundle-merge'(given, expected) {
    const merged = replaceCertificate(Buffer.from(given.initialBundle), Buffer.from(given.newBundle), given.subjectContains);
    assert.equal(merged.toString('utf8'), expected.merged);
  },

  'kubelet-client-ca'(given, expected) {
    const find = (namespace: string, name: string) => configMap(given.configMaps[`${namespace}/${name}`], namespace, name);
    const read = () => kubeletClientCa({ bootstrapComplete: given.bootstrapConfigMapExists, bringingUp: given.inClusterBringup, configMap: find });
    if (expected.internalRegistryPullSecret !== undefined) {
      const isBootstrap = (name: string) => name === 'bootstrap' && given.bootstrapConfigMapExists;
      const sources = {
        configMap: (namespace: string, name: string) => (isBootstrap(name) ? { metadata: { namespace, name } } : find(namespace, name)),
        secret: () => undefined,
        serviceAccount: () => undefined,
        infrastructure: undefined,
        network: undefined,
        proxy: undefined,
        dns: undefined,
        image: undefined,
        hasImageRegistry: true,
      };
      const { spec } = readSources(sources, { releaseVersion: '4.16.0', bringingUp: given.inClusterBringup });
      assert.equal(spec.internalRegistryPullSecret, expected.internalRegistryPullSecret);
    }
    return expectError(expected, read, ca => assert.equal(ca.toString('utf8'), expected.kubeAPIServerServingCAData));
  },

  'trust-bundle'(given, expected) {
    const proxy = { spec: { trustedCA: { name: given.proxyTrustedCA } } };
    const find = (name: string) => configMap(name === 'user-ca-bundle' ? given.userCABundle : given.proxyCABundle, 'openshift-config', name);
    return expectError(expected, () => trustBundle(proxy, find), bundle => assert.equal(bundle.toString('utf8'), expected.additionalTrustBundle));
  },

  'certificate-status'(given, expected) {
    const spec = encoded(given.spec);
    if (expected.statusWritten === false) {
      // 4.16 keeps the list of certificates that are gone (CT-3): ours is empty then.
      assert.deepEqual(certificateInventory(spec), []);
      return;
    }
    assert.deepEqual(certificateInventory(spec), expected.controllerCertificates);
    assert.deepEqual(certificateStatus({ spec, status: given.status ?? {} }).controllerCertificates, expected.controllerCertificates);
  },

  async apply(given, expected) {
    if (given.existing === null && given.kind === 'MachineConfig') {
      const kube = new MemoryKube();
      const outcome = await ensureMachineConfig(kube, { get: () => undefined, remember: () => {} }, given.required);
      assert.equal(outcome === 'created', expected.modified);
      const { metadata, spec } = await kube.get(MACHINE_CONFIGS, { name: given.required.metadata.name });
      assert.deepEqual(said(defined({ metadata: { name: metadata?.name, labels: metadata?.labels, annotations: metadata?.annotations }, spec })), said(expected.result));
      return;
    }
    if (given.kind === 'MachineConfig') {
      const { object, changed } = mergeMachineConfig(given.existing, given.required);
      assert.equal(changed, expected.modified);
      assert.deepEqual(said(object), said(expected.result));
      return;
    }
    assert.equal(given.kind, 'ControllerConfig');
    // In the original a field that is not mentioned is empty; with us it would be one whose source could not be read.
    const unsaid = Object.fromEntries([...BYTE_FIELDS, 'proxy', 'network'].map(field => [field, null]));
    const required = { ...given.required, spec: { ...unsaid, ...given.required.spec } };
    const { object, changed } = mergeControllerConfig(given.existing ?? {}, required);
    // 4.16 cannot clear this one text (CC-3): ours can.
    const isCleared = given.required.spec?.cloudProviderConfig === '' && !!given.existing?.spec?.cloudProviderConfig;
    const wanted = isCleared ? { ...expected.result, spec: { ...expected.result.spec, cloudProviderConfig: '' } } : expected.result;
    assert.equal(changed, isCleared ? true : expected.modified);
    assert.deepEqual(said(object), said(wanted));
  },

  async 'service-ca-rotate'(given, expected) {
    const { status, binaryDataUtf8, dataKeys, ...others } = given.kubeconfigData;
    assert.deepEqual(others, {});
    if (status !== undefined && status !== 'NotFound') {
      // Whatever could not be read is not decided about, and nothing is written. 4.16 goes on after a read that timed out as if there
      // were nothing; ours is made again.
      if (!expected.error) {
        knownWord(status, 'Timeout', 'ServerTimeout');
        notCompared(expected, 'annotation', 'kubeconfigData', 'settleWait');
      }
      const kube = new MemoryKube();
      const failing = new Proxy<Kube>(kube, {
        get: (target, name) =>
          name === 'get' ? () => Promise.reject(new KubeError(500, status, status)) : Reflect.get(target, name).bind(target),
      });
      const source = { data: { 'ca-bundle.crt': given.serverCA } };
      await assert.rejects(new ServerCaFollower().follow(failing, source, undefined, [], NOW), { reason: status });
      assert.deepEqual((await kube.list(CONFIG_MAPS)).items, []);
      return;
    }
    const isMissing = status === 'NotFound';
    const clock = new VirtualClock(NOW);
    const stored = binaryDataUtf8 === undefined ? undefined : Buffer.from(binaryDataUtf8);
    let [serverCa, stableSince] = [given.serverCA, clock.now()];
    const decide = () =>
      decideServerCa(
        {
          serverCa: serverCa === null || serverCa === undefined ? undefined : Buffer.from(serverCa),
          kubeconfigData: isMissing ? undefined : { bundle: stored },
          handOver: 'clock',
          stableSince,
          differsSince: NOW,
          announced: { rotate: undefined, digest: undefined },
          isAnyNodeBehind: () => false,
        },
        clock.now(),
      );
    let decision = decide();
    if (expected.settleWait === false) assert.equal(decision.settlesAt, undefined);
    const seen = [...(given.serverCADuringSettle ?? [])];
    while (decision.settlesAt !== undefined) {
      await clock.advance(seconds(15));
      const next = seen.shift() ?? serverCa;
      if (next !== serverCa) [serverCa, stableSince] = [next, clock.now()];
      decision = decide();
    }
    const waited = (clock.now().getTime() - NOW.getTime()) / 1000;
    if (expected.settleWaitSecondsAtLeast !== undefined) assert.ok(waited >= expected.settleWaitSecondsAtLeast, `waited ${waited} s`);
    if (dataKeys !== undefined && serverCa) {
      // 4.16 never repairs a ConfigMap without its key (CC-6): ours does.
      assert.equal(decision.write, 'patch');
      assert.equal(decision.rotate, 'true');
      notCompared(expected, 'annotation', 'kubeconfigData', 'settleWait', 'settleWaitSecondsAtLeast');
      return;
    }
    assert.equal(decision.rotate, expected.annotation);
    if (expected.kubeconfigData) {
      assert.equal(decision.write, expected.kubeconfigData.action);
      if (expected.kubeconfigData.binaryDataUtf8 !== undefined) {
        assert.equal(decision.bundle?.toString('utf8'), expected.kubeconfigData.binaryDataUtf8);
        assert.equal(decision.digest, digestOf(Buffer.from(expected.kubeconfigData.binaryDataUtf8)));
      }
    }
  },

  'controllerconfig-status'(given, expected) {
    if (expected.completed !== undefined) {
      const conditions = Object.keys(given)
        .filter(type => type.startsWith('Template'))
        .map(type => ({ type, status: given[type] }));
      const status = { observedGeneration: given.observedGeneration, conditions };
      assert.equal(whyIncomplete({ metadata: { generation: given.generation }, status }) === undefined, expected.completed);
      return;
    }
    let current: Json = {
      metadata: { generation: given.generation },
      status: { observedGeneration: given.observedGeneration, conditions: given.conditions },
    };
    const writes: Json[] = [];
    const write = (status: Json) => {
      if (JSON.stringify(status) !== JSON.stringify(current.status)) writes.push(status);
      current = { ...current, status };
    };
    write(startedStatus(current, '<version>', NOW));
    if (given.syncResult === 'ok') write(completedStatus(current, '<version>', NOW));
    else write(failedStatus(current, '<version>', String(given.syncResult), NOW));
    assert.equal(writes.length, expected.writes.length);
    for (const [index, wanted] of expected.writes.entries()) {
      assert.equal(writes[index].observedGeneration, wanted.observedGeneration);
      assert.equal(writes[index].conditions.length, wanted.conditions.length);
      for (const condition of wanted.conditions) {
        const found = writes[index].conditions.find(({ type }: Json) => type === condition.type);
        for (const field of ['status', 'reason'] as const) if (condition[field] !== undefined) assert.equal(found?.[field], condition[field]);
        if (condition.message !== undefined && given.syncResult === 'ok') assert.equal(found?.message, condition.message);
      }
      if (given.syncResult === 'ok') {
        const order = (conditions: Json[]) => conditions.map(({ type }) => type);
        assert.deepEqual(order(writes[index].conditions), order(wanted.conditions));
      }
    }
  },
};

/** Absent, null, empty and false are the same, except that they are all left out. */
function said(value: Json): Json {
  if (Array.isArray(value)) return value.map(said);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, said(member)] as const);
  return Object.fromEntries(
    entries.filter(([, member]) => member !== null && member !== '' && member !== false && !(typeof member === 'object' && Object.keys(member).length === 0)),
  );
}

/** The vectors show bytes as text. */
function encoded(spec: Json): Json {
  const bundles = (list: Json[] | undefined) => list?.map(({ file, data }) => ({ file, data: base64(data) }));
  return {
    ...Object.fromEntries(Object.entries(spec).map(([name, value]) => [name, BYTE_FIELDS.includes(name) ? base64(value as string) : value])),
    ...(spec.imageRegistryBundleData && { imageRegistryBundleData: bundles(spec.imageRegistryBundleData) }),
    ...(spec.imageRegistryBundleUserData && { imageRegistryBundleUserData: bundles(spec.imageRegistryBundleUserData) }),
  };
}

/** Only the members that the case names; the others are empty. */
function shown(entry: Json, wanted: Json): Json {
  return Object.fromEntries(Object.keys(wanted).map(name => [name, entry?.[name]]));
}
