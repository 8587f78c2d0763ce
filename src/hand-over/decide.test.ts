import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { days, hours, minutes } from '../kube/duration.ts';
import type { Certificate } from '../pki/certificate.ts';
import { decide, type FamilyDecision, type FamilyLeaf, type FamilyQuestion } from './decide.ts';
import type { Receipt, ReceiptKind } from './receipt.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const LIFE_MS = days(60);

/** What `decide` looks at of a CA; `leftMs`: how long it lives on. */
function ca(commonName: string, leftMs = days(50)): Certificate {
  const notAfter = new Date(NOW.getTime() + leftMs);
  const notBefore = new Date(notAfter.getTime() - LIFE_MS);
  return { der: Buffer.from(commonName), subject: { commonName }, notBefore, notAfter } as Certificate;
}

function leaf(name: string, isOfCurrent: boolean, leftMs = days(20), lifeMs = days(30)): FamilyLeaf {
  const notAfter = new Date(NOW.getTime() + leftMs);
  return { name, isOfCurrent, notBefore: new Date(notAfter.getTime() - lifeMs), notAfter };
}

function receipt(verifier: string, isLoaded: boolean, kind: ReceiptKind = 'asked', isWaived = false): Receipt {
  return { verifier, node: 'n', kind, isLoaded, evidence: isLoaded ? 'has it' : 'has not', isWaived };
}

const OLD = ca('signer@1');
const NEXT = ca('signer@2', LIFE_MS);
const THIRD = ca('signer@3');
const STEADY: FamilyQuestion = {
  current: OLD,
  next: undefined,
  due: undefined,
  isTakenBack: false,
  isTurnedRound: false,
  isNextUnused: true,
  leaves: [leaf('a', true), leaf('b', true)],
  // Whatever is asked about is in it, unless a test says otherwise.
  bundle: [OLD, NEXT, THIRD],
  retiring: [],
  receipts: () => undefined,
  isShown: false,
  presenters: () => undefined,
  lastTookMs: 0,
  dayMs: days(1),
  now: NOW,
};
const DISTRIBUTING: FamilyQuestion = { ...STEADY, next: NEXT, due: 'past its refresh time' };
/** As a promotion, or upstream, leaves it: the signer is new, the leaves are not. */
const SIGNING: FamilyQuestion = { ...STEADY, current: NEXT, leaves: [leaf('a', false), leaf('b', true)] };

/** Everybody says the same about every CA, unless they are told otherwise. */
const allSay = (...receipts: Receipt[]) => ({ receipts: () => receipts });
/** What is said about one CA; nobody was asked about another one. */
const about = (wanted: Certificate, ...receipts: Receipt[]) => ({
  receipts: (asked: Certificate) => (asked.der.equals(wanted.der) ? receipts : undefined),
});
const READY = [receipt('x', true), receipt('y', true)];
const LATE = [receipt('x', true), receipt('y', false)];

/** The part of a decision that is acted upon. */
function gist({ phase, write, leaves, waitingFor, leftBehind }: FamilyDecision) {
  const names = (receipts: readonly Receipt[]) => receipts.map(({ verifier }) => verifier).join();
  return [
    phase,
    write,
    leaves,
    ...(waitingFor.length > 0 ? [`waits for ${names(waitingFor)}`] : []),
    ...(leftBehind.length > 0 ? [`without ${names(leftBehind)}`] : []),
  ].join(' ');
}

interface Case {
  readonly name: string;
  readonly question: FamilyQuestion;
  readonly gist: string;
  readonly because: string;
}

function table(cases: readonly Case[]): void {
  for (const { name, question, gist: expected, because } of cases) {
    test(name, () => {
      const decision = decide(question);
      assert.equal(gist(decision), expected);
      assert.equal(decision.because, because);
    });
  }
}

describe('phases and writes (spec 90, section 2)', () => {
  table([
    {
      name: 'Steady: a signer that is good, with leaves of its own',
      question: STEADY,
      gist: 'Steady nothing follow',
      because: 'the signer is good',
    },
    {
      name: 'Steady: leaves that do not exist yet are nobody to wait for',
      question: { ...STEADY, leaves: [] },
      gist: 'Steady nothing follow',
      because: 'the signer is good',
    },
    {
      name: 'Retiring: an old CA is in the bundle, and it is noted that nothing of it is shown',
      question: { ...STEADY, retiring: [ca('signer@0')], isShown: true, presenters: () => assert.fail('at rest') },
      gist: 'Retiring nothing follow',
      because: 'signer@0 may go',
    },
    {
      name: 'Signing: nobody has looked at who shows what, which is no evidence',
      question: { ...STEADY, retiring: [ca('signer@0')] },
      gist: 'Signing nothing follow',
      because: 'nobody has looked yet at who shows what',
    },
    {
      name: 'Signing: one of two still shows a leaf of the old one (HO-3)',
      question: { ...STEADY, retiring: [ca('signer@0')], presenters: () => LATE },
      gist: 'Signing nothing follow waits for y',
      because: 'waiting for y',
    },
    {
      name: 'Signing ends when everybody shows a leaf of current',
      question: { ...STEADY, retiring: [ca('signer@0')], presenters: () => READY },
      gist: 'Retiring retire follow',
      because: 'signer@0 may go',
    },
    {
      name: 'Signing ends without those who were waived (HO-7)',
      question: {
        ...STEADY,
        retiring: [ca('signer@0')],
        presenters: () => [receipt('x', true), receipt('y', false, 'reported', true)],
      },
      gist: 'Retiring retire follow',
      because: 'signer@0 may go',
    },
    {
      name: 'Steady: nobody is looked at where no old CA is trusted any more',
      question: { ...STEADY, presenters: () => assert.fail('at rest') },
      gist: 'Steady nothing follow',
      because: 'the signer is good',
    },
    {
      name: 'a signer that is due waits for nobody to show anything: the old CA stays where it is',
      question: { ...STEADY, due: 'missing notAfter', retiring: [ca('signer@0')], presenters: () => LATE },
      gist: 'Distributing begin follow',
      because: 'missing notAfter',
    },
    {
      name: 'Distributing: nobody is looked at while a next one waits',
      question: {
        ...DISTRIBUTING,
        ...about(NEXT, ...LATE),
        retiring: [ca('signer@0')],
        presenters: () => assert.fail('not now'),
      },
      gist: 'Distributing nothing follow waits for y',
      because: 'waiting for y',
    },
    {
      name: 'Distributing begins when the signer is due',
      question: { ...STEADY, due: 'past its refresh time' },
      gist: 'Distributing begin follow',
      because: 'past its refresh time',
    },
    {
      name: 'Distributing begins also while an older CA retires',
      question: { ...STEADY, due: 'missing notAfter', retiring: [ca('signer@0')] },
      gist: 'Distributing begin follow',
      because: 'missing notAfter',
    },
    {
      name: 'Distributing: nobody was asked, which is no receipt',
      question: DISTRIBUTING,
      gist: 'Distributing nothing follow',
      because: 'nobody has been asked yet',
    },
    {
      name: 'Distributing: one of two has not loaded it (HO-2)',
      question: { ...DISTRIBUTING, ...about(NEXT, ...LATE) },
      gist: 'Distributing nothing follow waits for y',
      because: 'waiting for y',
    },
    {
      name: 'Distributing: everybody who holds it up is named (HO-1)',
      question: { ...DISTRIBUTING, ...about(NEXT, receipt('x', false), receipt('y', false), receipt('z', true)) },
      gist: 'Distributing nothing follow waits for x,y',
      because: 'waiting for x, y',
    },
    {
      name: 'Distributing: receipts for the signer in use are none for the next one',
      question: { ...DISTRIBUTING, ...about(OLD, ...READY) },
      gist: 'Distributing nothing follow',
      because: 'nobody has been asked yet',
    },
    {
      name: 'Signing begins when everybody has loaded it',
      question: { ...DISTRIBUTING, ...about(NEXT, ...READY) },
      gist: 'Signing promote follow',
      because: 'everybody who verifies has loaded it',
    },
    {
      name: 'Signing begins at once where nobody verifies',
      question: { ...DISTRIBUTING, ...about(NEXT) },
      gist: 'Signing promote follow',
      because: 'everybody who verifies has loaded it',
    },
    {
      name: 'Signing: leaves follow',
      question: { ...SIGNING, ...about(NEXT, ...READY) },
      gist: 'Signing nothing follow',
      because: 'a follow',
    },
    {
      name: 'Signing: each leaf that has not followed is named',
      question: { ...SIGNING, leaves: [leaf('a', false), leaf('b', false)], ...about(NEXT, ...READY) },
      gist: 'Signing nothing follow',
      because: 'a, b follow',
    },
    {
      name: 'Signing is not Retiring as long as one leaf is of the old one (HO-3)',
      question: { ...SIGNING, retiring: [OLD], ...about(NEXT, ...READY) },
      gist: 'Signing nothing follow',
      because: 'a follow',
    },
  ]);
});

describe('every kind of evidence counts alike, and what is missing counts as missing (spec 90, section 3)', () => {
  for (const kind of ['asked', 'started', 'reported'] as const) {
    table([
      {
        name: `${kind}: loaded`,
        question: { ...DISTRIBUTING, ...allSay(receipt('x', true, kind)) },
        gist: 'Signing promote follow',
        because: 'everybody who verifies has loaded it',
      },
      {
        name: `${kind}: not loaded`,
        question: { ...DISTRIBUTING, ...allSay(receipt('x', false, kind), receipt('y', true)) },
        gist: 'Distributing nothing follow waits for x',
        because: 'waiting for x',
      },
    ]);
  }

  test('who is waited for comes with what it said', () => {
    const late = receipt('y', false, 'reported');
    assert.deepEqual(decide({ ...DISTRIBUTING, ...allSay(receipt('x', true), late) }).waitingFor, [late]);
  });
});

describe('a second request (HO-5)', () => {
  table([
    {
      name: 'while one waits begins nothing',
      question: { ...DISTRIBUTING, due: 'missing notAfter', ...about(NEXT, ...LATE) },
      gist: 'Distributing nothing follow waits for y',
      because: 'waiting for y',
    },
    {
      name: 'while leaves follow comes after them',
      question: { ...SIGNING, due: 'missing notAfter', ...about(NEXT, ...READY) },
      gist: 'Signing nothing follow',
      because: 'a follow',
    },
    {
      name: 'while leaves are held back comes after them',
      question: { ...SIGNING, due: 'missing notAfter', ...about(NEXT, ...LATE) },
      gist: 'Signing nothing hold waits for y',
      because: 'waiting for y',
    },
    {
      name: 'between the promotion and the end of it comes after that',
      question: { ...STEADY, current: NEXT, next: NEXT, due: 'missing notAfter' },
      gist: 'Signing clear follow',
      because: 'the next signer signs already',
    },
  ]);
});

describe('taken back (HO-6)', () => {
  table([
    {
      name: 'next goes, whoever has loaded it',
      question: { ...DISTRIBUTING, isTakenBack: true, ...about(NEXT, ...READY) },
      gist: 'Steady discard follow',
      because: 'somebody took the hand-over back',
    },
    {
      name: 'one that may have signed before it was replaced itself stays in the bundle (HO-3)',
      question: { ...DISTRIBUTING, current: THIRD, isTakenBack: true, isNextUnused: false, ...about(NEXT, ...READY) },
      gist: 'Steady clear follow',
      because: 'somebody took the hand-over back',
    },
    {
      name: 'too late once it signs',
      question: { ...STEADY, current: NEXT, next: NEXT, isTakenBack: true },
      gist: 'Signing clear follow',
      because: 'the next signer signs already',
    },
    {
      name: 'also where the one in use ends soon',
      question: { ...DISTRIBUTING, current: ca('signer@1', hours(1)), isTakenBack: true, ...about(NEXT, ...LATE) },
      gist: 'Steady discard follow',
      because: 'somebody took the hand-over back',
    },
  ]);
});

describe('who cannot give a receipt (HO-7)', () => {
  const waived = receipt('y', false, 'reported', true);
  table([
    {
      name: 'waived, nobody waits for it',
      question: { ...DISTRIBUTING, ...about(NEXT, receipt('x', true), waived) },
      gist: 'Signing promote follow',
      because: 'everybody who verifies has loaded it, but for y, waived by somebody',
    },
    {
      name: 'waived, leaves do not wait for it either',
      question: { ...SIGNING, ...about(NEXT, receipt('x', true), waived) },
      gist: 'Signing nothing follow',
      because: 'a follow',
    },
    {
      name: 'another one that is not waived is waited for',
      question: { ...DISTRIBUTING, ...about(NEXT, receipt('x', false), waived) },
      gist: 'Distributing nothing follow waits for x',
      because: 'waiting for x',
    },
  ]);

  const SOON = 'the signer in use ends soon';
  /** The rule: three times what the last took, no more than the last fifth of its life, and a day at least. */
  const bounds: readonly { lastTookMs: number; dayMs?: number; leftMs: number; goesOn: boolean }[] = [
    { lastTookMs: 0, leftMs: days(1), goesOn: true },
    { lastTookMs: 0, leftMs: days(1) + 1, goesOn: false },
    { lastTookMs: hours(7), leftMs: days(1) + 1, goesOn: false },
    { lastTookMs: hours(9), leftMs: hours(27), goesOn: true },
    { lastTookMs: hours(9), leftMs: hours(27) + 1, goesOn: false },
    { lastTookMs: days(3), leftMs: days(9), goesOn: true },
    { lastTookMs: days(3), leftMs: days(9) + 1, goesOn: false },
    // A fifth of sixty days, however long the last one took.
    { lastTookMs: days(40), leftMs: days(12), goesOn: true },
    { lastTookMs: days(40), leftMs: days(12) + 1, goesOn: false },
    // A cluster whose days last two minutes.
    { lastTookMs: 0, dayMs: minutes(2), leftMs: minutes(2), goesOn: true },
    { lastTookMs: 0, dayMs: minutes(2), leftMs: minutes(2) + 1, goesOn: false },
  ];
  for (const { lastTookMs, dayMs = days(1), leftMs, goesOn } of bounds) {
    test(`the last took ${lastTookMs} ms, a day ${dayMs} ms, ${leftMs} ms are left: ${goesOn ? 'goes on' : 'waits'}`, () => {
      const current = ca('signer@1', leftMs);
      const decision = decide({ ...DISTRIBUTING, current, lastTookMs, dayMs, ...about(NEXT, ...LATE) });
      assert.equal(
        gist(decision),
        goesOn ? 'Signing promote follow without y' : 'Distributing nothing follow waits for y',
      );
      assert.equal(decision.because, goesOn ? SOON : 'waiting for y');
      assert.deepEqual(decision.leftBehind, goesOn ? [LATE[1]] : []);
    });
  }

  table([
    {
      name: 'the end of the signer is no reason before somebody was asked',
      question: { ...DISTRIBUTING, current: ca('signer@1', hours(1)) },
      gist: 'Distributing nothing follow',
      because: 'nobody has been asked yet',
    },
    {
      name: 'with everybody ready nobody is left behind',
      question: { ...DISTRIBUTING, current: ca('signer@1', hours(1)), ...about(NEXT, ...READY) },
      gist: 'Signing promote follow',
      because: 'everybody who verifies has loaded it',
    },
    {
      name: 'leaves that are held back wait until the day before the first of them ends',
      question: {
        ...SIGNING,
        leaves: [leaf('a', false, days(9)), leaf('b', false, days(1) + 1), leaf('c', false, days(8))],
        ...about(NEXT, ...LATE),
      },
      gist: 'Signing nothing hold waits for y',
      because: 'waiting for y',
    },
    {
      name: 'and go on then',
      question: {
        ...SIGNING,
        leaves: [leaf('a', false, days(9)), leaf('b', false, days(1)), leaf('c', false, days(8))],
        ...about(NEXT, ...LATE),
      },
      gist: 'Signing nothing follow without y',
      because: 'b ends soon',
    },
    {
      name: 'a leaf of the current signer that ends soon is no reason: it is made anew anyway',
      question: { ...SIGNING, leaves: [leaf('a', false), leaf('b', true, hours(1))], ...about(NEXT, ...LATE) },
      gist: 'Signing nothing hold waits for y',
      because: 'waiting for y',
    },
    {
      name: 'of a leaf too, three times the last counts for no more than a fifth of its life',
      question: { ...SIGNING, leaves: [leaf('a', false, days(6) + 1)], lastTookMs: days(40), ...about(NEXT, ...LATE) },
      gist: 'Signing nothing hold waits for y',
      because: 'waiting for y',
    },
  ]);
});

describe('a next signer that waited long (spec 10, S-4)', () => {
  table([
    {
      name: 'is good for four fifths of its life',
      question: { ...DISTRIBUTING, next: ca('signer@2', days(12) + 1), ...allSay(...READY) },
      gist: 'Signing promote follow',
      because: 'everybody who verifies has loaded it',
    },
    {
      name: 'and another one is made then, whoever has loaded it',
      question: { ...DISTRIBUTING, next: ca('signer@2', days(12)), ...allSay(...READY) },
      gist: 'Distributing begin-again follow',
      because: 'the next signer would end too soon',
    },
    {
      name: 'taken back, no other one is made',
      question: { ...DISTRIBUTING, next: ca('signer@2', days(12)), isTakenBack: true },
      gist: 'Steady discard follow',
      because: 'somebody took the hand-over back',
    },
  ]);
});

describe('no signer that could be used', () => {
  const LOST: FamilyQuestion = { ...STEADY, current: undefined, due: "secret doesn't exist" };
  table([
    {
      name: 'a new one, which signs what is missing; what is there stays until everybody has it',
      question: { ...LOST, leaves: [leaf('a', false)] },
      gist: 'Signing replace hold',
      because: 'there is no signer that could be used',
    },
    {
      name: 'a next one that waits takes its place: some may have loaded it',
      question: { ...LOST, next: NEXT, leaves: [leaf('a', false)], ...about(NEXT, ...LATE) },
      gist: 'Signing promote hold',
      because: 'there is no signer but the next one',
    },
    {
      name: 'not one that was taken back: it may have left the bundle already',
      question: { ...LOST, next: NEXT, isTakenBack: true, leaves: [leaf('a', false)], ...about(NEXT, ...READY) },
      gist: 'Signing replace hold',
      because: 'there is no signer that could be used',
    },
    {
      name: 'not one that would end soon',
      question: { ...LOST, next: ca('signer@2', days(12)) },
      gist: 'Signing replace hold',
      because: 'there is no signer that could be used',
    },
  ]);
});

describe('taken over in the middle of a wait of upstream (HO-4)', () => {
  table([
    {
      name: 'nobody was asked: leaves stay',
      question: SIGNING,
      gist: 'Signing nothing hold',
      because: 'nobody has been asked yet',
    },
    {
      name: 'somebody has not loaded the signer: leaves stay',
      question: { ...SIGNING, ...about(NEXT, ...LATE) },
      gist: 'Signing nothing hold waits for y',
      because: 'waiting for y',
    },
    {
      name: 'receipts for another CA are none',
      question: { ...SIGNING, ...about(OLD, ...READY) },
      gist: 'Signing nothing hold',
      because: 'nobody has been asked yet',
    },
    {
      name: 'everybody has it: leaves follow',
      question: { ...SIGNING, ...about(NEXT, ...READY) },
      gist: 'Signing nothing follow',
      because: 'a follow',
    },
  ]);
});

describe('stopped between two writes', () => {
  table([
    {
      name: 'next is there and not in the bundle: who comes meanwhile would not get it, whatever all others say',
      question: { ...DISTRIBUTING, bundle: [OLD], ...about(NEXT, ...READY) },
      gist: 'Distributing nothing follow',
      because: 'it is not in the bundle yet',
    },
    {
      name: 'one that has signed before and has left the bundle does not come back, whatever is said about it',
      question: { ...DISTRIBUTING, bundle: [OLD], isNextUnused: false, ...about(NEXT, ...READY) },
      gist: 'Steady clear follow',
      because: 'its CA has left the bundle',
    },
    {
      name: 'the same with a signer that somebody else has put in place: leaves stay',
      question: { ...SIGNING, bundle: [OLD], ...about(NEXT, ...READY) },
      gist: 'Signing nothing hold',
      because: 'the signer is not in the bundle yet',
    },
    {
      name: 'the signer is written, next is still there: it goes, and leaves follow where everybody has it',
      question: { ...SIGNING, next: NEXT, ...about(NEXT, ...READY) },
      gist: 'Signing clear follow',
      because: 'the next signer signs already',
    },
    {
      name: 'the same where it took the place of a lost one before everybody had it: leaves stay',
      question: { ...SIGNING, next: NEXT, ...about(NEXT, ...LATE) },
      gist: 'Signing clear hold waits for y',
      because: 'the next signer signs already',
    },
    {
      name: 'the same before anybody was asked',
      question: { ...SIGNING, next: NEXT },
      gist: 'Signing clear hold',
      because: 'the next signer signs already',
    },
    {
      name: 'somebody else has replaced the signer meanwhile: next goes, leaves wait for receipts of the one in use',
      question: { ...SIGNING, current: THIRD, next: NEXT, ...about(THIRD, ...LATE) },
      gist: 'Signing clear hold waits for y',
      because: 'the signer has been replaced otherwise',
    },
    {
      name: 'and follow when everybody has that',
      question: { ...SIGNING, current: THIRD, next: NEXT, ...about(THIRD, ...READY) },
      gist: 'Signing clear follow',
      because: 'the signer has been replaced otherwise',
    },
    {
      name: 'next never leaves the bundle for that: it may have signed before it was replaced (HO-3)',
      question: { ...STEADY, current: THIRD, next: NEXT },
      gist: 'Steady clear follow',
      because: 'the signer has been replaced otherwise',
    },
    {
      name: 'replaced and due again: next waits, and so do leaves for the one in use',
      question: { ...SIGNING, current: THIRD, next: NEXT, due: 'missing notAfter', ...about(NEXT, ...LATE) },
      gist: 'Distributing nothing hold waits for y',
      because: 'waiting for y',
    },
    {
      name: 'replaced and due again, next would end too soon: the new one is what the hand-over waits for',
      question: {
        ...SIGNING,
        current: THIRD,
        next: ca('signer@2', days(12)),
        due: 'missing notAfter',
        ...about(THIRD, ...LATE),
      },
      gist: 'Distributing begin-again hold',
      because: 'the next signer would end too soon',
    },
    {
      name: 'taken back while leaves are not of the one in use: they wait for its receipts',
      question: { ...SIGNING, current: THIRD, next: NEXT, isTakenBack: true, ...about(THIRD, ...LATE) },
      gist: 'Signing discard hold waits for y',
      because: 'somebody took the hand-over back',
    },
  ]);
});
