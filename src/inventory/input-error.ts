/** A file or folder that somebody pointed us at cannot be taken as it is. */
export class InputError extends Error {
  override readonly name = 'InputError';
}
