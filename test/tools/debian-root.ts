import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const BUILD_SECONDS = 600;
const BUILD_OUTPUT_LIMIT = 1 << 24;
const HALF = '.half-';
const OLD_MS = 60 * 60_000;
/** Arguments: where it belongs, where it is built, the last step, what mmdebstrap is told. Somebody else may have been faster. */
const BUILD = `
  root=$1 half=$2 finish=$3
  shift 3
  if [ -e "$root" ]; then exit; fi
  mmdebstrap "$@"
  chroot "$half" sh -euc "$finish"
  mv "$half" "$root"
`;
/** What no machine of a test reads. */
const NOT_NEEDED = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/locale/*', '/usr/share/info/*'];

/**
 * Root directory of the smallest Debian with these packages, as old or new as this machine. Built once into the cache, whole or not
 * at all; `finish` is run in it by a shell as the last step. Nobody may write to it. Needs root and mmdebstrap, which fetches packages
 * side by side and takes half the time of debootstrap.
 */
export async function debianRoot(packages: readonly string[], finish: string): Promise<string> {
  const suite = suiteOfThisMachine();
  const recipe = createHash('sha256')
    .update(JSON.stringify([suite, packages, finish, NOT_NEEDED]))
    .digest('hex');
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'rotunda', 'debian-root');
  const root = join(cache, `${suite}-${recipe.slice(0, 12)}`);
  if (existsSync(root)) return root;
  mkdirSync(cache, { recursive: true });
  removeHalves(cache);
  const half = mkdtempSync(join(cache, HALF));
  try {
    const flags = ['--quiet', '--variant=essential', `--include=${packages.join(',')}`];
    const excluded = NOT_NEEDED.map(pattern => `--dpkgopt=path-exclude=${pattern}`);
    const bootstrap = [...flags, ...excluded, suite, half, ...mirrorOf(suite)];
    const lock = ['--wait', String(2 * BUILD_SECONDS), join(cache, '.lock')];
    const limit = ['timeout', '--kill-after=5', String(BUILD_SECONDS)];
    const shell = ['sh', '-euc', BUILD, 'sh', root, half, finish];
    await run('flock', [...lock, ...limit, ...shell, ...bootstrap], { maxBuffer: BUILD_OUTPUT_LIMIT });
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
  return root;
}

/** What builds left that were killed. */
function removeHalves(cache: string): void {
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    if (name.startsWith(HALF) && Date.now() - statSync(path).ctimeMs > OLD_MS)
      rmSync(path, { recursive: true, force: true });
  }
}

function suiteOfThisMachine(): string {
  const release = readFileSync('/etc/os-release', 'utf8');
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(release)?.[1];
  if (suite === undefined) throw new Error('expected VERSION_CODENAME in /etc/os-release, found none');
  return suite;
}

/** Where this machine gets its packages from; nothing: where mmdebstrap goes by itself. */
function mirrorOf(suite: string): string[] {
  const query = ['indextargets', '--format', '$(REPO_URI)', `Codename: ${suite}`, 'Component: main'];
  const [mirror = ''] = execFileSync('apt-get', query, { encoding: 'utf8' }).split('\n');
  return mirror === '' ? [] : [mirror];
}
