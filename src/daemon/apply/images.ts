import { posix } from 'node:path';
import type { Host, HostFiles } from '../../host/port.ts';
import { statIfReachable } from './reachable.ts';

/** Where things are kept as they were before an update, until it is over. */
export const IMAGES_DIRECTORY = '/etc/machine-config-daemon/rotunda-undo';

/** How a path was before an update: nothing there, or a copy of what was. */
export interface PathImage {
  readonly path: string;
  readonly copy: string | undefined;
}

/** Keeps what is at the paths. Directories and devices are not kept: nothing of ours replaces them. */
export async function takeImages({ files }: Host, paths: readonly string[], part: string): Promise<PathImage[]> {
  const images: PathImage[] = [];
  for (const path of new Set(paths)) {
    const kind = (await statIfReachable(files, path))?.kind;
    if (kind === undefined) images.push({ path, copy: undefined });
    if (kind !== 'file' && kind !== 'symlink') continue;
    const copy = posix.join(IMAGES_DIRECTORY, `${part}-${images.length}`);
    await files.copy(path, copy);
    images.push({ path, copy });
  }
  return images;
}

/**
 * Brings the paths back to what they were. A copy is moved into its place, which a full disk cannot prevent; one that is gone has
 * been brought back before, so this may be interrupted and repeated.
 */
export async function restoreImages({ files }: Host, images: readonly PathImage[]): Promise<void> {
  for (const { path, copy } of images.toReversed()) {
    if (copy === undefined) {
      if ((await statIfReachable(files, path)) !== undefined) await files.remove(path);
    } else if ((await files.stat(copy)) !== undefined) {
      if ((await statIfReachable(files, path))?.kind === 'directory') await removeEmptyDirectories(files, path);
      await moveBack(files, copy, path);
    }
  }
}

/** Directories that were made where a file had been; the files in them are gone by now. One that holds anything else stays. */
async function removeEmptyDirectories(files: HostFiles, path: string): Promise<void> {
  for (const name of (await files.list(path)) ?? []) await removeEmptyDirectories(files, posix.join(path, name));
  await files.remove(path);
}

async function moveBack(files: HostFiles, copy: string, path: string): Promise<void> {
  try {
    await files.rename(copy, path);
  } catch {
    // On another file system, or nothing may be moved over what is there.
    await files.copy(copy, path);
    await files.remove(copy);
  }
}
