import { posix } from 'node:path';

/** A place in a document and what is wrong with it. */
export interface Problem {
  readonly field: string;
  readonly message: string;
  /** Ignition would take it; we do not, from new documents. */
  readonly isOwnRule?: boolean;
}

/** Why a text is no path on a machine: absolute, and written in the shortest way, so that nothing leads elsewhere. */
export function pathProblem(path: string): string | undefined {
  if (path === '') return 'is required';
  if (!path.startsWith('/')) return `path not absolute: ${JSON.stringify(path)}`;
  if (path.includes('\0')) return 'contains a zero byte';
  return isClean(path) ? undefined : `${JSON.stringify(path)} is not clean: it has .., ., // or a slash at its end`;
}

function isClean(path: string): boolean {
  return posix.normalize(path) === path && (path === '/' || !path.endsWith('/'));
}
