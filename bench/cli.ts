/**
 * How long does a person wait for an answer? `rotunda --help`, `rotunda get certs` and `rotunda plan --days 90` against a running cluster
 * with the chains of kube-apiserver, as bundled for shipping and from the sources, beside this machine's plain `node -e 0`.
 */
import { execFile } from 'node:child_process';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { bundleProgram } from '../src/cli/bundle.ts';
import { readPlanObjects } from '../src/forecast/objects.ts';
import { simulate } from '../src/forecast/simulate.ts';
import { clusterSource } from '../src/inventory/source.ts';
import { days } from '../src/kube/duration.ts';
import { type Cockpit, main, startCockpit } from '../test/cli/cockpit.ts';

const RUNS = 15;

export async function bench(): Promise<void> {
  const cockpit = await startCockpit();
  try {
    const bundled = await bundleProgram(join(cockpit.dir, 'dist'));
    console.log(`load of the machine: ${loadavg()[0]?.toFixed(1)}; median and best of ${RUNS}, in ms\n`);
    const cases: [string, string[]][] = [
      ['node -e 0', ['-e', '0']],
      ['rotunda --help, bundled', [bundled, '--help']],
      ['rotunda get certs, bundled', [bundled, 'get', 'certs']],
      ['rotunda plan --days 90, bundled', [bundled, 'plan']],
      ['rotunda --help, sources', [main, '--help']],
      ['rotunda get certs, sources', [main, 'get', 'certs']],
      ['rotunda plan --days 90, sources', [main, 'plan']],
    ];
    for (const [name, args] of cases) console.log(row(name, await measure(args, cockpit)));
    console.log(row('the simulation of 90 days alone', await simulations(cockpit)));
  } finally {
    await cockpit.stop();
  }
}

async function measure(args: readonly string[], { kubeconfig }: Cockpit): Promise<number[]> {
  const times: number[] = [];
  for (let run = -1; run < RUNS; run++) {
    const began = performance.now();
    await new Promise<void>((resolve, reject) => {
      execFile(process.execPath, args, { env: { ...process.env, KUBECONFIG: kubeconfig } }, error =>
        error === null ? resolve() : reject(error),
      );
    });
    // The first run fills the caches.
    if (run >= 0) times.push(performance.now() - began);
  }
  return times;
}

async function simulations({ api }: Cockpit): Promise<number[]> {
  const objects = await readPlanObjects(clusterSource(api.kube));
  const now = new Date();
  const times: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const began = performance.now();
    await simulate(objects, { now, until: new Date(now.getTime() + days(90)) });
    times.push(performance.now() - began);
  }
  return times;
}

function row(name: string, times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const cell = (value: number | undefined) => (value ?? Number.NaN).toFixed(0).padStart(7);
  return `${name.padEnd(36)}${cell(sorted[Math.floor(sorted.length / 2)])}${cell(sorted[0])}`;
}
