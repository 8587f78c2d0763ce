import { posix } from 'node:path';
import type { HostFiles } from './port.ts';

/** As many links as the kernel follows. */
const MOST_LINKS = 40;

/** Where a path leads when every link is followed; the path itself where there is none. A circle ends somewhere in it. */
export async function linkTarget(files: Pick<HostFiles, 'readLink'>, path: string): Promise<string> {
  let here = path;
  for (let links = 0; links < MOST_LINKS; links++) {
    const target = await files.readLink(here);
    if (target === undefined) break;
    here = posix.resolve(posix.dirname(here), target);
  }
  return here;
}

/** Whether a unit's path leads to /dev/null, which is how systemd masks units. */
export async function isMask(files: Pick<HostFiles, 'readLink'>, path: string): Promise<boolean> {
  return (await linkTarget(files, path)) === MASK;
}

export const MASK = '/dev/null';
