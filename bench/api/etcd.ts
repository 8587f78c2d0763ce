import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';

const START_PATIENCE_MS = 10_000;

/** One real etcd on loopback, to compare with. */
export class Etcd {
  readonly version: string;
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(version: string, url: string, child: ChildProcess) {
    this.version = version;
    this.url = url;
    this.#child = child;
  }

  /** Undefined where there is none and none can be had; then it has said why. */
  static async start(dir: string): Promise<Etcd | undefined> {
    const version = installedVersion() ?? installed();
    if (version === undefined) return undefined;
    const [client, peer] = [`http://127.0.0.1:${await freePort()}`, `http://127.0.0.1:${await freePort()}`];
    const flags = {
      name: 'bench',
      'data-dir': dir,
      'listen-client-urls': client,
      'advertise-client-urls': client,
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': `bench=${peer}`,
      'log-level': 'error',
    };
    const child = spawn(
      'etcd',
      Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`),
      { stdio: 'ignore' },
    );
    const etcd = new Etcd(version, client, child);
    if (await etcd.#isHealthy()) return etcd;
    console.log('etcd: skipped, it does not start');
    await etcd.stop();
    return undefined;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  async #isHealthy(): Promise<boolean> {
    const pool = new Pool(this.url);
    try {
      for (const end = Date.now() + START_PATIENCE_MS; Date.now() < end && this.#child.exitCode === null; ) {
        const answer = await pool.request({ method: 'GET', path: '/health' }).catch(() => undefined);
        const { health } = ((await answer?.body.json().catch(() => undefined)) ?? {}) as { health?: string };
        if (health === 'true') return true;
        await sleep(50);
      }
      return false;
    } finally {
      await pool.destroy();
    }
  }
}

function installedVersion(): string | undefined {
  const { status, stdout } = spawnSync('etcd', ['--version'], { encoding: 'utf8' });
  return status === 0 ? /etcd Version: (\S+)/.exec(stdout)?.[1] : undefined;
}

/** Debian's package, asked for once: a machine that cannot give it is not asked at every run. */
function installed(): string | undefined {
  const tried = join(tmpdir(), 'rotunda-bench-etcd-tried');
  if (process.getuid?.() !== 0 || existsSync(tried)) {
    console.log('etcd: skipped, there is no `etcd` (Debian: apt-get install etcd-server)');
    return undefined;
  }
  writeFileSync(tried, '');
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync('apt-get', ['install', '-y', '-qq', 'etcd-server'], { stdio: 'ignore', env });
  const version = installedVersion();
  if (version === undefined) console.log('etcd: skipped, apt-get cannot install etcd-server');
  return version;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
