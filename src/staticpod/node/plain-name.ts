/** The longest name a file system takes, in bytes, less what we put around it. */
const LONGEST_NAME = 200;

/** Whether a text is the name of one file, and not a path, a parent or something no file can be called (spec 30, T09). */
export function isPlainName(name: string): boolean {
  return (
    name !== '' &&
    name !== '.' &&
    name !== '..' &&
    !name.includes('/') &&
    !name.includes('\\') &&
    !name.includes('\0') &&
    Buffer.byteLength(name) <= LONGEST_NAME
  );
}

/** Whether a text can be the name of a directory of ours: those that begin with a dot are taken for what is under way. */
export function isObjectName(name: string): boolean {
  return isPlainName(name) && !name.startsWith('.');
}

export function assertPlainName(name: string, what: string): void {
  if (!isPlainName(name)) throw new Error(`expected ${what} to be a plain file name, found ${JSON.stringify(name)}`);
}

export function assertObjectName(name: string, what: string): void {
  if (!isObjectName(name)) {
    throw new Error(`expected ${what} to be a plain name without a leading dot, found ${JSON.stringify(name)}`);
  }
}
