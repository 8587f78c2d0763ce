import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { NodeActions } from '../../machine-config-api/disruption.ts';
import { commandOf, planActions, unitName } from './action-plan.ts';

const told = (actions: NodeActions) => {
  const plan = planActions(actions, 'b');
  const steps = plan.steps.map(({ operation, done, failed }) =>
    [operation && commandOf(operation).join(' '), done?.reason, failed].filter(part => part !== undefined).join(', '),
  );
  return [...steps, plan.ending];
};

describe('what is done once a config is on the disk (spec 60, section 9)', () => {
  const builtIn: [action: Extract<NodeActions, { engine: 'built-in' }>['action'], steps: string[]][] = [
    ['none', ['SkipReboot', 'finish-rebootless']],
    ['reload crio', ['systemctl reload crio, SkipReboot, FailedServiceReload', 'finish-rebootless']],
    [
      'restart crio',
      ['update-ca-trust, FailedServiceReload', 'systemctl restart crio, FailedServiceReload', 'finish-rebootless'],
    ],
    ['reboot', ['Reboot', 'reboot']],
  ];
  for (const [action, steps] of builtIn)
    test(action, () => assert.deepEqual(told({ engine: 'built-in', action }), steps));

  test('policies in their order, with repetitions, drains left out', () => {
    assert.deepEqual(
      told({
        engine: 'policy',
        actions: [
          { type: 'Drain' },
          { type: 'DaemonReload' },
          { type: 'Restart', restart: { serviceName: 'a.service' } },
          { type: 'Special' },
          { type: 'Reload', reload: { serviceName: 'crio.service' } },
          { type: 'Reload', reload: { serviceName: 'crio.service' } },
        ],
      }),
      [
        'systemctl daemon-reload, ServiceReload, FailedServiceReload',
        'systemctl restart a.service, ServiceRestart, FailedServiceRestart',
        'systemctl reload crio, ServiceReload, FailedServiceReload',
        'systemctl reload crio.service, ServiceReload, FailedServiceReload',
        'systemctl reload crio.service, ServiceReload, FailedServiceReload',
        'finish-rebootless',
      ],
    );
    assert.deepEqual(told({ engine: 'policy', actions: [] }), ['finish-rebootless']);
    assert.deepEqual(told({ engine: 'policy', actions: [{ type: 'Reboot' }, { type: 'None' }] }), ['Reboot', 'reboot']);
  });

  test('a reboot says into what', () => {
    const reboot = { engine: 'built-in', action: 'reboot' } as const;
    assert.equal(planActions(reboot, 'b').rationale, 'Node will reboot into config b');
    assert.equal(planActions(reboot, 'b', 'i').rationale, 'Node will reboot into image i / MachineConfig b');
  });

  test('a host wants whole names of units', () => {
    assert.equal(unitName('crio'), 'crio.service');
    assert.equal(unitName('a.b'), 'a.b.service');
    assert.equal(unitName('a.socket'), 'a.socket');
  });
});
