import type { FileKind } from '../../host/port.ts';

const LETTERS: Readonly<Record<FileKind, string>> = { file: '-', directory: 'd', symlink: 'L', other: '?' };

/** Kind and permissions as people know them from `ls`, then in decimal and octal: `-rw-r--r--/420/0644` (spec 60, 11.1.6). */
export function modeText(kind: FileKind, mode: number): string {
  const bits = 'rwxrwxrwx'
    .split('')
    .map((letter, index) => ((mode >> (8 - index)) & 1 ? letter : '-'))
    .join('');
  const special = `${mode & 0o4000 ? 'u' : ''}${mode & 0o2000 ? 'g' : ''}${mode & 0o1000 ? 't' : ''}`;
  return `${special}${LETTERS[kind]}${bits}/${mode}/0${mode.toString(8)}`;
}
