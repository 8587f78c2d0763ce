/** `npm run cluster:build`: builds the programs of a real control plane, and the one with library-go's controllers, from their Go modules, once. */
import { buildBinaries } from './binaries.ts';
import { buildLibraryGo } from './library-go.ts';

try {
  await buildBinaries(line => console.log(line));
  await buildLibraryGo(line => console.log(line));
} catch (error) {
  const { code, stderr, message } = error as Error & { code?: string; stderr?: string };
  if (code === 'ENOENT') console.log('Go was not found; the suites that need a real control plane will be skipped');
  else {
    console.error(`cannot build the control plane: ${stderr ?? message}`);
    process.exitCode = 1;
  }
}
