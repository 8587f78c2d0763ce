import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import { changedFiles } from '../../../src/machine-config-api/ignition/difference.ts';
import { readIgnition } from '../../../src/machine-config-api/ignition/read.ts';
import { irreconcilable } from '../../../src/machine-config-api/ignition/reconcilable.ts';
import { emptyIgnition } from '../../../src/machine-config-api/ignition/types.ts';
import { deduplicated } from '../../../src/machine-config-api/ignition/v2.ts';
import { checkVersions, renderPool } from '../../../src/machine-config/render/decide.ts';
import { checkMachineConfig, mergeMachineConfigs } from '../../../src/machine-config/render/merge.ts';
import { renderedName } from '../../../src/machine-config/render/name.ts';
import { configsOfPool } from '../../../src/machine-config/render/select.ts';
import { isEmptySelector } from '../../../src/machine-config/selector.ts';
import { bootstrapName, managedName } from '../../../src/machine-config/sub-config/managed-name.ts';
import { overlay, REMOVED, type TemplateDirectory } from '../../../src/machine-config/template/entry.ts';
import { generateForRole, generateMachineConfigs } from '../../../src/machine-config/template/generate.ts';
import { isExternalCloudProvider, platformDirectories, platformDirectory } from '../../../src/machine-config/template/platform.ts';
import { placeholder } from '../../../src/machine-config/template/placeholder.ts';
import { templateValues } from '../../../src/machine-config/template/values.ts';
import { type Adapter, defined, expectError, type Json } from './case.ts';
import { CONTROLLER_CONFIG_SPEC } from './cluster.ts';

const VERSION_KEY = 'machineconfiguration.openshift.io/generated-by-controller-version';

export const renderAdapters: Record<string, Adapter> = {
  'merge-machineconfigs'(given, expected) {
    return expectError(expected, () => mergeMachineConfigs(given.machineConfigs, given.controllerConfigSpec), spec => {
      if (expected.spec === null) assert.equal(spec, undefined);
      else assert.deepEqual(defined(spec ?? {}), withOwnCompression(expected.spec, given.machineConfigs));
    });
  },

  'ignition-v2'(given, expected) {
    const config: Json = {
      ignition: { version: '2.2.0' },
      storage: { files: given.files?.map(({ path, source }: Json) => ({ path, contents: { source } })) },
      systemd: { units: given.units },
      passwd: { users: given.users },
    };
    return expectError(expected, () => deduplicated(defined(config)), ({ storage, systemd, passwd }) => {
      if (expected.files) assert.deepEqual(storage?.files?.map(({ path, contents }) => ({ path, source: contents?.source })), expected.files);
      if (expected.units) assert.deepEqual(systemd?.units, expected.units);
      if (expected.users) assert.deepEqual(passwd?.users, expected.users);
    });
  },

  'ignition-parse'({ version, ...rest }, expected) {
    return expectError(expected, () => readIgnition({ ignition: { version }, ...rest }), config => assert.equal(config?.ignition.version, expected.version));
  },

  'validate-machineconfig'({ ignition2, ignition3, ...spec }, expected) {
    const config: MachineConfig = { metadata: { name: 'mc' }, spec: { ...spec, config: ignition2 ?? ignition3 ?? null } };
    if (expected.valid) checkMachineConfig(config);
    else assert.throws(() => checkMachineConfig(config));
  },

  'render-gate'(given, expected) {
    const configs = given.sourceControllerVersions.map((version: string, index: number) => ({
      metadata: { name: `c${index}`, annotations: version === '' ? {} : { [VERSION_KEY]: version } },
    }));
    const controllerConfig = { metadata: { annotations: given.controllerConfigAnnotations } };
    const check = () => checkVersions(configs, controllerConfig, { version: given.myVersion, hash: given.myHash });
    if (expected.rendered) check();
    else assert.throws(check);
  },

  'render-select'({ machineConfigSelector, machineConfigs }, { selected, event, poolUpdated, ...others }) {
    assert.deepEqual(others, {});
    const configs = machineConfigs.map(({ name, labels }: Json) => ({ metadata: { name, labels } }));
    const pool = { metadata: { name: 'p' }, spec: machineConfigSelector === null ? {} : { machineConfigSelector } };
    assert.deepEqual(configsOfPool(pool, configs).map(({ metadata }) => metadata?.name), selected);
    if (event !== undefined) assert.deepEqual(event, { type: 'Warning', reason: 'SelectingAll' });
    assert.equal(isEmptySelector(machineConfigSelector), event !== undefined);
    if (poolUpdated !== undefined) assert.equal(poolUpdated, selected.length > 0);
  },

  'rendered-name'({ pool, saltHex, specYaml }, expected) {
    const digest = createHash('md5').update(Buffer.from(saltHex, 'hex')).update(specYaml).digest('hex');
    assert.equal(`rendered-${pool}-${digest}`, expected.name);
    assert.equal(renderedName(pool, specYaml), expected.name);
  },

  'rendered-meta'(given, expected) {
    const source: MachineConfig = {
      metadata: { name: '00-x', labels: { 'machineconfiguration.openshift.io/role': given.pool.name } },
      spec: { osImageURL: given.mergedOSImageURL },
    };
    const { metadata } = renderPool(
      { metadata: given.pool },
      [source],
      { metadata: { annotations: given.controllerConfig.annotations }, spec: given.controllerConfig.spec },
      { version: given.myVersion, hash: given.myHash },
      undefined,
    );
    assert.deepEqual(metadata.annotations, expected.annotations);
    if (expected.ownerReferences) assert.deepEqual(metadata.ownerReferences, expected.ownerReferences);
  },

  'rendered-content'(given, expected) {
    for (const pool of given.pools) {
      const configs = generateMachineConfigs({ metadata: { name: 'c', uid: 'u' }, spec: CONTROLLER_CONFIG_SPEC }, '{"auths":{}}', 'h');
      const own = configs.filter(({ metadata }) => metadata?.labels?.['machineconfiguration.openshift.io/role'] === pool);
      const paths = mergeMachineConfigs(own, CONTROLLER_CONFIG_SPEC)?.config.storage?.files?.map(({ path }) => path) ?? [];
      for (const path of expected.renderedConfigMustNotContain ?? []) assert.ok(!paths.includes(path), path);
      for (const path of expected.renderedConfigMustContain ?? []) assert.ok(paths.includes(path), path);
    }
  },

  reconcilable(given, expected) {
    const reason = whyNot(given);
    assert.equal(reason === undefined, expected.reconcilable, reason);
    if (expected.errorContains) assert.ok(reason?.includes(expected.errorContains), reason);
  },

  'file-diff'(given, expected) {
    const [before, after] = [given.old, given.new].map(document => readIgnition(document) ?? emptyIgnition());
    assert.deepEqual(new Set(changedFiles(before!, after!)), new Set(expected.changedPaths));
  },

  template(given, expected) {
    switch (given.op) {
      case 'paths':
        assert.deepEqual(platformDirectories({ platformStatus: { type: given.platform }, controlPlaneTopology: given.controlPlaneTopology }), expected.order);
        return;
      case 'platform':
        return expectError(expected, () => platformDirectory(given.platform), found => assert.equal(found, expected.platform ?? expected.output));
      case 'names': {
        for (const [role, wanted] of Object.entries(expected.machineConfigs)) {
          const configs = generateForRole(role, CONTROLLER_CONFIG_SPEC, '');
          assert.deepEqual(configs.map(({ metadata }) => metadata?.name), wanted);
          for (const { metadata, spec } of configs) {
            if (expected.labels[metadata?.name ?? '']) assert.deepEqual(metadata?.labels, expected.labels[metadata?.name ?? '']);
            const files = readIgnition(spec?.config)?.storage?.files ?? [];
            const hasCommon = files.some(({ path }) => path === '/etc/kubernetes/ca.crt');
            assert.equal(hasCommon, expected.commonTemplatesGoTo.includes(metadata?.name), metadata?.name);
          }
        }
        return;
      }
      case 'filter': {
        const directory = (texts: Record<string, string>): TemplateDirectory<string> =>
          Object.fromEntries(
            Object.entries(texts).map(([name, text]) => [name, text === '' ? REMOVED : () => (text.trim() === '' ? undefined : text)]),
          );
        const directories = [given.base, ...[given.override ?? []].flat()].map(directory);
        const entries = overlay(directories, templateValues(CONTROLLER_CONFIG_SPEC, ''));
        assert.deepEqual(Object.fromEntries(entries), expected.result);
        return;
      }
      case 'skip':
        return expectError(expected, () => placeholder(given.key), text => assert.equal(text, expected.output));
      case 'cloudProvider':
        assert.equal(isExternalCloudProvider({ type: given.platform, ...given.platformStatus }) ? 'external' : '', expected.output);
        return;
      default:
        assert.fail(`no template operation ${given.op}`);
    }
  },

  'managed-key'(given, expected) {
    const kind = given.kind === 'ContainerRuntimeConfig' ? 'containerruntime' : 'kubelet';
    if (given.phase === 'bootstrap') {
      return expectError(expected, () => bootstrapName(kind, given.pool, given.existingKubeletConfigsForPool), ({ name }) => assert.equal(name, expected.name));
    }
    const suffixKey = 'machineconfiguration.openshift.io/mc-name-suffix';
    const count = given.existingKubeletConfigsForPool ?? given.existingContainerRuntimeConfigsForPool ?? 0;
    const counted = Array.from({ length: count }, (_, index) => ({ name: `k${index}`, suffix: index === 0 ? '' : String(index) }));
    const known = (given.kubeletConfigs ?? given.containerRuntimeConfigs ?? counted).map(({ name, suffix }: Json) => ({
      metadata: { name, annotations: suffix === undefined || suffix === null ? {} : { [suffixKey]: suffix } },
    }));
    const name = given.new ?? given.existing ?? given.name ?? 'new';
    const self = known.find(({ metadata }: Json) => metadata.name === name) ?? { metadata: { name } };
    const all = known.includes(self) ? known : [...known, self];
    return expectError(expected, () => managedName(kind, given.pool, self, all), found => assert.equal(found.name, expected.name));
  },
};

function whyNot({ oldIgnition, newIgnition, oldFIPS = false, newFIPS = false, ...others }: Json): string | undefined {
  assert.deepEqual(others, {});
  try {
    const [before, after] = [oldIgnition, newIgnition].map(document => readIgnition(document) ?? emptyIgnition());
    return irreconcilable({ ignition: before!, fips: oldFIPS }, { ignition: after!, fips: newFIPS });
  } catch (error) {
    return String(error);
  }
}

/**
 * 4.16 lets new content inherit how the old one was compressed (trap 8, mended in 4.20): in our merge compression belongs to the
 * content it was given with.
 */
function withOwnCompression(spec: Json, machineConfigs: Json[]): Json {
  const files = spec.config?.storage?.files?.map((file: Json) => {
    const giver = machineConfigs
      .flatMap(({ spec: { config } }: Json) => config?.storage?.files ?? [])
      .find(({ path, contents }: Json) => path === file.path && contents?.source === file.contents?.source);
    if (giver === undefined || giver.contents?.compression !== undefined || file.contents?.compression === undefined) return file;
    const { compression: _inherited, ...contents } = file.contents;
    return { ...file, contents };
  });
  return files === undefined ? spec : { ...spec, config: { ...spec.config, storage: { ...spec.config.storage, files } } };
}
