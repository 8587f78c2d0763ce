/** `npm run cluster:build`: builds the programs of a real control plane, and the one with library-go's controllers, from their Go modules, once. */
import { BUILT_PROGRAMS, buildPrograms, findGo } from '../../src/local/real/built-programs.ts';
import { buildLibraryGo } from './library-go.ts';

if (findGo() === undefined) {
  console.log('Go was not found; the suites that need a real control plane will be skipped');
} else {
  try {
    await buildPrograms(BUILT_PROGRAMS, { onProgress: (program, text) => console.log(`${program}: ${text}`) });
    await buildLibraryGo(line => console.log(line));
  } catch (error) {
    console.error(`cannot build the control plane: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
