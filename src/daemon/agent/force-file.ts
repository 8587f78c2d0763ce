import type { HostFiles } from '../host.ts';

/** With it an administrator has everything applied again, whatever the disk looks like (spec 60, 5.6). */
export const FORCE_FILE = '/run/machine-config-daemon-force';

export async function hasForceFile(files: Pick<HostFiles, 'stat'>): Promise<boolean> {
  return (await files.stat(FORCE_FILE)) !== undefined;
}

/** It has served: what it asked for is on the disk. */
export async function removeForceFile(files: Pick<HostFiles, 'remove'>): Promise<void> {
  await files.remove(FORCE_FILE);
}
