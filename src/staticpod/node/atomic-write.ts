import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import { type Files, isMissingFile } from './files.ts';

/** A leftover older than this belongs to nobody any more (spec 30, 14.2.3). */
export const LEFTOVER_AGE_MS: number = 30 * 60_000;

/**
 * Replaces a file as a whole: whoever reads it, or comes after a crash, finds the old content or the new one, never less
 * (spec 30, T20). The temporary file begins with a dot, which a kubelet does not look at.
 */
export async function writeFileAtomically(
  files: Files,
  path: string,
  content: Uint8Array,
  mode: number,
): Promise<void> {
  const directory = dirname(path);
  const temporary = join(directory, `.${basename(path)}.tmp-${uniqueSuffix()}`);
  try {
    await files.createFile(temporary, content, mode);
    await files.rename(temporary, path);
  } catch (error) {
    await files.remove(temporary).catch(() => {});
    throw error;
  }
  await files.flushDirectory(directory);
}

/** The same, but only when the content or the permissions differ. True when something was written. */
export async function ensureFile(files: Files, path: string, content: Uint8Array, mode: number): Promise<boolean> {
  if ((await files.info(path))?.mode === mode && (await readIfThere(files, path))?.equals(content)) return false;
  await writeFileAtomically(files, path, content, mode);
  return true;
}

/** The content of a file; undefined when there is none. */
export async function readIfThere(files: Files, path: string): Promise<Buffer | undefined> {
  try {
    return await files.readFile(path);
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
}

/** Points a symbolic link to something else, in one step. */
export async function replaceLink(files: Files, target: string, path: string): Promise<void> {
  const directory = dirname(path);
  const temporary = join(directory, `.${basename(path)}.tmp-${uniqueSuffix()}`);
  try {
    await files.link(target, temporary);
    await files.rename(temporary, path);
  } catch (error) {
    await files.remove(temporary).catch(() => {});
    throw error;
  }
  await files.flushDirectory(directory);
}

/** Removes temporary files in a directory that a crash left behind long enough ago. */
export async function removeOldTemporaries(files: Files, directory: string, now: Date): Promise<void> {
  for (const { name } of await files.list(directory)) {
    if (!/^\..+\.tmp-[0-9a-f]+$/.test(name)) continue;
    const path = join(directory, name);
    const info = await files.info(path);
    // A link that leads nowhere has no age; nobody who is at work leaves one for longer than a moment.
    if (info === undefined || now.getTime() - info.modifiedAt.getTime() > LEFTOVER_AGE_MS) await files.remove(path);
  }
}

/** Letters that no other writer uses. */
export function uniqueSuffix(): string {
  return randomBytes(6).toString('hex');
}
