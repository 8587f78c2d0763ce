import type { Log } from '../../controller/log.ts';
import type { HostFiles } from '../../host/port.ts';

/** With it an administrator has everything applied again, whatever the disk looks like (spec 60, 5.6). */
export const FORCE_FILE = '/run/machine-config-daemon-force';

export async function hasForceFile(files: Pick<HostFiles, 'stat'>): Promise<boolean> {
  return (await files.stat(FORCE_FILE)) !== undefined;
}

/** It has served: what it asked for is on the disk. */
export async function removeForceFile(files: Pick<HostFiles, 'remove'>): Promise<void> {
  await files.remove(FORCE_FILE);
}

/** Tells when it may have come: a failing node need not wait for its next attempt then. */
export async function watchForceFile(
  files: Pick<HostFiles, 'watch'>,
  touched: () => void,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  try {
    await files.watch([FORCE_FILE], touched, signal);
  } catch (error) {
    log.warn({ err: error }, 'the force file cannot be watched; the next attempt finds it');
  }
}
