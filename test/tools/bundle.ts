import { join } from 'node:path';
import { build } from 'esbuild';

const MAIN = new URL('../../src/cli/main.ts', import.meta.url).pathname;
/** Parts of some packages ask for this. */
const REQUIRE =
  'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);';

/** The program as `npm run build` makes it, in a folder of its own; gives its path. */
export async function bundleProgram(outdir: string): Promise<string> {
  await build({
    entryPoints: [MAIN],
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    splitting: true,
    outdir,
    entryNames: 'rotunda',
    outExtension: { '.js': '.mjs' },
    banner: { js: REQUIRE },
    logLevel: 'error',
  });
  return join(outdir, 'rotunda.mjs');
}
