import type { Host } from '../../host/port.ts';

const STATE = '/etc/machine-config-daemon';

/** Where the file is kept that the operating system shipped (spec 60, 8.2.1). */
export function originalOf(path: string): string {
  return `${STATE}/orig${path}.mcdorig`;
}

/** The stamp that says: the operating system shipped nothing here. */
export function noOriginalStampOf(path: string): string {
  return `${STATE}/noorig${path}.mcdnoorig`;
}

/**
 * Sees to it that what the operating system shipped at a path can be brought back, before the path is written. The first backup
 * is never replaced, and a path with a stamp holds our own content by now. `source` is the shipped file, if it lies elsewhere.
 */
export async function keepOriginal(host: Host, path: string, source = path): Promise<void> {
  const { files } = host;
  const [original, stamp] = [originalOf(path), noOriginalStampOf(path)];
  if ((await files.stat(stamp)) !== undefined) return;
  const hasOriginal = (await files.stat(original)) !== undefined;
  if (await isOsContent(host, path)) {
    if (!hasOriginal) await files.copy(source, original);
    return;
  }
  if (hasOriginal) await files.remove(original);
  await files.write(stamp, Buffer.alloc(0), { mode: 0o644 });
}

/** Whether a file is there that came with the operating system; without a package database nobody knows, which counts as no. */
export async function isOsContent({ files, packages }: Host, path: string): Promise<boolean> {
  if (packages === undefined || (await files.stat(path)) === undefined) return false;
  if (await packages.owns(path)) return true;
  return path.startsWith('/etc/') && (await files.stat(`/usr${path}`)) !== undefined;
}

/** What becomes of a path that left the config: what was shipped comes back, anything else goes (spec 60, 8.4.2). */
export type Removal = 'restore' | 'delete';

/** Decided once for an update: half way through it, the disk no longer tells. */
export async function decideRemoval(host: Host, path: string, isRestoredAlways: boolean): Promise<Removal> {
  const { files } = host;
  if ((await files.stat(noOriginalStampOf(path))) !== undefined) return 'delete';
  if ((await files.stat(originalOf(path))) === undefined) return 'delete';
  // Nobody can say whose a file is that is gone; the backup speaks for it.
  const isGone = (await files.stat(path)) === undefined;
  return isRestoredAlways || isGone || (await isOsContent(host, path)) ? 'restore' : 'delete';
}

/** Takes away a path, with what was remembered about it. False when it was gone already. May be repeated. */
export async function removePath({ files }: Host, path: string, removal: Removal): Promise<boolean> {
  const original = originalOf(path);
  if (removal === 'restore') {
    if ((await files.stat(original)) === undefined) return false;
    await files.copy(original, path);
    await files.remove(original);
    return true;
  }
  for (const remembered of [noOriginalStampOf(path), original]) {
    if ((await files.stat(remembered)) !== undefined) await files.remove(remembered);
  }
  // A directory is none of ours, or one that was made for another file of the config.
  const kind = (await files.stat(path))?.kind;
  if (kind === undefined || kind === 'directory') return false;
  await files.remove(path);
  return true;
}
