import { despiteNetworkTrouble, isNetworkTrouble } from '../tools/network.ts';
import { find, run } from './program.ts';

/** Builds a Go program of ours; why not, where its modules cannot be had. */
export async function buildGo(
  folder: string,
  program: string,
  flags: readonly string[] = [],
): Promise<string | undefined> {
  const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly -buildvcs=false' };
  try {
    const words = ['build', ...flags, '-o', program, '.'];
    await despiteNetworkTrouble(() => run(find('go') ?? 'go', words, { cwd: folder, env, timeoutMs: BUILD_MS }));
    return undefined;
  } catch (error) {
    if (!isNetworkTrouble(error)) throw error;
    return `the Go modules of ${folder} cannot be had here`;
  }
}

/** From nothing, on a machine that has other things to do. */
const BUILD_MS = 600_000;
