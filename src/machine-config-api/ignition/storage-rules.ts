import { posix } from 'node:path';
import { diskProblems, filesystemProblems, luksProblems, raidProblems } from './device-rules.ts';
import { type Problem, pathProblem } from './path-rules.ts';
import type { SpecLevel } from './spec-level.ts';
import type { IgnitionConfig, IgnitionFile, IgnitionLink, IgnitionNode } from './types.ts';

type Storage = NonNullable<IgnitionConfig['storage']>;

const HIGHEST_MODE = 0o7777;
/** Files that this project writes have no set-uid, set-gid or sticky bit (spec 50, RN-9). */
const HIGHEST_FILE_MODE = 0o777;

/** What is wrong below `storage`. */
export function* storageProblems(storage: Storage, level: SpecLevel): Generator<Problem> {
  const { files = [], directories = [], links = [] } = storage;
  const linkPaths = new Set(links.map(({ path }) => path));
  for (const [index, file] of files.entries()) {
    yield* nodeProblems(file, linkPaths, `storage.files[${index}]`);
    yield* fileProblems(file, `storage.files[${index}]`);
  }
  for (const [index, directory] of directories.entries()) {
    yield* nodeProblems(directory, linkPaths, `storage.directories[${index}]`);
    yield* modeProblems(directory.mode, HIGHEST_MODE, `storage.directories[${index}].mode`);
  }
  const directoryPaths = new Set(directories.map(({ path }) => path));
  for (const [index, link] of links.entries()) {
    yield* nodeProblems(link, linkPaths, `storage.links[${index}]`);
    yield* linkProblems(link, directoryPaths, level, `storage.links[${index}]`);
  }
  yield* diskProblems(storage);
  yield* filesystemProblems(storage, level);
  yield* raidProblems(storage);
  yield* luksProblems(storage, level);
}

function* nodeProblems(node: IgnitionNode, linkPaths: ReadonlySet<string>, field: string): Generator<Problem> {
  const problem = pathProblem(node.path);
  if (problem !== undefined) yield { field: `${field}.path`, message: problem };
  for (const owner of ['user', 'group'] as const) {
    const { id, name } = node[owner] ?? {};
    if (id !== undefined && name) yield { field: `${field}.${owner}`, message: 'has both an id and a name' };
  }
  for (let parent = posix.dirname(node.path); parent !== '/' && parent !== '.'; parent = posix.dirname(parent)) {
    if (linkPaths.has(parent)) yield { field, message: `lies behind the link ${parent} of the same document` };
  }
}

function* fileProblems(file: IgnitionFile, field: string): Generator<Problem> {
  yield* modeProblems(file.mode, HIGHEST_FILE_MODE, `${field}.mode`);
  if (file.overwrite === true && file.contents?.source === undefined) {
    yield { field: `${field}.overwrite`, message: 'overwrites with nothing: there is no contents.source' };
  }
}

function* modeProblems(mode: number | undefined, highest: number, field: string): Generator<Problem> {
  if (mode === undefined || (mode >= 0 && mode <= highest)) return;
  const isOwnRule = mode >= 0 && mode <= HIGHEST_MODE;
  yield { field, message: `0${mode.toString(8)} cannot exceed 0${highest.toString(8)} or be negative`, isOwnRule };
}

function* linkProblems(
  link: IgnitionLink,
  directories: ReadonlySet<string>,
  { isFromSpec2 }: SpecLevel,
  field: string,
): Generator<Problem> {
  if (!link.target) {
    if (!isFromSpec2) yield { field: `${field}.target`, message: 'is required' };
    return;
  }
  if (link.hard !== true) return;
  const target = link.target.startsWith('/') ? posix.normalize(link.target) : posix.join(link.path, link.target);
  if (directories.has(target)) yield { field, message: 'is a hard link to a directory' };
}
