/** Something the user can put right: printed as one line, without a stack; exit code 1 as for any failure (spec 70, 7 and 9.3). */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
