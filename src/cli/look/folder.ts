import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { UsageError } from '../usage-error.ts';

/** Limits on what is read from a folder somebody points us at. */
const LARGEST_FILE_BYTES = 1024 * 1024;
const LARGEST_TOTAL_BYTES = 64 * 1024 * 1024;
const MOST_FILES = 10_000;
const DEEPEST_FOLDER = 16;

/** One file, read once whatever its names. Paths are relative to the folder, with slashes. */
export interface ReadFile {
  /** The names it has in the folder: its own, and those of links to it. */
  readonly paths: readonly string[];
  /** Absent: it could not be read, is larger than any certificate, or beyond the limits. */
  readonly text?: string | undefined;
  readonly problem?: string | undefined;
}

export interface ReadFolder {
  /** Otherwise it is one file. */
  readonly isFolder: boolean;
  readonly files: readonly ReadFile[];
  /** Links that are not followed and folders that are not looked into, each with why. */
  readonly links: readonly { readonly path: string; readonly problem: string }[];
  /** Beyond the limits: so many files were not looked at. */
  readonly passedOver: number;
}

/** Whether a path is one file of certificates or a kubeconfig, and none of objects. */
export function isCertificateFile(path: string): boolean {
  return (
    /\.(?:crt|pem|cer|cert|conf|kubeconfig)$/i.test(path) &&
    statSync(path, { throwIfNoEntry: false })?.isFile() === true
  );
}

/** Reads every file below a folder, or the one file given. Links are followed inside the folder only. */
export function readFolder(given: string): ReadFolder {
  const start = realPath(given);
  const isFolder = statSync(start).isDirectory();
  const root = isFolder ? start : dirname(start);
  const found = new Map<string, string[]>();
  const links: { path: string; problem: string }[] = [];
  const passed = { files: 0 };
  const add = (real: string, path: string) => {
    const names = found.get(real);
    if (names === undefined && found.size >= MOST_FILES) passed.files++;
    else found.set(real, [...(names ?? []), path]);
  };
  const visit = (folder: string, depth: number) => {
    if (depth > DEEPEST_FOLDER) {
      const problem = `lies more than ${DEEPEST_FOLDER} folders deep: not looked into`;
      links.push({ path: slashed(relative(root, folder)), problem });
      return;
    }
    for (const entry of entriesOf(folder, links, root)) {
      const path = join(folder, entry.name);
      const name = slashed(relative(root, path));
      if (entry.isDirectory()) visit(path, depth + 1);
      else if (entry.isFile()) add(path, name);
      else if (entry.isSymbolicLink()) {
        const target = targetOf(path, root);
        if (typeof target === 'string') add(target, name);
        else if (target.problem !== undefined) links.push({ path: name, problem: target.problem });
      }
    }
  };
  if (isFolder) visit(start, 0);
  else add(start, basename(given));
  const budget = { bytes: LARGEST_TOTAL_BYTES };
  const files = [...found].map(([real, paths]) => ({ paths: paths.sort(), ...readBounded(real, budget) }));
  passed.files += files.filter(({ text, problem }) => text === undefined && problem === undefined).length;
  return { isFolder, files, links, passedOver: passed.files };
}

function realPath(given: string): string {
  try {
    return realpathSync(given);
  } catch (error) {
    throw new UsageError(`cannot read ${given}: ${reasonOf(error)}`);
  }
}

/** A folder that may not be read is told, and what is beside it is read all the same. */
function entriesOf(folder: string, links: { path: string; problem: string }[], root: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if (folder === root) throw new UsageError(`cannot read ${folder}: ${reasonOf(error)}`);
    links.push({ path: slashed(relative(root, folder)), problem: `the folder cannot be read: ${reasonOf(error)}` });
    return [];
  }
}

/** What a link leads to, as long as that is a file in the folder; folders in it are visited by their own name. */
function targetOf(link: string, root: string): string | { readonly problem?: string } {
  let real: string;
  try {
    real = realpathSync(link);
  } catch (error) {
    return { problem: `a link to something that is not there: ${reasonOf(error)}` };
  }
  if (real !== root && !real.startsWith(root === sep ? sep : root + sep)) {
    return { problem: 'a link that leads out of the folder: not followed' };
  }
  return lstatSync(real).isFile() ? real : {};
}

function readBounded(path: string, budget: { bytes: number }): { text?: string; problem?: string } {
  let file: number;
  try {
    // Neither a link nor a pipe that somebody puts there in the meantime holds us up.
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    return { problem: `cannot be read: ${reasonOf(error)}` };
  }
  try {
    const { size } = fstatSync(file);
    if (size > LARGEST_FILE_BYTES) return { problem: `has ${size} bytes: at most ${LARGEST_FILE_BYTES} are read` };
    if (size > budget.bytes) return {};
    budget.bytes -= size;
    const buffer = Buffer.alloc(size);
    const length = size === 0 ? 0 : readSync(file, buffer, 0, size, 0);
    return { text: buffer.toString('utf8', 0, length) };
  } catch (error) {
    return { problem: `cannot be read: ${reasonOf(error)}` };
  } finally {
    closeSync(file);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'links that go round in circles',
};

function reasonOf(error: unknown): string {
  const { code = 'unknown error' } = error as NodeJS.ErrnoException;
  return REASONS[code] ?? code;
}

function slashed(path: string): string {
  return path.split(sep).join('/');
}
