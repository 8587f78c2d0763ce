import type { FileOwner, Host, HostFiles } from '../../host/port.ts';
import { KUBELET_CA } from '../../machine-config-api/built-in-actions.ts';
import { contentsOf, DEFAULT_FILE_MODE } from '../../machine-config-api/ignition/contents.ts';
import type { IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import { keepOriginal } from './originals.ts';
import { statIfReachable } from './reachable.ts';

export interface FileOptions {
  /** The certificate writer has the kubelet's CA; not so on first boot and without a cluster (spec 60, 8.1). */
  readonly skipCertificateWrite: boolean;
}

/** What a file of the config is to be on disk. */
export interface WantedFile {
  readonly path: string;
  readonly content: Buffer;
  readonly mode: number;
  readonly owner: FileOwner;
}

/** Writes the files of a config that are not on disk as it says; gives the paths that were written (spec 60, 8.2). */
export async function writeFiles(host: Host, files: readonly IgnitionFile[], options: FileOptions): Promise<string[]> {
  const written: string[] = [];
  for (const file of files) {
    if (isLeftToCertificateWriter(file.path, options)) continue;
    const wanted = await wantedFile(host, file);
    await keepOriginal(host, wanted.path);
    if (await isInPlace(host.files, wanted)) continue;
    await host.files.write(wanted.path, wanted.content, {
      mode: wanted.mode,
      owner: wanted.owner,
      directoryMode: 0o755,
    });
    written.push(wanted.path);
  }
  return written;
}

/** Whether a file of the config is the certificate writer's. */
export function isLeftToCertificateWriter(path: string, { skipCertificateWrite }: FileOptions): boolean {
  return skipCertificateWrite && path === KUBELET_CA;
}

/** Content, mode and owner of a file of the config. */
export async function wantedFile(host: Host, file: IgnitionFile): Promise<WantedFile> {
  const { path, append = [], mode = DEFAULT_FILE_MODE } = file;
  if (append.length > 0) throw new Error(`file ${JSON.stringify(path)} has an append section. Append is not supported`);
  return { path, content: contentsOfFile(file), mode, owner: await ownerOf(host, file) };
}

function contentsOfFile({ path, contents }: IgnitionFile): Buffer {
  try {
    return contentsOf(contents);
  } catch (error) {
    throw new Error(`could not decode file ${JSON.stringify(path)}: ${(error as Error).message}`, { cause: error });
  }
}

async function ownerOf({ accounts }: Host, { path, user = {}, group = {} }: IgnitionFile): Promise<FileOwner> {
  const uid = user.id ?? (user.name ? await accounts.uid(user.name) : 0);
  const gid = group.id ?? (group.name ? await accounts.gid(group.name) : 0);
  if (uid !== undefined && gid !== undefined) return { uid, gid };
  const unknown = uid === undefined ? `user ${JSON.stringify(user.name)}` : `group ${JSON.stringify(group.name)}`;
  throw new Error(`failed to retrieve file ownership for file ${JSON.stringify(path)}: ${unknown} does not exist`);
}

/** Whether a path already is a regular file with this content, mode and owner. */
export async function isInPlace(files: HostFiles, { path, content, mode, owner }: WantedFile): Promise<boolean> {
  const stat = await statIfReachable(files, path);
  if (stat?.kind !== 'file' || stat.mode !== mode || stat.size !== content.length) return false;
  if (files.keepsOwners !== false && (stat.uid !== owner.uid || stat.gid !== owner.gid)) return false;
  return (await files.read(path, content.length))?.equals(content) ?? false;
}
