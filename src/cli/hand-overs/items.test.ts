import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loadSecret } from '../../certrotation/secret.ts';
import { RECEIPTS } from '../../hand-over/names.ts';
import { SECRETS } from '../../kube/resource.ts';
import { gateOf, surroundings } from '../certificates/gate.ts';
import { alreadyBegun, isBegun, whatBegins } from '../certificates/new-signer.ts';
import { handOverEntries } from './describe.ts';
import { HandOverWorld, LEAF, NEXT, SIGNER } from './testing.ts';
import { whatWaivingMeans } from './waive.ts';
import { handOverSummary, loadedText, whatEndsTheWait } from './words.ts';

const SHOWN_ON_B = 'kube-apiserver on b (kubelet-client)';

describe('where a hand-over stands, by the rule of its operator (spec 90, HO-1)', () => {
  test('at rest: steady, and who would be asked', async t => {
    const world = await HandOverWorld.create(t, 'a', 'b');
    const item = await world.item();
    assert.deepEqual([item.phase, item.waitingFor, item.receipts], ['Steady', [], []]);
    assert.deepEqual(item.asks, [{ process: 'kubelet', nodes: 'all', how: 'it names its CAs in a handshake' }]);
    assert.deepEqual(handOverSummary([item]), { first: '0 hand-overs under way; 1 signer steady', last: '' });
    const begins = whatBegins({ ...item, isByReceipts: true });
    assert.deepEqual(begins, [
      'a hand-over begins (Distributing): the new one is made known, and signs nothing yet',
      'it signs when these have loaded it: kubelet on all nodes',
    ]);
    assert.match(whatBegins(item).join(' '), /does not say that it hands over by receipts/, 'it has no condition');
  });

  test('distributing: who has answered and who is waited for, as the operator noted it', async t => {
    const world = await HandOverWorld.create(t, 'a', 'b');
    world.missing.add('b');
    await world.force();
    const item = await world.item();
    assert.deepEqual([item.phase, item.receiptsFrom, item.waitingFor], ['Distributing', 'operator', ['kubelet on b']]);
    assert.equal(item.since, world.rotation.clock.now().toISOString());
    assert.deepEqual(
      item.receipts.map(({ verifier, isLoaded, kind }) => `${verifier} ${kind} ${isLoaded}`),
      ['kubelet on a asked true', 'kubelet on b asked false'],
    );
    assert.equal(handOverSummary([item]).first, '1 hand-over under way; waiting for 1 verifier; 0 signers steady');
    const ends = whatEndsTheWait(item);
    assert.ok(ends.includes('rotunda waive node/b, or the node is deleted'), ends.join());
    assert.match(ends.at(-1) ?? '', /^\d{4}-\d\d-\d\dT.*Z: waiting longer would harm everybody \(HO-7\)$/);

    const told = new Map(handOverEntries(item, world.rotation.clock.now()));
    assert.deepEqual(told.get('Verifiers'), [
      'loaded  kubelet on a (asked: named it in a handshake)',
      'MISSING  kubelet on b (asked: has not loaded it)',
    ]);
    assert.equal(told.get('Said to'), 'its operator');
    assert.match(String(told.get('Goes on when')), /every verifier that is counted has loaded .* \(HO-2\)$/);

    world.missing.clear();
    await world.settle();
    assert.deepEqual((await world.item()).phase, 'Retiring');
  });

  test('signing: who still shows an older certificate, as the operator noted it (HO-3)', async t => {
    const world = await HandOverWorld.create(t, 'a', 'b');
    world.showingOld.add('b');
    await world.force();
    const item = await world.item();
    assert.deepEqual([item.phase, item.receiptsFrom, item.waitingFor], ['Signing', 'operator', [SHOWN_ON_B]]);
    const leaf = loadSecret(await world.kube.get(SECRETS, LEAF)).chain[0];
    assert.equal(item.since, leaf?.notBefore.toISOString(), 'since there is something new to show');
    assert.equal(
      handOverSummary([item]).first,
      '1 hand-over under way; 1 still to show a new certificate; 0 signers steady',
    );
    assert.equal(loadedText(item), '1/2');
    assert.deepEqual(whatEndsTheWait(item), [
      'each of them shows a certificate of the signer in use',
      'rotunda waive node/b, or the node is deleted',
    ]);
    const told = new Map(handOverEntries(item, world.rotation.clock.now()));
    assert.deepEqual(told.get('Presenters'), [
      'shown  kube-apiserver on a (kubelet-client) (asked: shows a certificate of the signer in use)',
      `MISSING  ${SHOWN_ON_B} (asked: shows a certificate of an older one)`,
    ]);
    assert.match(
      whatWaivingMeans({ metadata: { name: 'b' } }, [item]).join(),
      /may be refused once the CA before .* is gone: shows a certificate of an older one/,
    );
    world.showingOld.clear();
    await world.settle();
    assert.deepEqual((await world.item()).phase, 'Retiring');
  });

  test('where no operator has noted anything, nobody says that somebody was asked', async t => {
    const world = await HandOverWorld.create(t, 'a');
    world.missing.add('a');
    await world.force();
    await world.annotate(NEXT, { [RECEIPTS]: 'not a list' });
    const item = await world.item('notes');
    assert.deepEqual(
      [item.phase, item.receiptsFrom, item.because],
      ['Distributing', undefined, 'nobody has been asked yet'],
    );
    assert.match(handOverSummary([item]).last, /nobody has asked the verifiers of kube-apiserver-to-kubelet-signer/);
    const asked = await world.item('missing');
    assert.deepEqual([asked.receiptsFrom, asked.waitingFor], ['here', ['kubelet on a']]);
    assert.equal(asked.receipts[0]?.evidence, 'its node has no address');
  });
});

describe('requests in the middle of a hand-over (spec 90, HO-5)', () => {
  const gate = async (world: HandOverWorld) => {
    const now = world.rotation.clock.now();
    const [leaf, found] = [await world.kube.get(SECRETS, LEAF), await surroundings(world.kube, now)];
    return gateOf(leaf, found, now);
  };

  test('a second one is answered with the phase', async t => {
    const world = await HandOverWorld.create(t, 'a');
    assert.equal(isBegun(await world.item()), false);
    world.missing.add('a');
    await world.force();
    const item = await world.item();
    assert.equal(isBegun(item), true);
    const { outcome, text } = alreadyBegun(await world.kube.get(SECRETS, SIGNER), item);
    assert.equal(outcome, 'unchanged');
    assert.match(text, /^is being handed over already: Distributing ".*@\d+" since .*Z, waiting for kubelet on a$/);
  });

  test('a leaf waits for its phase, and goes when nothing is under way, however young its signer', async t => {
    const world = await HandOverWorld.create(t, 'a');
    assert.equal(
      await gate(world),
      undefined,
      'whoever accepts the leaf that is there accepts the next one of its signer',
    );
    world.missing.add('a');
    await world.force();
    const held = await gate(world);
    assert.match(
      held?.because ?? '',
      /is being handed over: Distributing since .*, waiting for kubelet on a; a new leaf follows/,
    );
    assert.deepEqual(held?.cutOff, []);
    world.missing.clear();
    await world.settle();
    assert.equal(await gate(world), undefined);
  });

  test('a leaf of a signer that not everybody has loaded names those who would be cut off', async t => {
    const world = await HandOverWorld.create(t, 'a');
    // As upstream leaves it: a signer made anew in place that has signed nothing.
    world.missing.add('a');
    await world.kube.delete(SECRETS, SIGNER);
    await world.settle();
    const held = await gate(world);
    assert.match(held?.because ?? '', /kube-apiserver-to-kubelet-signer: not loaded yet by kubelet on a;/);
    assert.deepEqual(held?.cutOff, ['kubelet on a']);
  });
});
