import { execFile } from 'node:child_process';
import { mkdirSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installPackages } from './debian.ts';
import { PATIENCE_MS } from './eventually.ts';
import { despiteNetworkTrouble } from './network.ts';

const run = promisify(execFile);
export type Found = { readonly program: string } | { readonly missing: string };

/** kubectl from the PATH, else built from its Go module into a cache, else from Debian's packages. */
export async function findKubectl(): Promise<Found> {
  if (await works('kubectl')) return { program: 'kubectl' };
  const built = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'rotunda', 'tools', 'kubectl');
  if (await works(built)) return { program: built };
  const problems: string[] = ['none on the PATH'];
  for (const [how, attempt] of [
    ['built from its Go module', () => build(built)],
    ["from Debian's package kubernetes-client", fromDebian],
  ] as const) {
    try {
      const program = await attempt();
      if (await works(program)) return { program };
      problems.push(`${how}: it does not run`);
    } catch (error) {
      problems.push(`${how}: ${(error as Error).message.split('\n', 1)[0]}`);
    }
  }
  return { missing: `no kubectl: ${problems.join('; ')}` };
}

async function works(program: string): Promise<boolean> {
  try {
    await run(program, ['version', '--client'], { timeout: PATIENCE_MS });
    return true;
  } catch {
    return false;
  }
}

/** Takes about three minutes on two cores when nothing is cached. */
async function build(target: string): Promise<string> {
  mkdirSync(join(target, '..'), { recursive: true });
  const half = `${target}.${process.pid}`;
  const cwd = join(import.meta.dirname, 'kubectl');
  const words = ['build', '-trimpath', '-o', half, '.'];
  await despiteNetworkTrouble(() => run('go', words, { cwd, timeout: PATIENCE_MS, maxBuffer: 1 << 24 }));
  renameSync(half, target);
  return target;
}

async function fromDebian(): Promise<string> {
  installPackages('kubernetes-client');
  return 'kubectl';
}
