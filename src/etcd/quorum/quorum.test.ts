import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MemoryKube } from '../../kube/memory.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { phaseOf } from '../cert-signer/state.ts';
import { bootstrapStatusOf, decideBootstrapRemoval, isBootstrapComplete, readInstallerBootstrap } from './bootstrap.ts';
import {
  decideQuorum,
  type QuorumQuestion,
  RULE_4_16,
  RULE_FOR_REVISIONS,
  RULE_FOR_ROTATION,
  RULE_LATER,
} from './decide.ts';
import { faultTolerance, hasQuorum, quorumOf } from './fault-tolerance.ts';
import { decideRestart, type GuardQuestion } from './guard.ts';
import { healthText, type MemberHealth, memberName } from './member.ts';
import { isRolloutInProgress } from './rollout.ts';
import { isUnsafeOverride, scalingStrategy } from './strategy.ts';

/** `+` healthy voter, `-` unhealthy voter, `l` healthy learner, `u` learner that has not started. */
function members(text: string): MemberHealth[] {
  return text.split('').map((kind, index) => {
    const address = `10.0.0.${index + 1}`;
    const hasStarted = kind !== 'u';
    return {
      member: {
        id: String(index),
        name: hasStarted ? `master-${index}` : '',
        peerURLs: [`https://${address}:2380`],
        clientURLs: hasStarted ? [`https://${address}:2379`] : [],
        isLearner: kind === 'l' || kind === 'u',
      },
      healthy: kind === '+' || kind === 'l',
    };
  });
}

const at = (...revisions: number[]) =>
  revisions.map((currentRevision, index) => ({ nodeName: `master-${index}`, currentRevision }));
const SETTLED = { latestAvailableRevision: 5, nodeStatuses: at(5, 5, 5) };
const ROLLING = { latestAvailableRevision: 6, nodeStatuses: at(6, 5, 5) };
const NEW = { latestAvailableRevision: 0, nodeStatuses: at(0, 0, 0) };

function question(text: string, changes: Partial<QuorumQuestion> = {}): QuorumQuestion {
  return {
    bootstrap: 'complete',
    rollout: SETTLED,
    strategy: { value: 'HAScalingStrategy' },
    health: { value: members(text) },
    ...changes,
  };
}

describe('whether a certificate may change', () => {
  const UNSAFE = 'UnsafeScalingStrategy' as const;
  const TWO = 'TwoNodeScalingStrategy' as const;
  const table: [why: string, question: QuorumQuestion, safe: boolean][] = [
    ['three of three', question('+++'), true],
    ['two of three', question('++-'), false],
    ['one of three', question('+--'), false],
    ['two members are never enough', question('++'), false],
    ['one member is never enough', question('+'), false],
    ['four of four', question('++++'), true],
    ['three of four', question('+++-'), false],
    ['four of five', question('++++-'), true],
    ['three of five', question('+++--'), false],
    ['nobody', question(''), false],
    ['a learner that has not started blocks nobody (T-3)', question('+++u'), true],
    ['learners do not replace voters (T-3)', question('++ll'), false],
    ['a rollout opens nothing (T-2)', question('++-', { rollout: ROLLING }), false],
    [
      'a new node opens nothing by itself',
      question('++-', { rollout: { ...SETTLED, nodeStatuses: at(5, 5, 5, 0) } }),
      false,
    ],
    ['without the ConfigMap of the installer nothing opens (T-16)', question('++-', { bootstrap: undefined }), false],
    ['an installation that runs', question('+', { bootstrap: 'progressing' }), true],
    ['nothing has run yet', question('', { bootstrap: undefined, rollout: NEW, health: { error: 'refused' } }), true],
    [
      'nobody is listed although there are revisions',
      question('++-', { rollout: { latestAvailableRevision: 5 } }),
      false,
    ],
    ['single node', question('+', { strategy: { value: UNSAFE } }), true],
    [
      'single node that cannot be asked',
      question('', { strategy: { value: UNSAFE }, health: { error: 'refused' } }),
      false,
    ],
    ['two nodes that are meant to be two', question('++', { strategy: { value: TWO } }), true],
    ['two nodes, one down', question('+-', { strategy: { value: TWO } }), false],
    ['two nodes with three members, one down', question('++-', { strategy: { value: TWO } }), false],
    ['two nodes and a learner', question('++l', { strategy: { value: TWO } }), true],
    ['the strategy is not known', question('+++', { strategy: { error: 'no topology' } }), false],
    ['the members cannot be asked', question('+++', { health: { error: 'refused' } }), false],
  ];
  for (const [why, asked, safe] of table) {
    test(`${why}: ${safe ? 'yes' : 'no'}`, () => assert.equal(decideQuorum(asked, RULE_FOR_ROTATION).safe, safe));
  }

  test('for revisions a rollout opens the gate: a bad revision is mended by the next one', () => {
    assert.equal(decideQuorum(question('++-', { rollout: ROLLING }), RULE_FOR_REVISIONS).safe, true);
    assert.equal(
      decideQuorum(question('++-', { rollout: ROLLING, health: { error: 'refused' } }), RULE_FOR_REVISIONS).safe,
      true,
    );
    assert.equal(decideQuorum(question('++-'), RULE_FOR_REVISIONS).safe, false);
  });

  test('the texts are those of the runbooks', () => {
    const text = (asked: QuorumQuestion, rule = RULE_FOR_ROTATION) => {
      const answer = decideQuorum(asked, rule);
      return answer.safe ? '' : answer.error;
    };
    assert.match(
      text(question('++-')),
      /^etcd cluster has quorum of 2 and 2 healthy members which is not fault tolerant: \[master-0 /,
    );
    assert.match(text(question('++')), /^etcd cluster has quorum of 2 which is not fault tolerant: /);
    assert.match(
      text(question('', { health: { error: 'refused' } })),
      /^CheckSafeToScaleCluster failed to determine bootstrap status: .*refused$/,
    );
    assert.match(
      text(question('+++', { strategy: { error: 'x' } })),
      /^CheckSafeToScaleCluster failed to get bootstrap scaling strategy: x$/,
    );
    assert.match(
      text(question('++', { health: { error: 'x' } }), RULE_LATER),
      /^CheckSafeToScaleCluster couldn't determine member health: x$/,
    );
  });

  const later: [why: string, question: QuorumQuestion, error: RegExp | undefined][] = [
    ['an installation opens nothing', question('++-', { bootstrap: 'progressing' }), /found 2 healthy member\(s\)/],
    ['nor does its ConfigMap that is gone', question('++-', { bootstrap: undefined }), /found 2 healthy member\(s\)/],
    ['learners count (T-3)', question('++l'), undefined],
    [
      'too few are told as such (N-9)',
      question('++'),
      /^CheckSafeToScaleCluster found 2 healthy member\(s\) out of the 3 required by the HAScalingStrategy$/,
    ],
  ];
  for (const [why, asked, error] of later) {
    test(`the rule of 4.17: ${why}`, () => {
      const answer = decideQuorum(asked, RULE_LATER);
      if (error === undefined) assert.ok(answer.safe);
      else assert.match(answer.safe ? '' : answer.error, error);
    });
  }

  test('where upstream says no, we say no: our rule only ever closes gaps', () => {
    const kinds = fc.stringMatching(/^[+\-lu]{0,7}$/);
    const rollout = fc.constantFrom(SETTLED, ROLLING, NEW);
    const bootstrap = fc.constantFrom('complete', 'progressing', undefined);
    fc.assert(
      fc.property(kinds, rollout, bootstrap, (text, status, installer) => {
        const asked = question(text, { rollout: status, bootstrap: installer });
        const voters = text.replaceAll(/[lu]/g, '');
        const ours = decideQuorum(asked, RULE_FOR_ROTATION);
        if (ours.safe && status !== NEW && installer !== 'progressing') {
          const { length } = voters;
          assert.ok(length >= 3 && voters.replaceAll('-', '').length > quorumOf(length), text);
        }
        // Without learners 4.16 is never stricter.
        if (voters === text && ours.safe) assert.ok(decideQuorum(asked, RULE_4_16).safe || text === '');
      }),
    );
  });
});

describe('whether the member on a node may be restarted', () => {
  const base: Omit<GuardQuestion, 'health'> = {
    nodeName: 'master-0',
    nodeAddresses: ['10.0.0.1'],
    strategy: { value: 'HAScalingStrategy' },
    hasEverRun: true,
    isOperandReady: true,
  };
  const ask = (text: string, changes: Partial<GuardQuestion> = {}) =>
    decideRestart({ ...base, health: { value: members(text) }, ...changes });
  const table: [why: string, allowed: boolean, text: string, changes?: Partial<GuardQuestion>][] = [
    ['all are well', true, '+++'],
    ['another one is down', false, '+-+'],
    ['it is down itself', true, '-++'],
    ['it does not run, and neither does another', true, '--+', { isOperandReady: false }],
    ['it runs, but there is no majority to see that', false, '--+'],
    ['nobody is healthy: what runs is left alone', false, '---'],
    ['nobody is healthy: what does not run is where it begins', true, '---', { isOperandReady: false }],
    ['the only one that is up', false, '+--'],
    ['four, all well', true, '++++'],
    ['four, one of the others down', false, '+-++'],
    ['five, one of the others down', true, '+-+++'],
    ['five, two of the others down', false, '+--++'],
    ['one of two', false, '++'],
    ['one of two that are meant to be two', true, '++', { strategy: { value: 'TwoNodeScalingStrategy' } }],
    ['the one that is left of two', false, '+-', { strategy: { value: 'TwoNodeScalingStrategy' } }],
    ['the only one of a single node', true, '+', { strategy: { value: 'UnsafeScalingStrategy' } }],
    ['a learner', true, 'l++'],
    [
      'a node without a member yet',
      true,
      '+++',
      { nodeName: 'master-9', nodeAddresses: ['10.0.0.9'], isOperandReady: false },
    ],
    ['a running member that nobody can name counts as any of them', false, '+-+', { nodeName: 'x', nodeAddresses: [] }],
    ['found by its address', false, '+-+', { nodeName: 'x' }],
    ['nothing has ever run', true, '', { hasEverRun: false, health: { error: 'refused' } }],
    ['nobody answers, and it is ready', false, '', { health: { error: 'refused' } }],
    ['nobody answers, and it is not ready', true, '', { health: { error: 'refused' }, isOperandReady: false }],
    ['nobody knows how many there must be', false, '+++', { strategy: { error: 'no topology' } }],
    ['one of two, with a learner beside', true, '++l', { strategy: { value: 'DelayedTwoNodeScalingStrategy' } }],
    ['three where two are meant to be, one down', false, '+-+', { strategy: { value: 'TwoNodeScalingStrategy' } }],
    ['found by its name', true, '-++', { nodeAddresses: [] }],
    ['found by its address, and down', true, '-++', { nodeName: 'x' }],
    ['it does not answer as ready, but its member is well and needed', false, '+-+', { isOperandReady: false }],
  ];
  for (const [why, allowed, text, changes] of table) {
    test(`${why}: ${allowed ? 'yes' : 'no'}`, () => assert.equal(ask(text, changes).allowed, allowed));
  }

  test('a refusal says why', () => {
    const reasonOf = (text: string, changes: Partial<GuardQuestion> = {}) => {
      const answer = ask(text, changes);
      return answer.allowed ? '' : answer.reason;
    };
    assert.equal(reasonOf('', { health: { error: 'refused' } }), 'the health of the members is not known: refused');
    assert.equal(reasonOf('+++', { strategy: { error: 'no topology' } }), 'no topology');
    assert.match(
      reasonOf('+-l'),
      /^etcd would have 0 healthy members left and needs 2: \[master-0 \S+ healthy; master-1 \S+ unhealthy; master-2 \S+ learner healthy\]$/,
    );
  });

  test('a restart that is allowed never costs the majority', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^\+[+\-lu]{0,6}$/), text => {
        const voters = text.replaceAll(/[lu]/g, '');
        if (!ask(text).allowed) return;
        assert.ok(voters.replaceAll('-', '').length - 1 >= quorumOf(voters.length), text);
      }),
    );
  });
});

test('phases of a cluster', () => {
  const phase = (etcd: object, bootstrap: string | undefined = 'complete') => phaseOf({ etcd, bootstrap });
  assert.equal(phase(NEW), 'installation');
  assert.equal(phase({}), 'installation');
  assert.equal(phase(SETTLED, 'progressing'), 'installation');
  assert.equal(phase(SETTLED, undefined), 'settled');
  assert.equal(phase(ROLLING), 'rolling');
  assert.equal(phase({ latestAvailableRevision: 5 }), 'rolling');
  assert.equal(phase({ latestAvailableRevision: 5, nodeStatuses: at(5, 5, 0) }), 'rolling');
});

test('a node on its way back to an earlier revision is a rollout too (N-5)', () => {
  const nodeStatuses = [{ nodeName: 'master-0', currentRevision: 3, targetRevision: 2 }];
  assert.equal(isRolloutInProgress({ latestAvailableRevision: 3, nodeStatuses }), true);
  for (const targetRevision of [0, 3]) {
    const arrived = [{ nodeName: 'master-0', currentRevision: 3, targetRevision }];
    assert.equal(isRolloutInProgress({ latestAvailableRevision: 3, nodeStatuses: arrived }), false);
  }
});

describe('the override for unsafe clusters (Q-4)', () => {
  const KEY = 'useUnsupportedUnsafeNonHANonProductionUnstableEtcd';
  const table: [overrides: unknown, answer: boolean | RegExp][] = [
    [undefined, false],
    [null, false],
    ['', false],
    ['null', false],
    [{ [KEY]: true }, true],
    [{ [KEY]: 'T' }, true],
    ...[1, null, [], {}].map((value): [unknown, boolean] => [{ [KEY]: value }, false]),
    [`${KEY}: 1`, false],
    [`${KEY}: yes`, true],
    [`${KEY}: on`, true],
    [`${KEY}: Off`, false],
    [`${KEY}: "yes"`, /expected true or false, found "yes"$/],
    [{ [KEY]: '' }, /expected true or false/],
    ['[]', /expected a mapping, found \[\]$/],
    ['"x"', /expected a mapping, found "x"$/],
    ['{', /neither JSON nor YAML/],
  ];
  for (const [overrides, answer] of table) {
    test(`${JSON.stringify(overrides)}: ${answer}`, () => {
      if (typeof answer === 'boolean') assert.equal(isUnsafeOverride(overrides), answer);
      else assert.throws(() => isUnsafeOverride(overrides), { message: answer });
    });
  }
});

test('overrides that are too long are refused, whatever they say (Q-4)', () => {
  const filler = `# ${'x'.repeat(64 * 1024)}`;
  assert.throws(() => isUnsafeOverride(`a: 1\n${filler}`), { message: /expected at most 65536 characters, found / });
});

describe('the member of an installer (B-5, Q-3)', () => {
  test('it is done when it says so, its member is gone and, where asked, the revision has settled', () => {
    assert.equal(isBootstrapComplete('complete', ['master-0']), true);
    assert.equal(isBootstrapComplete('complete', ['master-0', 'etcd-bootstrap']), false);
    assert.equal(isBootstrapComplete('progressing', ['master-0']), false);
    assert.equal(isBootstrapComplete(undefined, []), false);
    assert.equal(isBootstrapComplete('complete', [], SETTLED), true);
    assert.equal(isBootstrapComplete('complete', [], ROLLING), false);
    assert.equal(isBootstrapComplete('complete', [], { latestAvailableRevision: 0, nodeStatuses: at(0) }), false);
  });

  test('it may go when the others are enough and well', () => {
    const three = ['master-0', 'master-1', 'master-2'];
    const all = [...three, 'etcd-bootstrap'];
    const safe = (names: string[], unhealthy: string[], strategy: Parameters<typeof decideBootstrapRemoval>[2]) =>
      decideBootstrapRemoval(names, unhealthy, strategy);
    assert.deepEqual(safe(three, [], 'HAScalingStrategy'), { hasBootstrap: false, safeToRemove: false });
    assert.deepEqual(safe(all, [], 'HAScalingStrategy'), { hasBootstrap: true, safeToRemove: true });
    assert.deepEqual(safe(all, ['etcd-bootstrap'], 'HAScalingStrategy'), { hasBootstrap: true, safeToRemove: true });
    assert.deepEqual(safe(all, ['master-1'], 'HAScalingStrategy'), { hasBootstrap: true, safeToRemove: false });
    assert.deepEqual(safe(all.slice(1), [], 'HAScalingStrategy'), { hasBootstrap: true, safeToRemove: false });
    assert.deepEqual(safe(all.slice(1), [], 'DelayedHAScalingStrategy'), { hasBootstrap: true, safeToRemove: true });
  });

  test('a ConfigMap that stands for no installer counts as none', async () => {
    const kube = new MemoryKube();
    assert.equal(bootstrapStatusOf(await readInstallerBootstrap(kube)), undefined);
    const metadata = { namespace: 'kube-system', name: 'bootstrap' };
    await kube.create(CONFIG_MAPS, { metadata, data: { status: 'complete' } });
    assert.equal(bootstrapStatusOf(await readInstallerBootstrap(kube)), 'complete');
    const annotations = { 'rotunda.dev/no-bootstrap-host': 'true' };
    await kube.update(CONFIG_MAPS, { metadata: { ...metadata, annotations }, data: { status: 'complete' } });
    assert.equal(bootstrapStatusOf(await readInstallerBootstrap(kube)), undefined);
    assert.equal(bootstrapStatusOf({ metadata }), '');
  });
});

test('a majority of members (Q-10), and what is said of the others (Q-9)', () => {
  assert.deepEqual(
    [hasQuorum(3, 2), hasQuorum(3, 1), hasQuorum(0, 0), hasQuorum(4, 2), hasQuorum(1, 1)],
    [true, false, false, false, true],
  );
  assert.equal(healthText(members('+++')), '3 members are available');
  const text = '1 of 3 members are available, master-1 is unhealthy, NAME-PENDING-10.0.0.3 has not started';
  assert.equal(healthText(members('+-u')), text);
});

test('one node, or somebody who asks for it, needs no majority', () => {
  const base = { namespaceAnnotations: {}, unsupportedConfigOverrides: undefined };
  assert.equal(scalingStrategy({ ...base, controlPlaneTopology: 'SingleReplica' }), 'UnsafeScalingStrategy');
  const unsupportedConfigOverrides = { useUnsupportedUnsafeNonHANonProductionUnstableEtcd: true };
  const asked = { ...base, unsupportedConfigOverrides, controlPlaneTopology: 'HighlyAvailable' };
  assert.equal(scalingStrategy(asked), 'UnsafeScalingStrategy');
});

test('details', () => {
  assert.throws(() => quorumOf(0), { message: 'invalid etcd member length: 0' });
  assert.equal(faultTolerance([]).problem, 'invalid etcd member length: 0');
  assert.equal(memberName({ name: '', peerURLs: ['https://[fd00::1]:2380'] }), 'NAME-PENDING-fd00::1');
  const base = { namespaceAnnotations: {}, unsupportedConfigOverrides: undefined };
  assert.throws(() => scalingStrategy({ ...base, controlPlaneTopology: '' }), /ControlPlaneTopology was not set/);
  assert.equal(scalingStrategy({ ...base, controlPlaneTopology: 'External' }), 'HAScalingStrategy');
  assert.equal(
    scalingStrategy({
      ...base,
      controlPlaneTopology: 'DualReplica',
      namespaceAnnotations: { 'openshift.io/delayed-bootstrap': '' },
    }),
    'DelayedTwoNodeScalingStrategy',
  );
});
