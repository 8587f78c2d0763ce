import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { days } from '../../src/kube/duration.ts';
import { faultsOf } from '../../src/twin/fault.ts';
import { type LifeOptions, live } from '../../src/twin/life.ts';

/** A life, and all that was told of it. */
async function told(options: LifeOptions) {
  const trace = createHash('sha256');
  const life = await live({
    ...options,
    tell: (atMs, what) => void trace.update(`${atMs} ${what}\n`),
  });
  return { life, trace: trace.digest('hex') };
}

test('a month in which nothing goes wrong: signers are handed over, and nobody refuses anybody', async () => {
  const { life } = await told({ seed: 'quiet', days: 31 });
  assert.deepEqual(life.violations, []);
  assert.equal(life.inevitable, 0);
  assert.ok((life.counts['SignerInUseChanged'] ?? 0) >= 2, JSON.stringify(life.counts));
  assert.ok(life.checked > 1000);
});

test('the same seed tells the same story, byte for byte; another seed tells another', async () => {
  const life = (seed: string) => told({ seed, days: 16, faults: faultsOf(seed, 16, 20) });
  const [once, again, other] = [await life('a'), await life('a'), await life('b')];
  assert.equal(once.trace, again.trace);
  assert.deepEqual(once.life, again.life);
  assert.notEqual(once.trace, other.trace);
});

test('operators that were all off renew what is due when they are back', async () => {
  const hibernation = { kind: 'hibernation', atMs: days(14), forMs: days(4) } as const;
  const { life } = await told({ seed: 'off', days: 19, controlPlane: 1, workers: 0, faults: [hibernation] });
  assert.deepEqual(life.violations, []);
  assert.ok(life.handOvers >= 1, 'nobody leads again');
});
