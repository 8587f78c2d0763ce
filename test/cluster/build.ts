/** `npm run cluster:build`: builds the programs of a real control plane, and the one with library-go's controllers, from their Go modules, once. */
import { BUILT_PROGRAMS, buildPrograms, findGo } from '../../src/local/real/built-programs.ts';
import { despiteNetworkTrouble } from '../tools/network.ts';
import { buildLibraryGo } from './library-go.ts';

if (findGo() === undefined) {
  console.log('Go was not found; the suites that need a real control plane will be skipped');
} else {
  try {
    const onProgress = (program: string, text: string) => console.log(`${program}: ${text}`);
    await despiteNetworkTrouble(() => buildPrograms(BUILT_PROGRAMS, { onProgress }));
    await despiteNetworkTrouble(() => buildLibraryGo(line => console.log(line)));
  } catch (error) {
    console.error(`cannot build the control plane: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
