/** Bundles the page: for shipping beforehand, from a checkout when the server starts. */
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const SOURCES = fileURLToPath(new URL('../../../console/', import.meta.url));

/** The files of the page by their names. */
export async function bundlePage(): Promise<Record<string, Uint8Array>> {
  const { outputFiles } = await build({
    entryPoints: { console: join(SOURCES, 'main.tsx'), style: join(SOURCES, 'style/console.css') },
    outdir: SOURCES,
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: ['es2022', 'chrome111', 'firefox115', 'safari16.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'silent',
  });
  const made = Object.fromEntries(outputFiles.map(({ path, contents }) => [basename(path), contents]));
  return {
    'index.html': await readFile(join(SOURCES, 'index.html')),
    'icon.svg': await readFile(join(SOURCES, 'icon.svg')),
    'console.js': made['console.js'] as Uint8Array,
    'console.css': made['style.css'] as Uint8Array,
  };
}
