import { type Dirent, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { UsageError } from '../usage-error.ts';

/** Limits on what is read from a folder somebody points us at. */
const LARGEST_FILE_BYTES = 64 * 1024 * 1024;
const MOST_FILES = 100_000;
const DEEPEST_FOLDER = 32;
const MOST_OBJECTS = 200_000;

export interface LoadedObjects {
  readonly secrets: readonly Secret[];
  readonly configMaps: readonly ConfigMap[];
  /** Objects of other kinds and files that are not YAML or JSON: read past, not an error in a folder. */
  readonly others: number;
  readonly warnings: readonly string[];
}

/** Reads Secrets and ConfigMaps from files, folders (a must-gather too) and standard input (`-`). */
export function loadObjects(paths: readonly string[]): LoadedObjects {
  const found = { secrets: [] as Secret[], configMaps: [] as ConfigMap[], others: 0, warnings: [] as string[] };
  for (const path of paths) {
    const folder = path !== '-' && isFolder(path);
    for (const file of folder ? filesBelow(path) : [path]) {
      const objects = readObjects(file, folder ? found.warnings : undefined);
      for (const object of objects) sort(object, found);
    }
  }
  return found;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    throw new UsageError(`cannot read ${path}: no such file or folder`);
  }
}

/** YAML and JSON files below a folder; links are not followed. */
function filesBelow(folder: string): string[] {
  const files: string[] = [];
  const visit = (path: string, depth: number) => {
    if (depth > DEEPEST_FOLDER) throw new UsageError(`${path} lies more than ${DEEPEST_FOLDER} folders deep`);
    for (const entry of entriesOf(path)) {
      const child = join(path, entry.name);
      if (entry.isDirectory()) visit(child, depth + 1);
      else if (entry.isFile() && /\.(?:ya?ml|json)$/.test(entry.name)) files.push(child);
      if (files.length > MOST_FILES) throw new UsageError(`${folder} holds more than ${MOST_FILES} files`);
    }
  };
  visit(folder, 0);
  return files;
}

function entriesOf(path: string): Dirent[] {
  return readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The objects in a file. A broken file named by hand is an error; one found in a folder is a warning. */
function readObjects(file: string, warnings: string[] | undefined): unknown[] {
  try {
    const size = file === '-' ? 0 : statSync(file).size;
    if (size > LARGEST_FILE_BYTES) throw new Error(`${size} bytes, at most ${LARGEST_FILE_BYTES} are read`);
    const text = readFileSync(file === '-' ? 0 : file, 'utf8');
    if (text.length > LARGEST_FILE_BYTES) throw new Error(`more than ${LARGEST_FILE_BYTES} bytes`);
    const documents: unknown[] = text.trimStart().startsWith('{') ? [JSON.parse(text)] : loadAll(text);
    const objects = documents.flatMap(itemsOf);
    if (objects.length > MOST_OBJECTS) throw new Error(`more than ${MOST_OBJECTS} objects`);
    return objects;
  } catch (error) {
    const problem = `cannot read ${file === '-' ? 'standard input' : file}: ${firstLine((error as Error).message)}`;
    if (warnings === undefined) throw new UsageError(problem);
    warnings.push(problem);
    return [];
  }
}

/** The objects of a List, also a nested one, or the object itself. */
function itemsOf(document: unknown): unknown[] {
  const items = (document as { items?: unknown } | null)?.items;
  return Array.isArray(items) ? items.flatMap(itemsOf) : [document];
}

function sort(object: unknown, found: { secrets: Secret[]; configMaps: ConfigMap[]; others: number }): void {
  if (!isNamed(object)) found.others++;
  else if (object.kind === 'Secret') found.secrets.push(object as Secret);
  else if (object.kind === 'ConfigMap') found.configMaps.push(object as ConfigMap);
  else found.others++;
}

/** Only what we rely on: a kind, a name, and maps of texts where maps of texts belong. */
function isNamed(object: unknown): object is { kind: string; metadata: { name: string } } {
  const candidate = object as { kind?: unknown; metadata?: Record<string, unknown>; data?: unknown } | null;
  if (typeof candidate !== 'object' || candidate === null || typeof candidate.kind !== 'string') return false;
  const { name, namespace, annotations, labels } = candidate.metadata ?? {};
  if (typeof name !== 'string' || (namespace !== undefined && typeof namespace !== 'string')) return false;
  return [annotations, labels, candidate.data].every(isTextMap);
}

function isTextMap(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === 'object' && Object.values(value).every(text => typeof text === 'string');
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
