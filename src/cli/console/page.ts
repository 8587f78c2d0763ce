import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

/** One file of the page. */
export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
  readonly etag: string;
}

/** The files of the page by their paths. */
export type Page = ReadonlyMap<string, PageFile>;

const FILES = [
  ['/', 'index.html', 'text/html; charset=utf-8'],
  ['/console.js', 'console.js', 'text/javascript; charset=utf-8'],
  ['/console.css', 'console.css', 'text/css; charset=utf-8'],
  ['/icon.svg', 'icon.svg', 'image/svg+xml'],
] as const;

/** The page: as built beside the program where it is shipped, else bundled from the sources of the checkout, once a process. */
export function loadPage(): Promise<Page> {
  loading ??= (import.meta.url.endsWith('.ts') ? bundled() : shipped()).then(pageOf);
  return loading;
}

let loading: Promise<Page> | undefined;

type Contents = Readonly<Record<string, Uint8Array>>;

async function shipped(): Promise<Contents> {
  const read = async (name: string) => [name, await readFile(new URL(`console/${name}`, import.meta.url))] as const;
  return Object.fromEntries(await Promise.all(FILES.map(([, name]) => read(name))));
}

async function bundled(): Promise<Contents> {
  // Not a literal, so that the bundler does not come into the bundle.
  const place = new URL('./bundle.ts', import.meta.url).href;
  const { bundlePage } = (await import(place)) as typeof import('./bundle.ts');
  return bundlePage();
}

function pageOf(contents: Contents): Page {
  return new Map(
    FILES.map(([path, name, type]) => {
      const body = Buffer.from(contents[name] ?? []);
      if (body.length === 0) throw new Error(`the page has no ${name}: run npm run build`);
      return [path, { type, body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` }];
    }),
  );
}
