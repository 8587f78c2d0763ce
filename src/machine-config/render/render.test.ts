import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DESIRED_CONFIG, ROLE_LABEL } from '../../machine-config-api/names.ts';
import { fileConfig, VERSION } from '../testing.ts';
import { renderPool } from './decide.ts';
import { KEPT_UNREFERENCED, unreferencedConfigs } from './garbage.ts';
import { checkMachineConfig, inMergeOrder, mergeMachineConfigs, RenderError } from './merge.ts';
import { canonicalSpec, renderedName } from './name.ts';
import { unfinishedSubConfig } from './select.ts';

const config = (name: string, role: string, spec: MachineConfig['spec'] = {}): MachineConfig => ({
  metadata: { name, labels: { [ROLE_LABEL]: role } },
  spec,
});
const POOL = { metadata: { name: 'worker', uid: 'p' } };
const CONTROLLER_CONFIG = {
  metadata: { annotations: { 'machineconfiguration.openshift.io/generated-by-version': VERSION.version } },
  spec: { baseOSContainerImage: 'os' },
};

describe('the order of merging (RN-10)', () => {
  test('workers first, the others after them, each by name', () => {
    const names = inMergeOrder([
      config('a', 'infra'),
      config('z', 'worker'),
      config('B', 'worker'),
      config('b', 'worker'),
    ]).map(({ metadata }) => metadata?.name);
    assert.deepEqual(names, ['B', 'b', 'z', 'a']);
  });

  test('the order in which configs come does not matter', () => {
    const configs = ['00', '01', '50', '99'].flatMap(name =>
      ['worker', 'infra'].map(role => fileConfig(`${name}-${role}`, role, `/etc/${name}`, role)),
    );
    const expected = canonicalSpec(mergeMachineConfigs(configs, {})!);
    fc.assert(
      fc.property(fc.shuffledSubarray(configs, { minLength: configs.length }), shuffled =>
        assert.equal(canonicalSpec(mergeMachineConfigs(shuffled, {})!), expected),
      ),
    );
  });

  test('one without labels is refused by name', () =>
    assert.throws(() => inMergeOrder([{ metadata: { name: 'x' } }]), /machineconfig x: metadata\.labels/));
});

describe('members of the spec (RN-13)', () => {
  const merge = (...specs: MachineConfig['spec'][]) =>
    mergeMachineConfigs(
      specs.map((spec, index) => config(`${index}`, 'worker', spec)),
      { baseOSContainerImage: 'default' },
    )!;
  test('fips if any', () => assert.equal(merge({ fips: true }, { fips: false }).fips, true));
  test('the last kernel that is not the default', () =>
    assert.equal(
      merge({ kernelType: 'realtime' }, { kernelType: '64k-pages' }, { kernelType: 'default' }).kernelType,
      '64k-pages',
    ));
  test('arguments one after the other, also twice', () =>
    assert.deepEqual(
      merge({ kernelArguments: ['a'] }, { kernelArguments: null }, { kernelArguments: ['a', 'b'] }).kernelArguments,
      ['a', 'a', 'b'],
    ));
  test('the last OS image, else the default', () => {
    assert.equal(merge({ osImageURL: 'x' }, { osImageURL: '' }).osImageURL, 'x');
    assert.equal(merge({}).osImageURL, 'default');
  });
});

describe('names (RN-14)', () => {
  test('the example of the specification', () =>
    assert.equal(renderedName('demo', 'fips: false\n'), 'rendered-demo-823c12692669779ca7f2fc463594175a'));
  test('the order of members does not matter', () => {
    const spec = mergeMachineConfigs([fileConfig('a', 'worker', '/etc/a', 'x')], {})!;
    const turned = Object.fromEntries(Object.entries(spec).toReversed()) as typeof spec;
    assert.equal(canonicalSpec(turned), canonicalSpec(spec));
  });
});

describe('what is refused', () => {
  const refused: [spec: MachineConfig['spec'], message: RegExp][] = [
    [{ kernelType: 'rt' }, /machineconfig x: spec\.kernelType: "rt"/],
    [{ extensions: ['usbguard', 'evil'] }, /spec\.extensions: .*evil/],
    [
      { config: { ignition: { version: '3.4.0' }, storage: { files: [{ path: 'a' }] } } },
      /spec\.config\.storage\.files\[0\]\.path/,
    ],
  ];
  for (const [spec, message] of refused)
    test(String(message), () => assert.throws(() => checkMachineConfig(config('x', 'worker', spec)), message));

  test('what no running machine could follow, with the one that brought it', () => {
    const current = config('rendered-old', 'worker', { config: { ignition: { version: '3.4.0' } } });
    const disks = config('99-disks', 'worker', {
      config: { ignition: { version: '3.4.0' }, storage: { disks: [{ device: '/dev/a' }] } },
    });
    assert.throws(
      () => renderPool(POOL, [fileConfig('00-a', 'worker', '/a', 'x'), disks], CONTROLLER_CONFIG, VERSION, current),
      /between current config "rendered-old" and base config "99-disks": ignition disks section contains changes/,
    );
  });

  test('a data URL of 5 MB, where an API let one through', () =>
    assert.throws(
      () => checkMachineConfig(fileConfig('x', 'worker', '/etc/x', 'x'.repeat(5_000_000))),
      /machineconfig x: spec\.config\.storage\.files\[0\]\.contents\.source: has \d+ characters/,
    ));

  test('more than the API can store', () => {
    const large = Array.from({ length: 3 }, (_, index) =>
      fileConfig(`${index}`, 'worker', `/etc/${index}`, 'x'.repeat(600_000)),
    );
    assert.throws(() => renderPool(POOL, large, CONTROLLER_CONFIG, VERSION, undefined), RenderError);
  });
});

test('rendering waits for configs that select the pool (RN-5)', () => {
  const pool = { metadata: { labels: { a: '' } } };
  const selecting = { spec: { machineConfigPoolSelector: { matchLabels: { a: '' } } } };
  const done = {
    ...selecting,
    metadata: { name: 'k', generation: 2 },
    status: {
      observedGeneration: 2,
      conditions: [
        { type: 'Failure', status: 'False' as const },
        { type: 'Success', status: 'True' as const },
      ],
    },
  };
  const of = (...kubelet: object[]) => unfinishedSubConfig(pool, { kubelet, runtime: [] });
  assert.equal(of(done), undefined);
  assert.match(of({ ...done, metadata: { name: 'k', generation: 3 } }) ?? '', /reported for 2, expecting it for 3/);
  assert.match(of({ ...done, status: { observedGeneration: 2, conditions: [] } }) ?? '', /has not completed/);
  assert.equal(of({ metadata: { name: 'other' }, spec: {} }), undefined);
});

describe('garbage', () => {
  const rendered = (index: number): MachineConfig => ({
    metadata: {
      name: `rendered-worker-${String(index).padStart(32, '0')}`,
      creationTimestamp: `2026-01-01T00:00:${String(index).padStart(2, '0')}Z`,
      ownerReferences: [{ apiVersion: 'v1', kind: 'MachineConfigPool', name: 'worker', uid: 'p', controller: true }],
    },
  });
  const configs = Array.from({ length: 10 }, (_, index) => rendered(index));
  const name = (index: number) => configs[index]?.metadata?.name ?? '';
  const node = (current: string, desired: string) => ({
    metadata: { annotations: { [CURRENT_CONFIG]: current, [DESIRED_CONFIG]: desired } },
  });
  const pool = { ...POOL, spec: { configuration: { name: name(9) } }, status: { configuration: { name: name(8) } } };

  test('the oldest that nothing points to', () => {
    const found = unreferencedConfigs(pool, configs, [pool], [node(name(0), name(1))]).map(
      ({ metadata }) => metadata?.name ?? '',
    );
    assert.deepEqual(found.sort(), [2, 3, 4].map(name).sort());
    assert.equal(found.length, 10 - 4 - KEPT_UNREFERENCED);
  });

  test('nothing while a node has not said what it runs', () => {
    assert.deepEqual(unreferencedConfigs(pool, configs, [pool], [{ metadata: { name: 'new' } }]), []);
  });

  test('nothing of others', () => {
    const foreign = configs.map(({ metadata }) => ({ metadata: { ...metadata, ownerReferences: [] } }));
    assert.deepEqual(unreferencedConfigs(pool, foreign, [pool], []), []);
    assert.deepEqual(unreferencedConfigs(pool, [{ metadata: { name: 'rendered-worker-mine' } }], [pool], []), []);
  });
});
