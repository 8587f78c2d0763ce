/**
 * How fast are keys and certificates made, on one core and on two, beside openssl in the same run; and does the event
 * loop stay free while 200 RSA chains are issued?
 */
import { execFileSync, spawnSync } from 'node:child_process';
import type { KeyObject } from 'node:crypto';
import { createHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { days } from '../src/kube/duration.ts';
import type { CertificateAndKey } from '../src/pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../src/pki/issue.ts';
import { type KeyAlgorithm, type Keys, systemKeys } from '../src/pki/keys.ts';

const ALGORITHMS: KeyAlgorithm[] = ['RSA-2048', 'RSA-3072', 'RSA-4096', 'P-256', 'P-384', 'Ed25519'];
const MEASURE_MS = 1500;
const IN_FLIGHT = 8;
const now = new Date('2026-01-01T00:00:00Z');

interface Rates {
  keys: number;
  certificatesWithKey: number;
  certificates: number;
}

/** Entry point; with `--measure` it is the child process that is pinned to one core. */
export async function bench(args: string[]): Promise<void> {
  if (args[0] === '--measure') {
    process.stdout.write(JSON.stringify(await measureAll()));
    return;
  }
  const two = await measureAll();
  const one = onOneCore();
  const openssl = opensslRates();
  console.log(
    '\nper second             one core              two cores             openssl (one core)    ratio to openssl',
  );
  console.log('algorithm     keys  cert+key  cert   keys  cert+key  cert   signatures  req+key  signatures  req+key');
  for (const algorithm of ALGORITHMS) {
    const [a, b, o] = [one?.[algorithm], two[algorithm], openssl[algorithm]];
    const cells = [
      a?.keys,
      a?.certificatesWithKey,
      a?.certificates,
      b?.keys,
      b?.certificatesWithKey,
      b?.certificates,
      o?.signatures,
      o?.requests,
    ];
    const ratio = (ours?: number, theirs?: number) => (ours && theirs ? `${(ours / theirs).toFixed(2)}x` : '-');
    const widths = [6, 9, 7, 7, 9, 7, 12, 9];
    const line = cells
      .map((cell, i) => (cell === undefined ? '-' : cell.toFixed(cell < 100 ? 1 : 0)).padStart(widths[i] as number))
      .join('');
    console.log(
      `${algorithm.padEnd(9)}${line}${ratio(a?.certificates, o?.signatures).padStart(11)}${ratio(a?.certificatesWithKey, o?.requests).padStart(10)}`,
    );
  }
  console.log(
    'signatures: openssl speed, bare signing. req+key: one `openssl req -x509 -newkey` process a certificate.',
  );
  await eventLoopDelay();
  console.log(`peak memory of this process: ${Math.round(process.resourceUsage().maxRSS / 1024)} MiB`);
}

async function measureAll(): Promise<Partial<Record<KeyAlgorithm, Rates>>> {
  const result: Partial<Record<KeyAlgorithm, Rates>> = {};
  for (const algorithm of ALGORITHMS) result[algorithm] = await measure(algorithm);
  return result;
}

async function measure(algorithm: KeyAlgorithm): Promise<Rates> {
  const signer = await issueSigner({ commonName: 'bench', lifetimeMs: days(365), now, keys: systemKeys, algorithm });
  const reused = fixedKey(await systemKeys.generate(algorithm));
  return {
    keys: await rate(() => systemKeys.generate(algorithm)),
    certificatesWithKey: await rate(() => client(signer, systemKeys, algorithm)),
    certificates: await rate(() => client(signer, reused, algorithm)),
  };
}

function client(signer: CertificateAndKey, keys: Keys, algorithm: KeyAlgorithm): Promise<CertificateAndKey> {
  return issueClient({ signer, user: { name: 'user', groups: ['group'] }, lifetimeMs: days(30), now, keys, algorithm });
}

function fixedKey(key: KeyObject): Keys {
  return { ...systemKeys, generate: async () => key };
}

async function rate(work: () => Promise<unknown>): Promise<number> {
  await work();
  let done = 0;
  const start = performance.now();
  const worker = async () => {
    while (performance.now() - start < MEASURE_MS) {
      await work();
      done++;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  return done / ((performance.now() - start) / 1000);
}

/** The same measurements in a process that may use one core only; undefined where `taskset` is missing. */
function onOneCore(): Partial<Record<KeyAlgorithm, Rates>> | undefined {
  const script = `import('${import.meta.url}').then(m => m.bench(['--measure']))`;
  const child = spawnSync('taskset', ['-c', '0', process.execPath, '-e', script], {
    encoding: 'utf8',
    maxBuffer: 1 << 20,
  });
  if (child.status !== 0) {
    console.log(`one core: skipped, taskset failed: ${child.error?.message ?? child.stderr}`);
    return undefined;
  }
  return JSON.parse(child.stdout) as Partial<Record<KeyAlgorithm, Rates>>;
}

const OPENSSL: Partial<Record<KeyAlgorithm, { speed: string; request: string[]; count: number }>> = {
  'RSA-2048': { speed: 'rsa2048', request: ['-newkey', 'rsa:2048'], count: 20 },
  'RSA-4096': { speed: 'rsa4096', request: ['-newkey', 'rsa:4096'], count: 3 },
  'P-256': { speed: 'ecdsap256', request: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], count: 40 },
  'P-384': { speed: 'ecdsap384', request: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384'], count: 40 },
  Ed25519: { speed: 'ed25519', request: ['-newkey', 'ed25519'], count: 40 },
};

function opensslRates(): Partial<Record<KeyAlgorithm, { signatures: number; requests: number }>> {
  const result: Partial<Record<KeyAlgorithm, { signatures: number; requests: number }>> = {};
  try {
    console.log(`openssl: ${execFileSync('openssl', ['version'], { encoding: 'utf8' }).trim()}`);
  } catch {
    console.log('openssl: not found, skipped');
    return result;
  }
  for (const [algorithm, { speed, request, count }] of Object.entries(OPENSSL)) {
    const table = execFileSync('openssl', ['speed', '-seconds', '1', speed], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    // The last line ends in: sign seconds, verify seconds, sign/s, verify/s.
    const signatures = Number(table.trim().split('\n').at(-1)?.trim().split(/\s+/).at(-2));
    const start = performance.now();
    for (let i = 0; i < count; i++) {
      execFileSync(
        'openssl',
        [
          'req',
          '-x509',
          '-nodes',
          '-subj',
          '/CN=bench',
          '-days',
          '30',
          '-keyout',
          '/dev/null',
          '-out',
          '/dev/null',
          ...request,
        ],
        { stdio: 'ignore' },
      );
    }
    result[algorithm as KeyAlgorithm] = { signatures, requests: count / ((performance.now() - start) / 1000) };
  }
  return result;
}

async function eventLoopDelay(): Promise<void> {
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  const latency = createHistogram();
  histogram.enable();
  const start = performance.now();
  await Promise.all(
    Array.from({ length: 200 }, async (_, index) => {
      const begun = performance.now();
      const context = { lifetimeMs: days(30), now, keys: systemKeys };
      const signer = await issueSigner({ ...context, commonName: `chain-${index}` });
      await issueServing({ ...context, signer, hostnames: ['localhost', '127.0.0.1'] });
      latency.record(Math.max(1, Math.round(performance.now() - begun)));
    }),
  );
  histogram.disable();
  const ms = (nanos: number) => (nanos / 1e6).toFixed(1);
  console.log(
    `\n200 RSA-2048 chains (signer and serving certificate) in ${((performance.now() - start) / 1000).toFixed(1)} s`,
  );
  console.log(
    `event-loop delay: p50 ${ms(histogram.percentile(50))} ms, p99 ${ms(histogram.percentile(99))} ms, max ${ms(histogram.max)} ms (goal: p99 below 20 ms)`,
  );
}
