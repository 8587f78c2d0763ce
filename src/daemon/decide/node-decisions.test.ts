import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  CONTROL_PLANE_TOPOLOGY,
  CURRENT_CONFIG,
  CURRENT_IMAGE,
  DAEMON_STATE,
  DESIRED_CONFIG,
  DESIRED_DRAIN,
  DESIRED_IMAGE,
  LAST_APPLIED_DRAIN,
  POST_CONFIG_ACTION,
} from '../../machine-config-api/names.ts';
import { decideDrain, drainTimeout, isDrainApplied, uncordonRequest } from './drain-handshake.ts';
import { missingKernelArguments } from './kernel-arguments.ts';
import { fipsProblem, reconcile, stateOfError, UnreconcilableError } from './reconcile.ts';
import {
  decideAfterValidation,
  decidePreparations,
  decideStartUp,
  type StartUpFacts,
  stateAtStart,
} from './start-up.ts';
import { decideSync } from './sync-gate.ts';
import { decideUpdate, decideUpdatePath } from './update-needed.ts';

const annotations = (current: string, desired: string, state?: string, more: Record<string, string> = {}) => ({
  [CURRENT_CONFIG]: current,
  [DESIRED_CONFIG]: desired,
  ...(state !== undefined && { [DAEMON_STATE]: state }),
  ...more,
});
const on = (config: string, image = '') => ({ config, image });
const everyConfig = () => true;

describe('is an update needed (spec 60, 5.4)', () => {
  const images = { [CURRENT_IMAGE]: 'i', [DESIRED_IMAGE]: 'j' };
  const table: [what: string, node: Record<string, string>, disk: ReturnType<typeof on> | undefined, found: string][] =
    [
      ['in the wanted config', annotations('a', 'a', 'Done'), on('a'), 'none'],
      ['the same without a disk', annotations('a', 'a', 'Done'), undefined, 'none'],
      ['another config', annotations('a', 'b', 'Done'), on('a'), 'a -> b'],
      ['the disk is ahead', annotations('a', 'b', 'Working'), on('b'), 'b -> b'],
      ['the disk knows better', annotations('a', 'b', 'Done'), on('c'), 'c -> b'],
      ['the disk is elsewhere although the node is Done', annotations('a', 'a', 'Done'), on('c'), 'c -> a'],
      ['degraded', annotations('a', 'a', 'Degraded'), on('a'), 'a -> a'],
      ['a state that is empty', annotations('a', 'a', ''), on('a'), 'a -> a'],
      ['another image', annotations('a', 'a', 'Done', images), on('a', 'i'), 'a+i -> a+j'],
      ['an image from the node', annotations('a', 'a', 'Done', images), undefined, 'a+i -> a+j'],
      ['the wanted image on disk', annotations('a', 'a', 'Done', images), on('a', 'j'), 'none'],
      [
        'no state',
        annotations('a', 'a'),
        on('a'),
        "machineconfiguration.openshift.io/state annotation not found on node 'n'",
      ],
      [
        'no wanted config',
        { [CURRENT_CONFIG]: 'a', [DAEMON_STATE]: 'Done' },
        on('a'),
        "machineconfiguration.openshift.io/desiredConfig annotation not found on node 'n'",
      ],
      ['a wanted config that is missing', annotations('a', 'gone', 'Done'), on('a'), 'missing MachineConfig gone'],
      ['a config that is missing', annotations('gone', 'a', 'Done'), on('a'), 'missing MachineConfig gone'],
    ];
  const text = ({ config, image }: { config: string; image: string }) => (image === '' ? config : `${config}+${image}`);
  for (const [what, node, disk, wanted] of table) {
    test(what, () => {
      const found = decideUpdate(node, disk, name => name !== 'gone', 'n');
      const said =
        found.kind === 'update'
          ? `${text(found.from)} -> ${text(found.to)}`
          : found.kind === 'error'
            ? found.message
            : 'none';
      assert.equal(said, wanted);
    });
  }

  test('there is a way to an image, and none back', () => {
    assert.equal(decideUpdatePath('', '').kind, 'machine-config');
    assert.equal(decideUpdatePath('', 'i').kind, 'image');
    assert.equal(decideUpdatePath('i', 'j').kind, 'image');
    assert.equal(decideUpdatePath('i', '').kind, 'error');
  });
});

describe('start-up (spec 60, 5.3)', () => {
  const facts = (more: Partial<StartUpFacts> = {}): StartUpFacts => ({
    annotations: annotations('a', 'a', 'Done'),
    disk: on('a'),
    initialAnnotations: undefined,
    hasForceFile: false,
    hasEncapsulatedConfig: false,
    hasIgnitionPreset: false,
    isOsAsWanted: true,
    hasConfig: everyConfig,
    ...more,
  });
  const proceeding = (more: Partial<StartUpFacts> = {}) => {
    const found = decideStartUp(facts(more));
    assert.ok(found.kind === 'proceed', JSON.stringify(found));
    return found;
  };

  test('a node that is where it should be is validated and completes', () => {
    const found = proceeding();
    assert.equal(found.next, 'validate');
    assert.deepEqual(decideAfterValidation(found, undefined), { kind: 'complete', target: on('a') });
  });

  test('a pending config on disk is what is validated; the disk wins', () => {
    const found = proceeding({ annotations: annotations('a', 'b', 'Working'), disk: on('b') });
    assert.deepEqual([found.current, found.isOverriddenByDisk], [on('b'), true]);
    assert.deepEqual(decideAfterValidation(found, undefined), { kind: 'complete', target: on('b') });
    const failed = decideAfterValidation(found, 'content mismatch', 'no space');
    assert.ok(failed.kind === 'degraded');
    assert.equal(
      failed.reason,
      'unexpected on-disk state validating against b: content mismatch; possible root cause: no space',
    );
  });

  test('a layered node is validated against its image', () => {
    const found = proceeding({ disk: on('a', 'image') });
    const failed = decideAfterValidation(found, 'x');
    assert.ok(failed.kind === 'degraded' && failed.reason.includes('validating against image: x'));
  });

  test('another config that is wanted is gone for after validation', () => {
    const found = proceeding({ annotations: annotations('a', 'b', 'Done') });
    assert.deepEqual(decideAfterValidation(found, undefined), {
      kind: 'update',
      event: 'BootResync',
      from: on('a'),
      to: on('b'),
    });
  });

  test('the force file skips validation', () => assert.equal(proceeding({ hasForceFile: true }).next, 'forced-update'));

  test('a first boot runs the image of its config first, and ignores what the disk said', () => {
    const initialAnnotations = annotations('a', 'a', 'Done');
    const first = { annotations: {}, disk: on('old'), initialAnnotations };
    assert.deepEqual(decideStartUp(facts({ ...first, isOsAsWanted: false })), {
      kind: 'rebase-and-reboot',
      current: on('a'),
      annotations: initialAnnotations,
    });
    const found = proceeding(first);
    assert.deepEqual([found.isBootstrapping, found.current, found.annotations], [true, on('a'), initialAnnotations]);
  });

  test('a node that lost its annotations takes them from its disk, and says so before it waits for a wanted config', () => {
    const found = decideStartUp(facts({ annotations: {}, disk: on('a', 'i') }));
    assert.ok(found.kind === 'error');
    assert.deepEqual(found.annotations, { [CURRENT_CONFIG]: 'a', [CURRENT_IMAGE]: 'i' });
    const wanted = decideStartUp(facts({ annotations: { [DESIRED_CONFIG]: 'b' }, disk: on('a') }));
    assert.ok(wanted.kind === 'proceed');
    assert.deepEqual(wanted.annotations, { [CURRENT_CONFIG]: 'a' });
  });

  test('neither annotations nor a disk is an error, and so is a config that is gone', () => {
    assert.equal(decideStartUp(facts({ annotations: {}, disk: undefined })).kind, 'error');
    const found = decideStartUp(facts({ hasConfig: () => false }));
    assert.ok(found.kind === 'error' && found.missingConfig === 'a');
  });

  test('left-overs of the first boot are put away', () => {
    assert.deepEqual(decidePreparations({ hasEncapsulatedConfig: true, hasIgnitionPreset: true }), [
      {
        kind: 'rename',
        from: '/etc/ignition-machine-config-encapsulated.json',
        to: '/etc/ignition-machine-config-encapsulated.json.bak',
      },
      { kind: 'remove', path: '/etc/systemd/system-preset/20-ignition.preset' },
    ]);
    assert.deepEqual(decidePreparations({ hasEncapsulatedConfig: false, hasIgnitionPreset: false }), []);
  });

  test('a node that says nothing has nothing to say', () => {
    assert.deepEqual(
      [stateAtStart({}), stateAtStart({ [DAEMON_STATE]: '' }), stateAtStart({ [DAEMON_STATE]: 'Degraded' })],
      ['Done', 'Done', 'Degraded'],
    );
  });
});

describe('the gates of a sync (spec 60, 5.2)', () => {
  const input = { key: 'n', self: 'n', isRebootQueued: false, isBooting: false };
  const node = (found: Record<string, string> = {}, more: object = {}) => ({
    metadata: { name: 'n', annotations: found, ...more },
  });
  const waiting = { [DESIRED_DRAIN]: 'drain-b', [LAST_APPLIED_DRAIN]: 'uncordon-a' };
  const table: [what: string, given: Parameters<typeof decideSync>[0], verdict: string][] = [
    ['nothing in the way', { ...input, node: node() }, 'continue'],
    ['another node', { ...input, key: 'm', node: node() }, 'ignore'],
    ['a node that is not known', { ...input, node: undefined }, 'ignore'],
    ['a node that goes', { ...input, node: node({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }) }, 'ignore'],
    ['a reboot is queued', { ...input, node: node(), isRebootQueued: true }, 'ignore'],
    ['booting', { ...input, node: node(waiting), isBooting: true }, 'first-run'],
    ['a drain under way', { ...input, node: node(waiting) }, 'wait-for-drain'],
    ['a drain carried out', { ...input, node: node({ ...waiting, [LAST_APPLIED_DRAIN]: 'drain-b' }) }, 'continue'],
  ];
  for (const [what, given, verdict] of table) test(what, () => assert.equal(decideSync(given).verdict, verdict));

  test('a reboot that was announced is over, unless it is still to come', () => {
    const rebooting = node({ [POST_CONFIG_ACTION]: 'Rebooting' });
    assert.deepEqual(decideSync({ ...input, node: rebooting, isBooting: true }).annotations, {
      [POST_CONFIG_ACTION]: '',
    });
    assert.deepEqual(decideSync({ ...input, node: rebooting, isRebootQueued: true }).annotations, {});
  });
});

describe('drain and uncordon (spec 60, 10.1 and 10.4)', () => {
  test('asked for, unless done or of no use', () => {
    const wanted = { [DESIRED_CONFIG]: 'b' };
    const asked = decideDrain(wanted);
    assert.ok(asked.kind === 'request');
    assert.deepEqual(asked.request.annotations, { [DESIRED_DRAIN]: 'drain-b' });
    assert.equal(decideDrain({ ...wanted, [LAST_APPLIED_DRAIN]: 'drain-b' }).kind, 'already-drained');
    assert.equal(decideDrain({ ...wanted, [LAST_APPLIED_DRAIN]: 'drain-a' }).kind, 'request');
    assert.equal(decideDrain({ ...wanted, [CONTROL_PLANE_TOPOLOGY]: 'SingleReplica' }).kind, 'skip');
    assert.equal(decideDrain({ ...wanted, [CONTROL_PLANE_TOPOLOGY]: 'Sideways' }).kind, 'request');
    assert.deepEqual(uncordonRequest('b').annotations, { [DESIRED_DRAIN]: 'uncordon-b' });
  });

  test('applied when the controller says the same', () => {
    assert.ok(isDrainApplied({}));
    assert.ok(isDrainApplied({ [DESIRED_DRAIN]: '' }));
    assert.ok(!isDrainApplied({ [DESIRED_DRAIN]: 'drain-b' }));
    assert.ok(isDrainApplied({ [DESIRED_DRAIN]: 'drain-b', [LAST_APPLIED_DRAIN]: 'drain-b' }));
  });

  test('a wait that is too long says of what', () => {
    assert.match(drainTimeout('drain', 'n').message, /^failed to drain node: n after 1 hour\. /);
    assert.match(drainTimeout('uncordon', 'n').message, /^failed to uncordon node: n after 10 minutes\. /);
  });
});

test('an unreconcilable error shines through what wraps it, and only that', () => {
  const inner = new UnreconcilableError('x');
  assert.equal(stateOfError(inner), 'Unreconcilable');
  assert.equal(stateOfError(new Error('a', { cause: new Error('b', { cause: inner }) })), 'Unreconcilable');
  assert.equal(stateOfError(new AggregateError([new Error('undo'), inner])), 'Unreconcilable');
  assert.equal(stateOfError(new Error('x')), 'Degraded');
  assert.equal(stateOfError('x'), 'Degraded');
  const circle = new Error('a');
  circle.cause = circle;
  assert.equal(stateOfError(circle), 'Degraded');
});

test('FIPS is a matter of the node too (spec 60, section 7, rule 12)', () => {
  assert.equal(fipsProblem(undefined, true), undefined);
  assert.equal(fipsProblem('1\n', true), undefined);
  assert.equal(fipsProblem('0\n', false), undefined);
  assert.match(fipsProblem('0\n', true) ?? '', /FIPS/);
  assert.match(fipsProblem('1\n', false) ?? '', /FIPS/);
  assert.match(fipsProblem('maybe', false) ?? '', /expected a boolean/);
  const fips = { metadata: { name: 'b' }, spec: { fips: true } };
  assert.ok(reconcile(fips, fips, '1\n').isPossible);
  assert.ok(!reconcile(fips, fips, '0\n').isPossible);
  assert.ok(reconcile(undefined, fips, '1\n').isPossible);
  assert.ok(reconcile(undefined, fips, undefined).isPossible);
  assert.ok(!reconcile(undefined, fips, '0\n').isPossible);
});

test('kernel arguments are split alike on both sides (D-24)', () => {
  assert.deepEqual(missingKernelArguments(['a b="c d"', 'e'], ['x b="c d" a']), ['e']);
  assert.deepEqual(missingKernelArguments(['b="c d"'], ['b="c', 'd"']), ['b="c d"']);
  assert.deepEqual(missingKernelArguments([], ['a']), []);
});
