import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MachineConfig } from '../machine-config-api/machine-config.ts';
import { type NodeAction, rolloutEffect } from './effect.ts';
import { fileConfig } from './testing.ts';

describe('what a node does about a change (section 13)', () => {
  const file = (path: string) => fileConfig('x', 'worker', path, 'new');
  const ignition = (parts: object): MachineConfig => ({
    spec: { config: { ignition: { version: '3.4.0' }, ...parts } },
  });
  const table: [what: string, after: MachineConfig, action: NodeAction, drain: boolean][] = [
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
    ['registries', file('/etc/containers/registries.conf'), 'reload crio', true],
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
});
