import { createHash } from 'node:crypto';
import { linkTarget } from '../../host/link-target.ts';
import type { FileOwner, HostFiles } from '../../host/port.ts';

/** A file as it was read. */
export interface FileText {
  /** As the layout calls it. */
  readonly path: string;
  /** Where it is, links followed: what is written in its place is written there. */
  readonly real: string;
  readonly text: string;
  readonly mode: number;
  readonly owner: FileOwner;
  readonly modifiedAt: Date;
}

/** A certificate, key, kubeconfig or manifest larger than this is none. */
const LARGEST_FILE_BYTES = 1024 * 1024;

/** Something on the node that is not as it has to be, so that nothing may be written; for people. It never has contents of files. */
export class NodeFault extends Error {
  override readonly name = 'NodeFault';
}

/** Reads a file; undefined where there is none. Throws `NodeFault` for what is no readable file. */
export async function readFileText(files: HostFiles, path: string): Promise<FileText | undefined> {
  try {
    const content = await files.read(path, LARGEST_FILE_BYTES);
    if (content === undefined) {
      const target = await files.readLink(path);
      if (target !== undefined) throw new NodeFault(`${path} is a link to ${target}, and nothing is there`);
      return undefined;
    }
    const text = content.toString('utf8');
    if (!Buffer.from(text).equals(content)) throw new NodeFault(`${path}: expected UTF-8 text, found other bytes`);
    const real = await linkTarget(files, path);
    const [stat, modifiedAt] = [await files.stat(real), await files.modifiedAt(real)];
    if (stat?.kind !== 'file' || modifiedAt === undefined) throw new NodeFault(`${path} leads to no file`);
    const { mode, uid, gid } = stat;
    return { path, real, text, mode, owner: { uid, gid }, modifiedAt };
  } catch (error) {
    if (error instanceof NodeFault) throw error;
    const message = error instanceof Error ? error.message : String(error);
    // It names the path as well.
    throw new NodeFault(`${path} cannot be read: ${message.replace(`"${path}"`, '').replace(/^:? /, '')}`);
  }
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
