/** `node src/cli/bundle.ts <folder>` makes what is shipped: the program in a few files that need no packages, and the console's page. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { bundlePage } from './console/bundle.ts';

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));
/** What runs in threads is a file of its own. */
const TWIN_LIFE = fileURLToPath(new URL('./twin/worker.ts', import.meta.url));
/** Parts of some packages ask for this. */
const REQUIRE =
  'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);';

/** Bundles the program into a folder and gives its path. */
export async function bundleProgram(outdir: string): Promise<string> {
  await build({
    entryPoints: { rotunda: MAIN, 'twin-life': TWIN_LIFE },
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    splitting: true,
    outdir,
    // A command reads less and answers sooner; names stay for the traces of errors.
    minifyWhitespace: true,
    minifySyntax: true,
    outExtension: { '.js': '.mjs' },
    banner: { js: REQUIRE },
    logLevel: 'warning',
  });
  return join(outdir, 'rotunda.mjs');
}

if (import.meta.main) {
  const folder = process.argv[2] ?? 'dist';
  await bundleProgram(folder);
  const page = join(folder, 'console');
  await mkdir(page, { recursive: true });
  for (const [name, content] of Object.entries(await bundlePage())) await writeFile(join(page, name), content);
}
