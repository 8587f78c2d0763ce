import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Files, systemFiles } from './files.ts';
import type { TakeLock } from './writers-lock.ts';

/** The process died here. */
export class Crash extends Error {
  override readonly name = 'Crash';
}

/** A file system below a directory of its own that goes away with the test. */
export async function temporaryFiles(t: TestContext): Promise<{ files: Files; root: string }> {
  // Flushing to memory is free, and crashes are acted anyway.
  const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
  const root = await mkdtemp(join(base, 'rotunda-node-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  return { files: systemFiles(root), root };
}

/** How far the last step of a dying process gets. */
export type CrashMoment = 'before' | 'halfway' | 'after';

/** The same files in the hands of a process that dies at its step number `at`; nothing it does afterwards counts. */
export function crashingFiles(files: Files, at: number, moment: CrashMoment): Files {
  let steps = 0;
  let isDead = false;
  const alive = () => {
    if (isDead) throw new Crash('this process is dead');
  };
  const step = async (whole: () => Promise<void>, half: () => Promise<void> = whole): Promise<void> => {
    alive();
    if (++steps !== at) return whole();
    isDead = true;
    if (moment === 'halfway') await half();
    if (moment === 'after') await whole();
    throw new Crash(`crashed ${moment} step ${at}`);
  };
  const reading = <T>(read: () => Promise<T>): Promise<T> => {
    alive();
    return read();
  };
  return {
    readFile: async path => reading(() => files.readFile(path)),
    list: async path => reading(() => files.list(path)),
    info: async path => reading(() => files.info(path)),
    linkTarget: async path => reading(() => files.linkTarget(path)),
    makeDirectory: path => step(() => files.makeDirectory(path)),
    createFile: (path, content, mode) =>
      step(
        () => files.createFile(path, content, mode),
        () => files.createFile(path, content.subarray(0, content.length / 2), mode),
      ),
    link: (target, path) => step(() => files.link(target, path)),
    rename: (from, to) => step(() => files.rename(from, to)),
    remove: path =>
      step(
        () => files.remove(path),
        async () => {
          const [first] = await files.list(path).catch(() => []);
          if (first !== undefined) await files.remove(join(path, first.name));
        },
      ),
    flushDirectory: path => step(() => files.flushDirectory(path)),
  };
}

/** The same files, on which one kind of step fails once, the way a full disk makes it fail. */
export function failingFiles(files: Files, fails: (step: keyof Files, path: string) => boolean): Files {
  const guard =
    <A extends [string, ...unknown[]], R>(name: keyof Files, work: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      const path = name === 'link' || name === 'rename' ? (args[1] as string) : args[0];
      if (fails(name, path))
        throw Object.assign(new Error(`ENOSPC: no space left on device, ${name}`), { code: 'ENOSPC' });
      return work(...args);
    };
  return {
    ...files,
    makeDirectory: guard('makeDirectory', files.makeDirectory),
    createFile: guard('createFile', files.createFile),
    link: guard('link', files.link),
    rename: guard('rename', files.rename),
    flushDirectory: guard('flushDirectory', files.flushDirectory),
  };
}

/** The lock where nobody else writes. */
export const freeLock: TakeLock = async () => ({ release: () => {} });

/** Everything readable below a path by name, hidden entries and unfinished work left out, links followed. */
export async function visibleTree(files: Files, path: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const { name } of await files.list(path)) {
    if (name.startsWith('.')) continue;
    const child = join(path, name);
    const info = await files.info(child);
    if (info?.kind === 'directory') {
      for (const [key, value] of Object.entries(await visibleTree(files, child))) found[`${name}/${key}`] = value;
    } else if (info?.kind === 'file') {
      found[name] = `${info.mode.toString(8)} ${(await files.readFile(child)).toString()}`;
    }
  }
  return found;
}
