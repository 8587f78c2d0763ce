import { spawnSync } from 'node:child_process';
import { installPackages } from '../tools/debian.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';

export type Found = { readonly program: string } | { readonly missing: string };

/** promtool from the PATH, else from Debian's package, whose server is not started. */
export function findPromtool(): Found {
  if (works()) return { program: 'promtool' };
  try {
    installPackages('prometheus');
  } catch (error) {
    return {
      missing: `no promtool on the PATH; from Debian's package prometheus: ${(error as Error).message.split('\n', 1)[0]}`,
    };
  }
  return works() ? { program: 'promtool' } : { missing: "promtool of Debian's package prometheus does not run" };
}

function works(): boolean {
  return spawnSync('promtool', ['--version'], { timeout: PATIENCE_MS }).status === 0;
}
