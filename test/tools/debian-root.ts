import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const BUILD_TIMEOUT_MS = 5 * 60_000;
const BUILD_OUTPUT_LIMIT = 1 << 24;
/** What no machine of a test reads. */
const NOT_NEEDED = ['var/cache/apt', 'var/lib/apt/lists', 'usr/share/doc', 'usr/share/man', 'usr/share/locale'];

/**
 * Root directory of the smallest Debian with these packages, as old or new as this machine. Built once into the cache, whole or not
 * at all; `finish` is run in it by a shell as the last step. Nobody may write to it.
 */
export async function debianRoot(packages: readonly string[], finish: string): Promise<string> {
  const suite = suiteOfThisMachine();
  const recipe = createHash('sha256').update(JSON.stringify([suite, packages, finish, NOT_NEEDED])).digest('hex');
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'rotunda', 'debian-root');
  const root = join(cache, `${suite}-${recipe.slice(0, 12)}`);
  if (existsSync(root)) return root;
  mkdirSync(cache, { recursive: true });
  const half = mkdtempSync(join(cache, '.half-'));
  const limits = { timeout: BUILD_TIMEOUT_MS, maxBuffer: BUILD_OUTPUT_LIMIT };
  try {
    const mirror = mirrorOf(suite);
    const include = `--include=${packages.join(',')}`;
    await run('debootstrap', ['--variant=minbase', include, suite, half, ...(mirror ? [mirror] : [])], limits);
    await run('chroot', [half, 'sh', '-euc', finish], limits);
    for (const path of NOT_NEEDED) rmSync(join(half, path), { recursive: true, force: true });
    try {
      renameSync(half, root);
    } catch (error) {
      // Somebody else was faster.
      if (!existsSync(root)) throw error;
    }
    return root;
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
}

function suiteOfThisMachine(): string {
  const release = readFileSync('/etc/os-release', 'utf8');
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(release)?.[1];
  if (suite === undefined) throw new Error('expected VERSION_CODENAME in /etc/os-release, found none');
  return suite;
}

/** Where this machine gets its packages from; empty: where debootstrap goes by itself. */
function mirrorOf(suite: string): string {
  const query = ['indextargets', '--format', '$(REPO_URI)', `Codename: ${suite}`, 'Component: main'];
  return execFileSync('apt-get', query, { encoding: 'utf8' }).split('\n')[0] ?? '';
}
