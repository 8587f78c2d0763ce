/** `npm run cluster:build`: builds the programs of a real control plane from their Go modules, once. */
import { BUILT_PROGRAMS, buildPrograms, findGo } from '../../src/local/real/built-programs.ts';

if (findGo() === undefined) {
  console.log('Go was not found; the suites that need a real control plane will be skipped');
} else {
  const onProgress = (program: string, text: string) => console.log(`${program}: ${text}`);
  await buildPrograms(BUILT_PROGRAMS, { onProgress }).catch((error: Error) => {
    console.error(`cannot build the control plane: ${error.message}`);
    process.exitCode = 1;
  });
}
