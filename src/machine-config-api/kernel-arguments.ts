/**
 * Kernel arguments out of a list or a command line, split at white space that is not inside of double quotes (spec 60, 8.9.1).
 * Both sides of a comparison go through here, so that an argument with blanks is found again (D-24).
 */
export function splitKernelArguments(entries: readonly string[]): string[] {
  return entries.flatMap(entry => entry.match(ARGUMENT) ?? []);
}

/** Quoted parts may be anywhere in an argument; a quote that is never closed runs to the end. */
const ARGUMENT = /(?:[^\s"]|"[^"]*(?:"|$))+/g;
