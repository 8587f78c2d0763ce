import { basename, dirname, join } from 'node:path';
import { LEFTOVER_AGE_MS, uniqueSuffix } from './atomic-write.ts';
import { type Files, LARGEST_FILE_BYTES } from './files.ts';
import { assertObjectName, assertPlainName } from './plain-name.ts';

/**
 * A directory that changes as a unit (spec 30, T09). `secrets/serving` is a symbolic link to `secrets/.serving.<writer>-<n>`, a
 * generation: a complete directory that never changes once the link names it. A new generation is staged beside the old one,
 * flushed, and takes its place by renaming one link, so certificate and key of a pair always change together, and what is
 * not in the new generation is gone with the old one. Kernels can exchange two directories, but only through a call that
 * Node does not have.
 *
 * The old generation is removed at once: a server that watches its certificate file sees the file go and reads again.
 */
export type DirectoryContent = ReadonlyMap<string, FileContent>;

export interface FileContent {
  readonly content: Uint8Array;
  readonly mode: number;
}

/** Who stages: two writers on one node never touch each other's unfinished work. */
export type Writer = 'installer' | 'cert-sync' | 'volume';

/** Puts `content` in the place of a directory. After an error before the swap the old content is there, complete. */
export async function replaceDirectory(
  files: Files,
  target: string,
  content: DirectoryContent,
  writer: Writer,
): Promise<void> {
  for (const name of content.keys()) assertPlainName(name, `a key of ${basename(target)}`);
  assertObjectName(basename(target), 'the name of an object');
  const parent = dirname(target);
  await files.makeDirectory(parent);
  await recover(files, target);
  const generation = `.${basename(target)}.${writer}-${uniqueSuffix()}`;
  const staged = join(parent, generation);
  const link = `${staged}.link`;
  let replaced: string | undefined;
  try {
    await stage(files, staged, content);
    await files.link(generation, link);
    replaced = await swap(files, link, target);
  } catch (error) {
    await files.remove(link).catch(() => {});
    await files.remove(staged).catch(() => {});
    throw error;
  }
  // The exchange has happened; what it replaced goes even when that could not be made durable.
  const flushed = await files.flushDirectory(parent).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (replaced !== undefined) await files.remove(replaced);
  if (flushed !== undefined) throw flushed;
}

/** Removes a directory as a unit: readers find all of it or nothing. */
export async function removeDirectory(files: Files, target: string, writer: Writer): Promise<void> {
  const parent = dirname(target);
  const linked = await files.linkTarget(target);
  if (linked !== undefined) {
    await files.remove(target);
    await files.flushDirectory(parent);
    if (isGeneration(linked)) await files.remove(join(parent, linked));
    return;
  }
  if ((await files.info(target)) === undefined) return;
  const aside = join(parent, `.${basename(target)}.${writer}-${uniqueSuffix()}`);
  await files.rename(target, aside);
  await files.flushDirectory(parent);
  await files.remove(aside);
}

/**
 * What is in a directory; undefined when there is none. What is no file, cannot be read, or is too large to be ours, is an entry
 * that equals nothing (spec 30, 11.5).
 */
export async function readDirectory(files: Files, target: string): Promise<DirectoryContent | undefined> {
  if ((await files.info(target))?.kind !== 'directory') return undefined;
  const found = new Map<string, FileContent>();
  for (const { name } of await files.list(target)) {
    found.set(name, await readEntry(files, join(target, name)).catch(() => NOT_OURS));
  }
  return found;
}

async function readEntry(files: Files, path: string): Promise<FileContent> {
  const info = await files.info(path);
  if (info?.kind !== 'file' || info.size > LARGEST_FILE_BYTES) return NOT_OURS;
  return { content: await files.readFile(path), mode: info.mode };
}

/**
 * Whether a directory says what it should: the same files with the same bytes, and none besides. Permissions count only
 * where a file is more open than it should be to those outside its owner, because two writers may choose differently
 * (spec 20, 5.1.10) and must not take turns.
 */
export function isUpToDate(found: DirectoryContent | undefined, wanted: DirectoryContent): boolean {
  if (found === undefined || found.size !== wanted.size) return false;
  for (const [name, { content, mode }] of wanted) {
    const file = found.get(name);
    if (file === undefined || file === NOT_OURS || Buffer.compare(file.content, content) !== 0) return false;
    if ((mode & 0o077) === 0 && (file.mode & 0o077) !== 0) return false;
  }
  return true;
}

/** Ends, for every directory below `parent`, a swap that a crash interrupted. Needs no API: a node that lost power does this first. */
export async function recoverDirectories(files: Files, parent: string): Promise<void> {
  for (const { name } of await files.list(parent)) {
    const match = ASIDE.exec(name);
    if (match !== null) await recover(files, join(parent, match[1] as string));
  }
}

/** Removes what `writer` left unfinished below `parent`: for its start, when no other process of that name is at work. */
export async function removeUnfinished(files: Files, parent: string, writer: Writer): Promise<void> {
  for (const leftover of await leftovers(files, parent)) {
    if (leftover.writer === writer) await files.remove(join(parent, leftover.name));
  }
}

/** Removes what anybody left unfinished below `parent` long enough ago. */
export async function removeOldUnfinished(files: Files, parent: string, now: Date): Promise<void> {
  for (const { name } of await leftovers(files, parent)) {
    const info = await files.info(join(parent, name));
    const isOld = info === undefined || now.getTime() - info.modifiedAt.getTime() > LEFTOVER_AGE_MS;
    if (isOld) await files.remove(join(parent, name));
  }
}

/** Generations and links below `parent` that no directory is made of. */
export async function leftovers(files: Files, parent: string): Promise<{ name: string; writer: string }[]> {
  const found: { name: string; writer: string }[] = [];
  for (const { name } of await files.list(parent)) {
    const match = GENERATION.exec(name);
    if (match === null) continue;
    const [, object = '', writer = ''] = match;
    if ((await files.linkTarget(join(parent, object))) !== name) found.push({ name, writer });
  }
  return found;
}

const NOT_OURS: FileContent = { content: new Uint8Array(), mode: 0 };
const GENERATION = /^\.(.+)\.([a-z-]+)-[0-9a-f]{12}(?:\.link)?$/;
const ASIDE = /^\.(.+)\.aside$/;

function isGeneration(name: string): boolean {
  return !name.includes('/') && GENERATION.test(name);
}

async function stage(files: Files, staged: string, content: DirectoryContent): Promise<void> {
  await files.makeDirectory(staged);
  for (const name of [...content.keys()].sort()) {
    const { content: bytes, mode } = content.get(name) as FileContent;
    await files.createFile(join(staged, name), bytes, mode);
  }
  await files.flushDirectory(staged);
}

/** Puts a link in the place of a directory and returns where the directory's old content is now. */
async function swap(files: Files, link: string, target: string): Promise<string | undefined> {
  const parent = dirname(target);
  const linked = await files.linkTarget(target);
  if (linked !== undefined || (await files.info(target)) === undefined) {
    await files.rename(link, target);
    return linked !== undefined && isGeneration(linked) ? join(parent, linked) : undefined;
  }
  // A plain directory, written by somebody else. A link cannot be renamed over it, so for a moment nothing is there; a crash
  // in that moment is mended by `recover`. This happens once for each object, when a node is taken over.
  const aside = asideOf(target);
  await files.rename(target, aside);
  try {
    await files.rename(link, target);
  } catch (error) {
    await files.rename(aside, target);
    throw error;
  }
  return aside;
}

async function recover(files: Files, target: string): Promise<void> {
  const aside = asideOf(target);
  if ((await files.info(aside)) === undefined) return;
  const isThere = (await files.linkTarget(target)) !== undefined || (await files.info(target)) !== undefined;
  if (isThere) await files.remove(aside);
  else await files.rename(aside, target);
}

function asideOf(target: string): string {
  return join(dirname(target), `.${basename(target)}.aside`);
}
