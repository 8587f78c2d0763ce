import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const LIMIT_MS = 3 * 60_000;
const LOCK = join(tmpdir(), 'rotunda-apt.lock');

/** Installs a package with the ordinary client; throws where that cannot be done. */
export function installPackage(name: string): void {
  if (process.getuid?.() !== 0) throw new Error('installing a package needs root');
  // Runlevel 1: services that come with the package are not started.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  // One at a time: test files run side by side, and apt-get does not wait for another one.
  const aptGet = (...args: string[]) =>
    execFileSync('flock', [LOCK, 'apt-get', ...args], { env, stdio: 'ignore', timeout: LIMIT_MS });
  const install = () => aptGet('install', '-y', '--no-install-recommends', name);
  try {
    install();
  } catch {
    // A new machine has no lists of packages yet.
    aptGet('update');
    install();
  }
}
