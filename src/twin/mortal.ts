import type { Files } from '../staticpod/node/files.ts';

/** Files of a process that may be dead: the dead write nothing. */
export function mortal(files: Files, signal: AbortSignal): Files {
  const entries = Object.entries(files).map(([name, work]) => [
    name,
    async (...args: never[]) => {
      signal.throwIfAborted();
      return (work as (...args: never[]) => Promise<unknown>)(...args);
    },
  ]);
  return Object.fromEntries(entries) as Files;
}
