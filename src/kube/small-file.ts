import { open } from 'node:fs/promises';

/** No certificate, token or kubeconfig is larger. */
const LARGEST_FILE_BYTES = 1024 * 1024;

/** Reads a text file that is known to be small; refuses a large one instead of filling the memory. */
export async function readSmallFile(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    if (size > LARGEST_FILE_BYTES) {
      throw new Error(`${path} has ${size} bytes; expected at most ${LARGEST_FILE_BYTES}`);
    }
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}
