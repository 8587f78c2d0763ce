import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './manifests.ts';

export const OPERATIONS = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');

/** The document without what stands in code blocks. */
const PROSE = OPERATIONS.replace(/^```[\s\S]*?^```$/gm, '');

/** What a link can point to, made of headings as GitHub makes it. */
export function headingAnchors(): Set<string> {
  const headings = [...PROSE.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map(heading =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Commands in `sh` blocks, one a line, continued lines joined, comments left out. */
export function shellLines(): string[] {
  return [...OPERATIONS.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .flatMap(([, block = '']) => block.replaceAll('\\\n', ' ').split('\n'))
    .map(line => line.replace(/(^|\s)#.*$/, '').trim())
    .filter(line => line !== '');
}
