import { join } from 'node:path';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { DirectoryContent, FileContent } from './directory-swap.ts';
import { assertObjectName } from './plain-name.ts';

/** The two kinds of object that become directories, by the name of their parent directory. */
export type ObjectKind = 'secrets' | 'configmaps';

/** Who writes decides on the permissions, as upstream (spec 30, 10.3.6 and 11.9). */
export type FileWriter = 'installer' | 'cert-syncer';

/** The permissions of one file. A file of a Secret is never open to group or others. */
export function fileMode(writer: FileWriter, kind: ObjectKind, key: string): number {
  if (writer === 'cert-syncer') return kind === 'secrets' ? 0o600 : 0o644;
  if (!key.endsWith('.sh')) return 0o600;
  return kind === 'secrets' ? 0o700 : 0o755;
}

/** The directory of an object: `<base>/<secrets|configmaps>/<name>`. */
export function directoryOf(base: string, kind: ObjectKind, name: string): string {
  assertObjectName(name, `the name in ${kind}`);
  return join(base, kind, name);
}

/** The bytes of an object's `data` by key. `binaryData` is not written (spec 30, 10.3.4); no data is an empty directory (T11). */
export function dataOf(object: Secret | ConfigMap, kind: ObjectKind): Map<string, Buffer> {
  const values = Object.entries(object.data ?? {});
  const decode = kind === 'secrets' ? decodeBase64 : (text: string) => Buffer.from(text, 'utf8');
  return new Map(
    values.map(([key, value]) => [key, decode(value ?? '', `${kind} ${object.metadata?.name}, key ${key}`)]),
  );
}

/** The files an object becomes. `change` sees every value once, for tokens. */
export function filesOf(
  object: Secret | ConfigMap,
  kind: ObjectKind,
  writer: FileWriter,
  change: (content: Buffer) => Buffer = content => content,
): DirectoryContent {
  const files = new Map<string, FileContent>();
  for (const [key, content] of dataOf(object, kind)) {
    const mode = fileMode(writer, kind, key);
    if (kind === 'secrets' && (mode & 0o077) !== 0)
      throw new Error(`a file of a Secret must not get mode ${mode.toString(8)}`);
    files.set(key, { content: change(content), mode });
  }
  return files;
}

/** The lists of a flag or an operator: names in order, each required or optional. */
export interface NamedObject {
  readonly name: string;
  readonly optional?: boolean | undefined;
}

function decodeBase64(text: string, where: string): Buffer {
  const decoded = Buffer.from(text, 'base64');
  // Node skips what is not base64; the length tells.
  const significant = text.replaceAll(/[\s=]/g, '').length;
  if (Math.floor((significant * 3) / 4) !== decoded.length)
    throw new Error(`expected base64 in ${where}, found something else`);
  return decoded;
}
