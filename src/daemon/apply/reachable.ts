import { type FileStat, HostError, type HostFiles } from '../../host/port.ts';

/** What is at a path. One below something that is no directory is not there; writing it will say why it cannot be. */
export async function statIfReachable(files: HostFiles, path: string): Promise<FileStat | undefined> {
  try {
    return await files.stat(path);
  } catch (error) {
    if (error instanceof HostError && error.code === 'not-a-directory') return undefined;
    throw error;
  }
}
