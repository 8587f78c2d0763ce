import { AssertionError } from 'node:assert';

const MISTAKES = [TypeError, RangeError, ReferenceError, SyntaxError, AssertionError];

/** Whether what was thrown is a mistake in the program rather than a failure it foresaw: what other languages call a panic. */
export function isPanic(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  return MISTAKES.some(kind => error instanceof kind);
}
