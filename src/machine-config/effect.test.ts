import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MachineConfig } from '../machine-config-api/machine-config.ts';
import { rolloutEffect } from './effect.ts';
import { fileConfig } from './testing.ts';

describe('what a node does about a change (section 13)', () => {
  const file = (path: string, text = 'new') => fileConfig('x', 'worker', path, text);
  const registries = (text: string) => file('/etc/containers/registries.conf', text);
  const ignition = (parts: object): MachineConfig => ({
    spec: { config: { ignition: { version: '3.4.0' }, ...parts } },
  });
  const table: [what: string, after: MachineConfig, action: string, drain: boolean][] = [
    ['nothing', {}, 'nothing', false],
    ['the pull secret', file('/var/lib/kubelet/config.json'), 'write', false],
    [
      'the trust bundle',
      file('/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt'),
      'restart crio',
      false,
    ],
    ['the signature policy', file('/etc/containers/policy.json'), 'reload crio', false],
    ['a file of registries.d', file('/etc/containers/registries.d/x.yaml'), 'reload crio', false],
    ['a registry', registries('[[registry]]\nlocation = "a"\n'), 'reload crio', true],
    [
      'a digest-only registry',
      registries('[[registry]]\nlocation = "a"\nmirror-by-digest-only = true'),
      'reload crio',
      false,
    ],
    ['registries that cannot be read', registries('= ='), 'refused', false],
    ['any other file', file('/etc/other'), 'reboot', true],
    ['keys', ignition({ passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k'] }] } }), 'write', false],
    ['a unit', ignition({ systemd: { units: [{ name: 'u.service' }] } }), 'reboot', true],
    ['the OS image', { spec: { osImageURL: 'new' } }, 'reboot', true],
  ];
  for (const [what, after, action, drain] of table) {
    test(what, () => {
      const effect = rolloutEffect({}, after);
      assert.equal(effect.action, action);
      assert.equal(effect.drain, drain);
    });
  }

  test('keys and passwords are named as the reason, by whose they are, and never told', () => {
    const users = (...list: object[]) => ignition({ passwd: { users: list } });
    const reasons = (before: MachineConfig, after: MachineConfig) => rolloutEffect(before, after).reasons;
    const core = { name: 'core', sshAuthorizedKeys: ['ssh-rsa AAAA'], passwordHash: '$6$geheim' };
    assert.deepEqual(reasons({}, users(core)), ['SSH keys of core', 'password of core']);
    assert.deepEqual(reasons(users(core), users({ ...core, passwordHash: 'x' })), ['password of core']);
    assert.deepEqual(reasons(users(core), users({ ...core, sshAuthorizedKeys: [] })), ['SSH keys of core']);
    assert.deepEqual(reasons(users(core), users(core)), []);
    assert.deepEqual(reasons(users(core), users({ ...core, shell: '/bin/sh' })), ['users and groups']);
  });

  test('policies speak for files and units that they name', () => {
    const policies = {
      files: [
        { path: '/etc/mine', actions: [{ type: 'Drain' }, { type: 'Restart', restart: { serviceName: 'a.service' } }] },
      ],
      units: [{ name: 'u.service', actions: [{ type: 'DaemonReload' }] }],
    } as const;
    const told = (after: MachineConfig) => {
      const { action, drain } = rolloutEffect({}, after, { policies });
      return [action, drain];
    };
    assert.deepEqual(told(file('/etc/mine')), ['restart a.service', true]);
    assert.deepEqual(told(file('/etc/mine/below')), ['reboot', true], 'spec 60, 9.4.5');
    assert.deepEqual(told(ignition({ systemd: { units: [{ name: 'u.service' }] } })), ['daemon-reload', false]);
    assert.deepEqual(told(file('/etc/kubernetes/kubelet-ca.crt')), ['write', false]);
    assert.deepEqual(told(file('/etc/other')), ['reboot', true]);
  });
});
