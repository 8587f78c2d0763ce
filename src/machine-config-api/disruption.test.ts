import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { builtInFileAction } from './built-in-actions.ts';
import { configDifference, EMPTY_CONFIG, type ReadConfig } from './config-difference.ts';
import { decideDisruption, layeredDisruption } from './disruption.ts';
import { mergePolicies, policyActions } from './disruption-policy.ts';
import { base64DataUrl } from './ignition/data-url.ts';
import type { IgnitionFile } from './ignition/types.ts';
import type { DisruptionAction, DisruptionPolicies } from './machine-configuration.ts';
import { readConfig } from './reconciliation.ts';

const config = (parts: object, spec: object = {}): ReadConfig =>
  readConfig({ metadata: { name: 'x' }, spec: { config: { ignition: { version: '3.4.0' }, ...parts }, ...spec } });
const file = (path: string, content = 'new', more: Partial<IgnitionFile> = {}): IgnitionFile => ({
  path,
  contents: { source: base64DataUrl(content) },
  ...more,
});
const files = (...list: IgnitionFile[]) => config({ storage: { files: list } });
const units = (...list: object[]) => config({ systemd: { units: list } });
const keys = config({ passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k'] }] } });
const password = config({ passwd: { users: [{ name: 'core', passwordHash: 'h' }] } });
const REGISTRIES = '/etc/containers/registries.conf';
const USER_CA = '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt';
const UNSAFE = '[[registry]]\nlocation = "a"\n';
const SAFE = '[[registry]]\nlocation = "a"\nmirror-by-digest-only = true\n';

describe('the built-in table (spec 60, 9.1 and 9.2; seed 003)', () => {
  const table: [what: string, after: ReadConfig, action: string, drain: boolean][] = [
    ['nothing', EMPTY_CONFIG, 'none', false],
    ['keys', keys, 'none', false],
    ['a password', password, 'none', false],
    ['the CA of the kubelet', files(file('/etc/kubernetes/kubelet-ca.crt')), 'none', false],
    ['the pull secret', files(file('/var/lib/kubelet/config.json')), 'none', false],
    ['a file of nmstate', files(file('/etc/nmstate/openshift/a.yml')), 'none', false],
    ['a file deeper below nmstate', files(file('/etc/nmstate/openshift/a/b.yml')), 'reboot', true],
    ['registries that run nothing else', files(file(REGISTRIES, SAFE)), 'reload crio', false],
    ['registries', files(file(REGISTRIES, UNSAFE)), 'reload crio', true],
    ['the signature policy', files(file('/etc/containers/policy.json')), 'reload crio', false],
    [
      'keys of signatures',
      files(file('/etc/machine-config-daemon/no-reboot/containers-gpg.pub')),
      'reload crio',
      false,
    ],
    ['a file of registries.d', files(file('/etc/containers/registries.d/a.yaml')), 'reload crio', false],
    ['a file deeper below registries.d', files(file('/etc/containers/registries.d/a/b')), 'reboot', true],
    ['the CAs of the user', files(file(USER_CA)), 'restart crio', false],
    ['a restart beats a reload', files(file(USER_CA), file('/etc/containers/policy.json')), 'restart crio', false],
    ['and is drained for by registries', files(file(USER_CA), file(REGISTRIES, UNSAFE)), 'restart crio', true],
    ['any other file', files(file('/etc/other')), 'reboot', true],
    [
      'a reboot beats all',
      files(file(USER_CA), file('/etc/other'), file('/var/lib/kubelet/config.json')),
      'reboot',
      true,
    ],
    ['a unit', units({ name: 'a.service', enabled: true }), 'reboot', true],
    ['the image', config({}, { osImageURL: 'i' }), 'reboot', true],
    ['kernel arguments', config({}, { kernelArguments: ['a'] }), 'reboot', true],
    ['the kernel', config({}, { kernelType: 'realtime' }), 'reboot', true],
    ['an extension', config({}, { extensions: ['usbguard'] }), 'reboot', true],
    ['lists that are empty instead of absent', config({}, { kernelArguments: [], extensions: [] }), 'none', false],
  ];
  for (const [what, after, action, drain] of table) {
    test(what, () => {
      for (const [from, to] of [
        [EMPTY_CONFIG, after],
        [after, EMPTY_CONFIG],
      ] as const) {
        const isAdded = to === after;
        const found = decideDisruption(from, to);
        assert.deepEqual(found.actions, { engine: 'built-in', action });
        // What was safe to add is not safe to take away.
        if (isAdded || !JSON.stringify(after).includes(REGISTRIES)) assert.equal(found.needsDrain, drain);
        assert.equal(found.needsReboot, action === 'reboot');
        assert.equal(found.drainReasons.length > 0, found.needsDrain);
      }
    });
  }

  test('mode and owner are changes too, an order is none', () => {
    const [before, after] = [files(file('/etc/a')), files(file('/etc/a', 'new', { mode: 0o600 }))];
    assert.deepEqual(decideDisruption(before, after).changedFiles, ['/etc/a']);
    const [one, other] = [files(file('/etc/a'), file('/etc/b')), files(file('/etc/b'), file('/etc/a'))];
    const reordered = decideDisruption(one, other);
    assert.deepEqual([reordered.difference.files, reordered.changedFiles], [true, []]);
    assert.deepEqual(reordered.actions, { engine: 'built-in', action: 'none' });
  });

  test('the force file reboots', () => {
    const found = decideDisruption(EMPTY_CONFIG, EMPTY_CONFIG, { hasForceFile: true });
    assert.deepEqual([found.needsReboot, found.needsDrain, found.difference.osUpdate], [true, true, true]);
  });

  test('drains for registries can be switched off', () => {
    const found = decideDisruption(EMPTY_CONFIG, files(file(REGISTRIES, UNSAFE)), { hasDrainOverride: true });
    assert.equal(found.needsDrain, false);
  });

  test('a compressed registries.conf is read like any other (D-19)', () => {
    const source = `data:;base64,${gzipSync(SAFE).toString('base64')}`;
    const after = files({ path: REGISTRIES, contents: { source, compression: 'gzip' } });
    assert.equal(decideDisruption(EMPTY_CONFIG, after).needsDrain, false);
  });

  test('directories are known by their files alone', () => {
    assert.equal(builtInFileAction('/etc/nmstate/openshift'), 'reboot');
    assert.equal(builtInFileAction('/etc/nmstate/openshift-other/a'), 'reboot');
  });
});

test('a layered image is always drained for and rebooted into (spec 60, 8.10)', () => {
  const keysOnly = layeredDisruption(EMPTY_CONFIG, keys);
  assert.deepEqual(keysOnly.actions, { engine: 'built-in', action: 'reboot' });
  assert.deepEqual([keysOnly.needsReboot, keysOnly.needsDrain, keysOnly.difference.passwd], [true, true, true]);
});

describe('disruption policies (spec 60, 9.4)', () => {
  const drain: DisruptionAction = { type: 'Drain' };
  const restart: DisruptionAction = { type: 'Restart', restart: { serviceName: 'a.service' } };
  const daemonReload: DisruptionAction = { type: 'DaemonReload' };
  const policies = mergePolicies({
    files: [
      { path: '/etc/mine', actions: [drain, restart] },
      { path: '/etc/boot', actions: [{ type: 'Reboot' }] },
      { path: '/etc/quiet', actions: [{ type: 'None' }] },
      { path: '/etc/quiet/loud', actions: [restart] },
    ],
    units: [{ name: 'a.service', actions: [daemonReload, restart] }],
  });
  test('null is not set (MP-3)', () => {
    const user = JSON.parse('{"files":null,"units":null,"sshkey":null}') as DisruptionPolicies;
    assert.deepEqual(mergePolicies(user), mergePolicies({}));
  });
  const reload: DisruptionAction = { type: 'Reload', reload: { serviceName: 'crio.service' } };
  const table: [what: string, after: ReadConfig, actions: readonly DisruptionAction[], drain: boolean][] = [
    ['nothing', EMPTY_CONFIG, [{ type: 'None' }], false],
    ['keys', keys, [{ type: 'None' }], false],
    ['a policy of the user', files(file('/etc/mine')), [drain, restart], true],
    ['one of a directory above does not count (9.4.5)', files(file('/etc/mine/below')), [{ type: 'Reboot' }], true],
    ['one below another', files(file('/etc/quiet/loud')), [restart], false],
    ['a name that only begins like it', files(file('/etc/mine2')), [{ type: 'Reboot' }], true],
    ['a default', files(file('/etc/containers/policy.json')), [reload], false],
    ['registries', files(file(REGISTRIES, UNSAFE)), [{ type: 'Special' }], true],
    ['safe registries', files(file(REGISTRIES, SAFE)), [{ type: 'Special' }], false],
    ['a unit', units({ name: 'a.service', enabled: true }), [daemonReload, restart], false],
    ['a unit without a policy', units({ name: 'b.service', enabled: true }), [{ type: 'Reboot' }], true],
    ['None beside others', files(file('/etc/quiet'), file('/etc/mine')), [drain, restart], true],
    ['Reboot beside others', files(file('/etc/boot'), file('/etc/mine')), [{ type: 'Reboot' }], true],
    ['nmstate', files(file('/etc/nmstate/openshift/a.yml')), [], false],
    ['the CA of the kubelet, which updates do not write', files(file('/etc/kubernetes/kubelet-ca.crt')), [], false],
    ['the image', config({}, { osImageURL: 'i' }), [{ type: 'Reboot' }], true],
  ];
  for (const [what, after, actions, needsDrain] of table) {
    test(what, () => {
      const found = decideDisruption(EMPTY_CONFIG, after, { policies });
      assert.deepEqual(found.actions, { engine: 'policy', actions });
      assert.equal(found.needsDrain, needsDrain);
    });
  }

  test('4.16 compares whole paths', () => {
    const after = files(file('/etc/mine/below'));
    const difference = configDifference(EMPTY_CONFIG, after);
    const change = { difference, changedFiles: ['/etc/mine/below'], changedUnits: [] };
    assert.deepEqual(policyActions(policies, change), [{ type: 'Reboot' }]);
  });
});
