/**
 * A cluster in which everything goes wrong while signers are handed over, and a prober that reads nothing but the files of nodes:
 *
 *     node test/hand-over/chaos.ts --day 2s --minutes 10 [--real] [--away worker-1] [--seed N] [--calm]
 *
 * Processes are killed and stopped, single ones and all of them, signers are forced in quick succession. Ends with the number of connections
 * that were accepted and refused over every edge, and with 1 where any was refused.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { parseGoDuration } from '../../src/kube/duration.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { SECRETS } from '../../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS, signersOf } from '../../src/kube-apiserver/chains.ts';
import { Power } from '../../src/local/power.ts';
import { nodeFilesProber } from './prober.ts';

const { values: flags } = parseArgs({
  options: {
    day: { type: 'string', default: '2s' },
    minutes: { type: 'string', default: '10' },
    real: { type: 'boolean', default: false },
    calm: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    away: { type: 'string' },
    'control-plane': { type: 'string', default: '3' },
    workers: { type: 'string', default: '2' },
  },
});

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname;
const dir = mkdtempSync(join(tmpdir(), 'rotunda-chaos-'));
const random = randomFrom(Number(flags.seed));
const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 23)} ${text}`);
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));

const words = [
  'up',
  '--dir',
  dir,
  '--rotation-day',
  flags.day,
  '--control-plane',
  flags['control-plane'],
  '--workers',
  flags.workers,
];
say(`seed ${flags.seed}, days of ${flags.day}, ${flags.minutes} minutes, in ${dir}`);
const up = spawn(process.execPath, [main, ...words, ...(flags.real ? ['--real'] : [])], {
  stdio: ['ignore', 'pipe', 'ignore'],
});
const ended = new Promise(resolve => up.once('exit', resolve));
await new Promise<void>((resolve, reject) => {
  let text = '';
  up.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
    if (text.includes('ready:')) resolve();
  });
  up.once('exit', () => reject(new Error('rotunda up ended before it was ready')));
});
say('ready');

const kube = new HttpKube(await loadAccess({ path: join(dir, 'kubeconfig') }));
const prober = await nodeFilesProber(kube, dir, 200);
prober.start();

const signers = signersOf(KUBE_APISERVER_CHAINS).map(({ signer }) => signer);
const dayMs = parseGoDuration(flags.day) ?? 2000;
const endMs = Date.now() + Number(flags.minutes) * 60_000;
const done = new AbortController();
const seen = new Map<string, number>();
const away = flags.away === undefined ? undefined : new Power(join(dir, 'nodes', flags.away));
away?.turn('off');
const work = [watchRefusals(), force(), ...(flags.calm ? [] : [harm()])];
while (Date.now() < endMs && up.exitCode === null) await pause(1000);
done.abort();
await Promise.all(work);
if (away !== undefined) {
  say(`${flags.away} is switched on again`);
  away.turn('on');
  await pause(60_000);
}
await prober.stop();
let [accepted, refused] = [0, 0];
for (const edge of prober.snapshot().edges) {
  accepted += edge.accepted;
  refused += edge.refused;
  say(
    `${edge.refused > 0 ? 'REFUSED' : 'ok'} ${edge.edge}: ${edge.accepted} accepted, ${edge.refused} refused, ${edge.unreachable} not answered`,
  );
}
const { items } = await kube
  .list(SECRETS, { namespace: 'openshift-kube-apiserver-operator' })
  .catch(() => ({ items: [] }));
for (const { metadata } of items.filter(({ metadata }) => metadata?.name?.endsWith('-signer'))) {
  say(`${metadata?.name}: ${metadata?.annotations?.['rotunda.dev/hand-over-took'] ?? 'was not handed over'}`);
}
say(
  `${accepted} accepted, ${refused} refused, ${prober.snapshot().rounds} rounds, seed ${flags.seed}, log ${dir}/rotunda.log`,
);
for (const pid of descendants(up.pid ?? 0)) signal(pid, 'SIGCONT');
up.kill('SIGTERM');
await Promise.race([ended, pause(20_000)]);
for (const pid of descendants(up.pid ?? 0)) signal(pid, 'SIGKILL');
if (refused === 0) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
process.exit(refused === 0 ? 0 : 1);

async function watchRefusals(): Promise<void> {
  while (!done.signal.aborted) {
    for (const { edge, refusals } of prober.snapshot().edges) {
      for (const { by, reason, from, to, count } of refusals) {
        const id = `${edge} ${by} ${reason}`;
        if (seen.get(id) === count) continue;
        seen.set(id, count);
        say(`REFUSED ${edge}: the ${by} refuses, from ${from} to ${to}: ${reason} (${count})`);
      }
    }
    await pause(500);
  }
}

/** Ten signers twice within six seconds, then three times within thirty-five, then single ones. */
async function force(): Promise<void> {
  const all = async () => {
    for (const { namespace, name } of signers) {
      const body = { metadata: { annotations: { [NOT_AFTER]: 'force-regeneration' } } };
      await kube.patch(SECRETS, { namespace, name }, { type: 'merge', body }).catch(() => {});
    }
    say('forced all signers');
  };
  await pause(dayMs * 5);
  for (const waits of [
    [0, 5000],
    [60_000, 15_000, 15_000],
  ]) {
    for (const ms of waits) {
      await until(ms);
      if (done.signal.aborted) return;
      await all();
    }
  }
  while (!done.signal.aborted) {
    await until(60_000 + random(60_000));
    if (!done.signal.aborted) await all();
  }
}

/** Kills one process, stops one for a while, or stops all of them. */
async function harm(): Promise<void> {
  await pause(5000);
  while (!done.signal.aborted) {
    await until(3000 + random(6000));
    const pids = descendants(up.pid ?? 0);
    const pid = pids[random(pids.length)];
    if (pid === undefined) continue;
    const what = random(10);
    if (what < 5) {
      say(`kill -9 ${pid} ${commandOf(pid)}`);
      signal(pid, 'SIGKILL');
    } else if (what < 9) {
      const ms = 500 + random(3000);
      say(`stop ${pid} for ${ms} ms ${commandOf(pid)}`);
      signal(pid, 'SIGSTOP');
      await pause(ms);
      signal(pid, 'SIGCONT');
    } else {
      const all = [up.pid ?? 0, ...pids];
      const ms = 1000 + random(4000);
      say(`stop everything for ${ms} ms`);
      for (const each of all) signal(each, 'SIGSTOP');
      await pause(ms);
      for (const each of all) signal(each, 'SIGCONT');
    }
  }
}

async function until(ms: number): Promise<void> {
  for (const end = Date.now() + ms; Date.now() < end && !done.signal.aborted; )
    await pause(Math.min(500, end - Date.now()));
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Gone.
  }
}

/** Every process below this one. */
function descendants(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // Gone.
    }
  }
  const found = [pid];
  for (const one of found) for (const [child, parent] of parents) if (parent === one) found.push(child);
  return found.slice(1);
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').replaceAll(dir, '').slice(-160);
  } catch {
    return '';
  }
}

/** Whole numbers below a bound, the same for the same seed. */
function randomFrom(seed: number): (bound: number) => number {
  let state = seed >>> 0;
  return bound => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}
