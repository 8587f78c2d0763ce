/**
 * Kernel arguments out of a list or a command line, split at white space that is not inside of double quotes (spec 60, 8.9.1).
 * Both sides of a comparison go through here, so that an argument with blanks is found again (D-24).
 */
export function splitKernelArguments(entries: readonly string[]): string[] {
  return entries.flatMap(entry => entry.match(ARGUMENT) ?? []).map(argument => argument.replace(BLANKS_AROUND, ''));
}

/** Quoted parts may be anywhere in an argument; a quote that is never closed runs to the end. */
const ARGUMENT = /(?:[^\t\n\v\f\r "]|"[^"]*(?:"|$))+/g;
/** All blanks of Unicode, which do not split. */
const BLANK = '[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
const BLANKS_AROUND = new RegExp(`^${BLANK}+|${BLANK}+$`, 'g');
