/**
 * The agent's work on the disk is killed with SIGKILL at random points, some of them within the recovery from the kill before.
 * After recovery the node must be in the one config or the other, complete, to the byte. More points: ROTUNDA_CRASH_POINTS=200;
 * another course: ROTUNDA_CRASH_SEED=7.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { applyConfig, finishUpdate, recoverInterrupted } from '../../../src/daemon/apply/apply-config.ts';
import { snapshot } from '../../../src/daemon/apply/snapshot.test-support.ts';
import { readStored } from '../../../src/daemon/apply/stored.ts';
import { localHost } from '../../../src/host/local.ts';
import type { Host } from '../../../src/host/port.ts';
import { end } from '../../tools/child.ts';
import { inTime } from '../../tools/eventually.ts';
import { config, furnish, SHIPPED } from './configs.ts';

const POINTS = Number(process.env['ROTUNDA_CRASH_POINTS'] ?? 40);
const SEED = Number(process.env['ROTUNDA_CRASH_SEED'] ?? 1);
/** More than one update makes, so that every moment of it is met. */
const MOST_CHANGES = 240;
/** How far into, or beyond, a change the signal may come. */
const LATEST_MS = 4;
/** Being killed does not lose what was not flushed, so it need not be a real disk; in memory there is time for more points. */
const DIRECTORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

test(`killed at ${POINTS} random points (seed ${SEED}), the node ends in the old or the new state, complete`, async t => {
  const root = await mkdtemp(join(DIRECTORY, 'rotunda-crash-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const host = localHost({ root });
  await furnish(host);
  const complete = await completeStates(host);
  const random = randomFrom(SEED);
  const outcomes = new Map<string, number>();
  for (let point = 1; point <= POINTS; point++) {
    await killedIn(root, Math.ceil(random() * MOST_CHANGES), random() * LATEST_MS);
    // Every third time the next process recovers, and may be killed in that.
    if (point % 3 === 0 && point < POINTS) continue;
    const { outcome } = await recoverInterrupted(host);
    await finishUpdate(host);
    const name = (await readStored(host))?.config.metadata?.name ?? '';
    const what = `${outcome}, in ${name}`;
    outcomes.set(what, (outcomes.get(what) ?? 0) + 1);
    assert.deepEqual(differing(await state(host), complete.get(name) ?? {}), [], `point ${point}: ${what}`);
  }
  t.diagnostic(JSON.stringify(Object.fromEntries(outcomes)));
  const current = (await readStored(host))?.config;
  await applyConfig(host, current, { metadata: { name: 'rendered-empty' }, spec: {} });
  for (const path of SHIPPED) {
    assert.equal((await host.files.read(path))?.toString(), 'shipped');
    assert.equal((await host.files.stat(path))?.mode, 0o640);
  }
});

/** What the node looks like in each config once it has been in both. */
async function completeStates(host: Host): Promise<Map<string, Record<string, string>>> {
  const states = new Map<string, Record<string, string>>();
  let from: ReturnType<typeof config> | undefined;
  for (const name of ['a', 'b', 'a', 'b'] as const) {
    await applyConfig(host, from, config(name));
    await finishUpdate(host);
    from = config(name);
    states.set(`rendered-${name}`, await state(host));
  }
  return states;
}

async function state(host: Host): Promise<Record<string, string>> {
  const found = await snapshot(host.files);
  return Object.fromEntries(
    Object.entries(found).filter(([path]) => !path.startsWith('/run/') && !path.startsWith('/var/log/')),
  );
}

/** Paths at which two states differ. */
function differing(one: Record<string, string>, other: Record<string, string>): string[] {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].filter(path => one[path] !== other[path]);
}

/** Starts a process that updates the node and kills it once it has begun its n-th change. */
async function killedIn(root: string, change: number, afterMs: number): Promise<void> {
  const updater = spawn(process.execPath, [join(import.meta.dirname, 'updater.ts'), root], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const begun = new Promise<void>(resolve => {
    let changes = 0;
    updater.stdout.on('data', (chunk: Buffer) => {
      changes += chunk.length;
      if (changes >= change) resolve();
    });
    updater.once('exit', () => resolve());
  });
  await inTime(`change ${change} of the updater`, begun);
  await wait(afterMs);
  assert.deepEqual(await end(updater, 'SIGKILL'), { code: null, signal: 'SIGKILL' }, 'the updater ended by itself');
}

/** A course of random numbers that a seed repeats (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
