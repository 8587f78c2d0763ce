/**
 * How many years of a cluster (three control-plane nodes, two workers) does one core live through in a minute? Counted is processor time,
 * because others may use the machine. `npm run bench -- twin 365 3` lives three lives of a year with faults; `npm run bench -- twin 365 1
 * quiet` one in which nothing goes wrong.
 */
import { performance } from 'node:perf_hooks';
import { cpuUsage } from 'node:process';
import { days, minutes, seconds } from '../src/kube/duration.ts';
import { faultsOf } from '../src/twin/fault.ts';
import { live } from '../src/twin/life.ts';

export async function bench([lifeDays = '365', lives = '3', weather = 'faults']: string[] = []): Promise<void> {
  const lifetime = Number(lifeDays);
  const count = Number(lives);
  if (!(lifetime >= 1 && count >= 1))
    throw new RangeError(`expected days and lives, found "${lifeDays}" and "${lives}"`);
  let [lived, used] = [0, 0];
  for (let index = 0; index < count; index++) {
    const seed = `bench ${index}`;
    const faults = weather === 'quiet' ? [] : faultsOf(seed, lifetime);
    const [before, since] = [cpuUsage(), performance.now()];
    const life = await live({ seed, days: lifetime, faults, stopsAtFirst: false });
    const { user, system } = cpuUsage(before);
    const usedMs = (user + system) / 1000;
    const wallMs = performance.now() - since;
    lived += life.livedMs;
    used += usedMs;
    const { violations, inevitable, looks, checked, writes } = life;
    console.log(
      `${seed}: ${(usedMs / seconds(1)).toFixed(2)} s of processor time (${(wallMs / seconds(1)).toFixed(2)} s by the clock), ${looks} looks, ${checked} sides checked, ${writes} writes, ${violations.length} violations, ${inevitable} inevitable`,
    );
    for (const { atMs, rule, what } of violations.slice(0, 3))
      console.log(`  ${new Date(atMs).toISOString()} ${rule}: ${what}`);
  }
  const years = lived / days(365);
  console.log(`${(years / (used / minutes(1))).toFixed(1)} cluster-years a minute of processor time`);
}
