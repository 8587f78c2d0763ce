/** Something the user can put right: printed as one line, exit code 2, no stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
