import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { days } from '../kube/duration.ts';
import type { Certificate } from '../pki/certificate.ts';
import { issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { decideHandOver, decideLeaves, type HandOverQuestion, isSignerDue, together } from './hand-over.ts';
import { NOW } from './testing.ts';
import { receiptsFor } from './verifiers.ts';

const MISSING = {
  verifier: 'etcd on node master-1',
  node: 'master-1',
  kind: 'started',
  isLoaded: false,
  evidence: 'runs without it',
  isWaived: false,
} as const;
const PROMOTE = { do: 'promote', because: 'x', leftBehind: [], isUrgent: false } as const;
const POLICY = { validityMs: days(1825), refreshMs: days(1533) };

async function signer(ageDays: number, lifetimeDays = 1825): Promise<Certificate> {
  const now = new Date(NOW.getTime() - days(ageDays));
  const { chain } = await issueSigner({
    commonName: 'ca',
    lifetimeMs: days(lifetimeDays),
    now,
    keys: systemKeys,
    algorithm: 'P-256',
  });
  return chain[0] as Certificate;
}

describe('whether the wanted signer is put to use', async () => {
  const [old, fresh, worn] = [await signer(100), await signer(0), await signer(1500)];
  const base: HandOverQuestion = {
    wanted: fresh,
    inUse: old,
    isMeantForUse: true,
    leavesAreOf: 'other',
    receipts: [],
    mode: 'automatic',
    policy: POLICY,
    now: NOW,
  };
  const table: [why: string, answer: string, question: Partial<HandOverQuestion>][] = [
    ['everybody trusts it', 'promote', {}],
    ['somebody does not', 'wait', { receipts: [MISSING] }],
    [
      'somebody does not, and the one in use ends within a day',
      'promote',
      { inUse: await signer(1824.5), receipts: [MISSING] },
    ],
    ['it is in use already', 'keep', { wanted: old }],
    ['a person does that here', 'keep', { mode: 'manual' }],
    ['a person does that here, whatever is due', 'keep', { mode: 'manual', inUse: worn }],
    [
      'it has signed the leaves that are out there',
      'promote',
      { leavesAreOf: 'wanted', receipts: [MISSING], isMeantForUse: false },
    ],
    ['there is no signer in use, and nobody to ask', 'promote', { inUse: undefined, leavesAreOf: 'nobody' }],
    ['there is no signer in use, and somebody does not know it', 'wait', { inUse: undefined, receipts: [MISSING] }],
    ['the second CA of 4.16 stays what it is', 'keep', { isMeantForUse: false }],
    ['the second CA of 4.16 is used when the first is due', 'promote', { isMeantForUse: false, inUse: worn }],
    ['an older one never replaces what somebody put in place', 'keep', { wanted: old, inUse: fresh }],
    ['one that ends earlier is no help', 'keep', { wanted: worn, inUse: await signer(1490), isMeantForUse: false }],
  ];
  for (const [why, answer, question] of table) {
    test(`${why}: ${answer}`, () => assert.equal(decideHandOver({ ...base, ...question }).do, answer));
  }

  test('who is left behind is named, and who was waived holds nothing up (spec 90, HO-7)', async () => {
    const late = decideHandOver({ ...base, inUse: await signer(1824.5), receipts: [MISSING] });
    assert.ok(late.do === 'promote' && late.isUrgent);
    assert.deepEqual(late.leftBehind, [MISSING]);
    const waived = decideHandOver({ ...base, receipts: [{ ...MISSING, isWaived: true }] });
    assert.ok(waived.do === 'promote' && !waived.isUrgent);
    assert.deepEqual(waived.leftBehind, []);
    const verifiers = [{ name: 'b', node: 'y', bundle: [old] }];
    assert.deepEqual(
      receiptsFor(verifiers, fresh, new Set(['y'])).map(({ isLoaded, isWaived }) => [isLoaded, isWaived]),
      [[false, true]],
    );
  });

  test('a signer is due at 80 % of its own life, however long that is', async () => {
    assert.equal(isSignerDue(await signer(1459), POLICY, NOW), false);
    assert.equal(isSignerDue(await signer(1461), POLICY, NOW), true);
    assert.equal(isSignerDue(await signer(79, 100), POLICY, NOW), false);
    assert.equal(isSignerDue(await signer(81, 100), POLICY, NOW), true);
    assert.equal(isSignerDue(await signer(1534, 3650), POLICY, NOW), true);
  });

  test('two signers wait for each other, to save a restart', () => {
    const plans = together({
      server: { do: 'wait', for: ['kube-apiserver'] },
      metrics: PROMOTE,
    });
    assert.deepEqual(plans.metrics, { do: 'wait', for: ['kube-apiserver'] });
    const alone = together({ server: { do: 'keep' }, metrics: PROMOTE });
    assert.equal(alone.metrics.do, 'promote');
    const urgent = together({ server: { do: 'wait', for: ['x'] }, metrics: { ...PROMOTE, isUrgent: true } });
    assert.equal(urgent.metrics.do, 'promote', 'one that ends soon waits for nobody');
  });

  test('who does not know a signer, or whose bundle nobody can read, would refuse it', () => {
    const verifiers = [
      { name: 'a', node: 'x', bundle: [old, fresh] },
      { name: 'b', node: 'y', bundle: [old] },
      { name: 'c', node: 'z', bundle: undefined },
    ];
    assert.deepEqual(
      receiptsFor(verifiers, fresh, new Set()).map(({ verifier, isLoaded }) => `${verifier} ${isLoaded}`),
      ['a true', 'b false', 'c false'],
    );
  });
});

describe('whether leaves may change', () => {
  const base = { currentRevision: 8, bundleRevision: 7, bundleChangedNow: false, isGateOff: false };
  const table: [why: string, open: boolean, question: Partial<Parameters<typeof decideLeaves>[0]>][] = [
    ['a later revision runs everywhere', true, {}],
    ['the revision of the change runs', false, { currentRevision: 7 }],
    ['an earlier revision runs', false, { currentRevision: 6 }],
    ['nobody knows when the bundles changed', true, { bundleRevision: 0 }],
    ['the bundles have just changed', false, { bundleChangedNow: true }],
    [
      'a node runs with other bundles, whatever the numbers say',
      false,
      { nodesWithOtherBundles: ['master-1 at revision 8'] },
    ],
    [
      'all nodes run with these bundles, whatever the numbers say',
      true,
      { currentRevision: 7, nodesWithOtherBundles: [] },
    ],
    ['nobody runs yet', true, { currentRevision: 0, bundleChangedNow: true, isGateOff: true }],
  ];
  for (const [why, open, question] of table)
    test(`${why}: ${open}`, () => assert.equal(decideLeaves({ ...base, ...question }).open, open));
});
