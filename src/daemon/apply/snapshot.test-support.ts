import { posix } from 'node:path';
import type { HostFiles } from '../../host/port.ts';

/** Every file and link of a host with content, mode and owner: what must be equal when two hosts are in the same state. */
export async function snapshot(files: HostFiles, directory = '/'): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of (await files.list(directory)) ?? []) {
    const path = posix.join(directory, name);
    const stat = await files.stat(path);
    if (stat?.kind === 'directory') Object.assign(found, await snapshot(files, path));
    else if (stat?.kind === 'symlink') found[path] = `-> ${await files.readLink(path)}`;
    else if (stat !== undefined) {
      const content = stat.kind === 'file' ? (await files.read(path))?.toString('base64') : stat.kind;
      found[path] = `${stat.mode.toString(8)} ${stat.uid}:${stat.gid} ${content}`;
    }
  }
  return found;
}
