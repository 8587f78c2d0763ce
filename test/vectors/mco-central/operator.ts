import assert from 'node:assert/strict';
import type { ControllerConfigSpec } from '../../../src/machine-config-api/controller-config.ts';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import { minutes } from '../../../src/kube/duration.ts';
import { controllerConfigChange, rolloutEffect } from '../../../src/machine-config/effect.ts';
import { readIgnition } from '../../../src/machine-config-api/ignition/read.ts';
import type { IgnitionConfig } from '../../../src/machine-config-api/ignition/types.ts';
import { registriesFiles } from '../../../src/machine-config/container-runtime/registries.ts';
import { clusterOperatorStatus } from '../../../src/machine-config/operator/cluster-operator.ts';
import { mergePolicies } from '../../../src/machine-config-api/disruption-policy.ts';
import { configurationProblem, requiredPools, requiredPoolsLimitMs } from '../../../src/machine-config/operator/required-pools.ts';
import { evaluationCondition, minorVersion, upgradeableCondition } from '../../../src/machine-config/operator/upgradeable.ts';
import { mergeMachineConfigs } from '../../../src/machine-config/render/merge.ts';
import { canonicalSpec, renderedName } from '../../../src/machine-config/render/name.ts';
import { servedVersion } from '../../../src/machine-config/server/accept.ts';
import { bootstrapKubeconfig, firstAnnotations, firstBootConfig, servedConfigName } from '../../../src/machine-config/server/serve.ts';
import { generateForRole } from '../../../src/machine-config/template/generate.ts';
import { type Adapter, base64, defined, type Json, NOW } from './case.ts';
import { CONTROLLER_CONFIG_SPEC } from './cluster.ts';

export const operatorAdapters: Record<string, Adapter> = {
  'pool-config-valid'(given, expected) {
    const osImageURL = given.osImageURLOfAll;
    const configs = new Map<string, MachineConfig>(
      given.machineConfigs.map((config: Json) => [
        config.name,
        {
          metadata: {
            name: config.name,
            annotations: defined({
              'machineconfiguration.openshift.io/generated-by-controller-version': config.controllerVersion,
              'machineconfiguration.openshift.io/release-image-version': config.releaseVersion,
              'machineconfiguration.openshift.io/os-image-url-overridden': config.osImageURLOverridden ? 'true' : undefined,
            }),
          },
          spec: { osImageURL },
        },
      ]),
    );
    const configuration = { name: given.configurationName, source: given.configurationSource.map((name: string) => ({ name })) };
    const spec = { configuration: { name: given.specConfigurationName ?? configuration.name } };
    const pool = { metadata: { name: given.pool }, spec, status: { configuration } };
    const problem = configurationProblem(pool, name => configs.get(name), {
      controllerHash: given.expectedControllerVersion,
      releaseVersion: given.expectedReleaseVersion,
      osImageUrl: given.expectedOSImageURL,
    });
    assert.equal(problem === undefined, expected.error === null || expected.error === undefined, problem);
  },

  clusteroperator(given, expected) {
    if (given.version !== undefined) {
      const minor = minorVersion(given.version);
      if (expected.error) assert.equal(minor, undefined);
      else assert.equal(minor, expected.minor);
      return;
    }
    if (given.kubeletVersions !== undefined) {
      const nodes = given.kubeletVersions.map((kubeletVersion: string) => ({ status: { nodeInfo: { kubeletVersion } } }));
      const { status, reason } = upgradeableCondition(poolsOf(given.pools), nodes, given.kubeAPIServerVersion);
      assert.deepEqual([status, reason], expected.Upgradeable);
      return;
    }
    if (given.passes !== undefined) {
      // Bring-up ends with the first pass without an error, as in `operatorReconcile`.
      let bringingUp = given.inClusterBringup;
      const seen = given.passes.map((pass: string) => (bringingUp &&= pass !== 'ok'));
      assert.deepEqual(seen, expected.inClusterBringupAfter);
      return;
    }
    let current: Json = {
      versions: given.initialReportedVersion === undefined || given.initialReportedVersion === null ? undefined : [{ name: 'operator', version: given.initialReportedVersion }],
    };
    const nodes: Json[] = [{ status: { nodeInfo: { kubeletVersion: 'v1.29.0' } } }];
    for (const [index, step] of given.steps.entries()) {
      const failures = Object.entries(step)
        .filter(([name, fails]) => name.endsWith('Fails') && fails)
        .map(([name]) => ({ step: name.replace(/Fails$/, ''), message: 'mocked' }));
      const pools = poolsOf(step.pools ?? given.pools);
      const outcome = {
        operatorVersion: step.operatorVersion,
        bringingUp: step.inClusterBringup,
        failures,
        pools,
        upgradeable: upgradeableCondition(pools, nodes, '1.29.0'),
        evaluation: evaluationCondition([], [], undefined),
      };
      current = clusterOperatorStatus(current, outcome, NOW);
      for (const [type, wanted] of Object.entries(expected.steps[index])) {
        const { status, reason } = current.conditions.find((condition: Json) => condition.type === type) ?? {};
        assert.deepEqual([status, reason ?? ''], wanted, `${type} in step ${index}`);
      }
    }
  },

  'required-pools'(given, expected) {
    const pools = poolsOf(given.pools);
    const byName = new Map<string, Json>(given.pools.map((pool: Json) => [pool.name, pool]));
    const outcome = requiredPools(pools, ({ metadata }) => (byName.get(metadata?.name ?? '').configValid === false ? 'not the one' : undefined));
    const wanted = expected.result === 'ok' ? 'done' : expected.result === 'immediate error' ? 'failed' : 'waiting';
    assert.equal(outcome.verdict, wanted);
    if (expected.errorContains) assert.ok(outcome.verdict !== 'done' && outcome.reason.includes(expected.errorContains));
    if (expected.timeoutMinutes !== undefined) assert.equal(requiredPoolsLimitMs(pools), minutes(expected.timeoutMinutes));
  },

  'node-disruption-policy'({ spec }, expected) {
    assert.deepEqual(defined(mergePolicies(spec)), expected.clusterPolicies);
  },

  'machine-config-server'(given, expected) {
    if (given.accept !== undefined) {
      const version = servedVersion(given.accept ?? undefined);
      if (expected.httpStatus === 400) assert.equal(version, undefined);
      else assert.equal(version, expected.version);
      return;
    }
    if (given.config !== undefined) {
      assert.deepEqual(firstAnnotations(given.config), expected.json);
      return;
    }
    if (given.pool !== undefined) {
      const { specConfiguration, statusConfiguration, updatedMachineCount } = given.pool;
      const pool = { spec: { configuration: { name: specConfiguration } }, status: { configuration: { name: statusConfiguration }, updatedMachineCount } };
      assert.equal(servedConfigName(pool), expected.served);
      return;
    }
    const files = given.renderedFiles.map((path: string) => ({ path, contents: { source: 'data:,' } }));
    const rendered = { metadata: { name: 'rendered-worker-1' }, spec: { config: { ignition: { version: '3.4.0' }, storage: { files } } } };
    const { kubeAPIServerServingCAData, cloudProviderCAData } = given.controllerConfigSpec;
    const [, tokenCa = ''] = Object.entries(given).find(([name]) => /token/i.test(name)) ?? [];
    const ca = given.kubeconfigDataBinary ?? tokenCa;
    const served = firstBootConfig({
      rendered,
      controllerConfig: { kubeAPIServerServingCAData: base64(kubeAPIServerServingCAData), cloudProviderCAData: base64(cloudProviderCAData) },
      kubeconfig: bootstrapKubeconfig('https://api', Buffer.from(ca), 'token'),
      version: '3.4.0',
    }) as IgnitionConfig;
    const paths = served.storage?.files?.map(({ path }) => path) ?? [];
    assert.deepEqual(paths.slice(given.renderedFiles.length), expected.addedFiles);
    for (const path of expected.notAdded ?? []) assert.ok(!paths.includes(path), path);
    if (expected.kubeconfigCA !== undefined) {
      const kubeconfig = served.storage?.files?.find(({ path }) => path === '/etc/kubernetes/kubeconfig')?.contents?.source ?? '';
      assert.ok(decodeURIComponent(kubeconfig).includes(base64(expected.kubeconfigCA)));
    }
    assert.ok(readIgnition(served));
  },

  /** The change is really made, the configs are really generated, merged and named, and both sides compared. */
  effect(given, expected) {
    const change = CHANGES.find(({ words }) => words.test(given.change));
    assert.ok(change, `no change "${given.change}"`);
    const after = { ...CONTROLLER_CONFIG_SPEC, ...change.spec };
    const { fields, written } = controllerConfigChange(CONTROLLER_CONFIG_SPEC, after);
    const [old, current] = [renderedOf(CONTROLLER_CONFIG_SPEC, '{"auths":{}}'), renderedOf(after, change.pullSecret ?? '{"auths":{}}', change.config)];
    const effect = rolloutEffect(old.config, current.config);
    assert.deepEqual(fields, expected.controllerConfigFields.toSorted());
    assert.equal(old.name !== current.name, expected.newRenderedConfig);
    if (effect.action === 'nothing') assert.match(expected.nodeAction, written.length > 0 ? /writer/ : /nothing|writer|none|continue/);
    else assert.match(expected.nodeAction, ACTION_WORDS[effect.action] ?? /./);
    if (typeof expected.drain === 'boolean') assert.equal(effect.drain, expected.drain);
    const wantedPaths = expected.nodePaths.map((path: string) => path.replace('<host[:port]>', 'registry:5000'));
    for (const path of wantedPaths) assert.ok([...written, ...effect.paths].includes(path) || effect.action === 'nothing', path);
  },
};

const ACTION_WORDS: Record<string, RegExp> = {
  write: /none|write/i,
  'reload crio': /reload/i,
  'restart crio': /restart|ca-trust/i,
  reboot: /reboot/i,
};

interface Change {
  readonly words: RegExp;
  readonly spec?: ControllerConfigSpec;
  readonly pullSecret?: string;
  readonly config?: MachineConfig;
}

const NEW = Buffer.from('new\n').toString('base64');
const fileConfig = (path: string): MachineConfig => ({
  metadata: { name: '99-x', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
  spec: { config: { ignition: { version: '3.4.0' }, storage: { files: [{ path, contents: { source: 'data:,new' } }] } } },
});

/** Where images come from, as the controller writes it. */
function registriesConfig(): MachineConfig {
  const image = { spec: { registrySources: { insecureRegistries: ['registry.example.com'] } } };
  const files = registriesFiles({ image, contentPolicies: [], digestMirrors: [], tagMirrors: [] });
  return { ...fileConfig('/'), spec: { config: { ignition: { version: '3.4.0' }, storage: { files } } } };
}

/** What the words of a case mean; the first that fits. */
const CHANGES: readonly Change[] = [
  { words: /kube-apiserver-client-ca/, spec: { kubeAPIServerServingCAData: NEW } },
  { words: /kube-apiserver-server-ca/ },
  { words: /ca-bundle\.pem/, spec: { cloudProviderCAData: NEW } },
  { words: /cloud\.conf/, spec: { cloudProviderConfig: 'new' } },
  {
    words: /image-registry-ca|additionalTrustedCA/,
    spec: { imageRegistryBundleData: [{ file: 'registry..5000', data: NEW }], imageRegistryBundleUserData: [{ file: 'registry..5000', data: NEW }] },
  },
  { words: /machine-os-puller/, spec: { internalRegistryPullSecret: NEW } },
  { words: /pull-secret|pull secret/, spec: { internalRegistryPullSecret: NEW }, pullSecret: '{"auths":{"new":{}}}' },
  { words: /user-ca-bundle|trustedCA|trust bundle/i, spec: { additionalTrustBundle: NEW } },
  { words: /root-ca/, spec: { rootCAData: NEW } },
  { words: /release version only/ },
  { words: /status or annotation/ },
  { words: /paused/ },
  { words: /OS image/, spec: { baseOSContainerImage: 'os@sha256:2', baseOSExtensionsContainerImage: 'extensions@sha256:2' } },
  { words: /proxy/i, spec: { proxy: { httpProxy: 'http://proxy' } } },
  {
    words: /ssh/i,
    config: { ...fileConfig('/'), spec: { config: { ignition: { version: '3.4.0' }, passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k'] }] } } } },
  },
  { words: /ICSP|IDMS|registries/i, config: registriesConfig() },
  { words: /template|KubeletConfig|kernel|unit|other file|any file/i, config: fileConfig('/etc/other') },
];

/** The worker's rendered config. */
function renderedOf(spec: ControllerConfigSpec, pullSecret: string, extra?: MachineConfig): { name: string; config: MachineConfig } {
  const merged = mergeMachineConfigs([...generateForRole('worker', spec, pullSecret), ...(extra ? [extra] : [])], spec);
  assert.ok(merged);
  return { name: renderedName('worker', canonicalSpec(merged)), config: { spec: merged } };
}

/** A pool is named, or described by its conditions and counts. */
function poolsOf(pools: Json[]): Json[] {
  return pools.map(pool => {
    const { name, required, machineCount, generation, observedGeneration, paused, configValid: _valid, ...conditions } = typeof pool === 'string' ? { name: pool } : pool;
    return {
      metadata: { name, generation, labels: required ? { 'operator.machineconfiguration.openshift.io/required-for-upgrade': '' } : {} },
      spec: { paused },
      status: { machineCount, observedGeneration, conditions: Object.entries(conditions).map(([type, status]) => ({ type, status })) },
    };
  });
}
