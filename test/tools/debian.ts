import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A browser with all it needs takes less than a minute. */
const LIMIT_SECONDS = 240;
const LOCK = join(tmpdir(), 'rotunda-apt.lock');
/** A new machine has no lists of packages yet, and may be installing something by itself. */
const INSTALL = `
  export DEBIAN_FRONTEND=noninteractive
  apt() { apt-get -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@"; }
  install() { apt install -y --no-install-recommends "$@"; }
  install "$@" || { apt update && install "$@"; }
`;

/** Installs packages with the ordinary client; throws where that cannot be done, or not in time. */
export function installPackages(...names: readonly string[]): void {
  if (process.getuid?.() !== 0) throw new Error('installing a package needs root');
  // Runlevel 1: services that come with the package are not started.
  const env = { ...process.env, RUNLEVEL: '1' };
  // One at a time: test files run side by side, and apt-get does not wait for another one. A limit that ends flock alone would leave
  // apt-get running, and the lock with it.
  const lock = ['--wait', String(LIMIT_SECONDS), LOCK];
  const limit = ['timeout', '--kill-after=5', String(LIMIT_SECONDS)];
  try {
    execFileSync('flock', [...lock, ...limit, 'sh', '-c', INSTALL, 'sh', ...names], { env, stdio: 'ignore' });
  } catch (error) {
    const { status, signal } = error as { status?: number; signal?: string };
    throw new Error(`apt-get did not install ${names.join(' and ')}: ${status ?? signal}`, { cause: error });
  }
}
