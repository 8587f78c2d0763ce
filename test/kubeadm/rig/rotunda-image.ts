import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleProgram } from '../../../src/cli/bundle.ts';
import { findExecutable, searchPath } from '../../../src/local/programs.ts';
import type { Rig } from './rig.ts';

/** Gives all nodes of a rig, and those that join later, an image of this checkout's program, as the Containerfile describes it. */
export async function addRotundaImage(rig: Rig, name: string): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-bundle-'));
  try {
    await bundleProgram(dir);
    // Its operators are nobody in particular.
    chmodSync(dir, 0o755);
    // The agent of a node calls what is there through chroot.
    const programs = [process.execPath, findExecutable('chroot', searchPath()) ?? '/usr/sbin/chroot'];
    await rig.addImage(name, {
      programs,
      folders: { '/opt/rotunda/dist': dir },
      entrypoint: ['/bin/node', '/opt/rotunda/dist/rotunda.mjs'],
    });
  } finally {
    rmSync(dir, { recursive: true });
  }
}
