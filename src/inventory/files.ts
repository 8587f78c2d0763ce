import { type Dirent, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { InputError } from './input-error.ts';
import { type FileObject, isRecord, objectFrom } from './shape.ts';

/** Limits on what is read from a folder somebody points us at. */
const LARGEST_FILE_BYTES = 64 * 1024 * 1024;
const LARGEST_TOTAL_BYTES = 1024 * 1024 * 1024;
const MOST_FILES = 100_000;
const DEEPEST_FOLDER = 32;
const MOST_OBJECTS = 200_000;

export interface LoadedObjects {
  readonly objects: readonly FileObject[];
  /** Documents that are no objects, or of a wrong shape. */
  readonly others: number;
  readonly warnings: readonly string[];
}

/** Reads objects from files, folders (a must-gather too) and standard input (`-`). */
export function loadObjects(paths: readonly string[]): LoadedObjects {
  const found = { objects: [] as FileObject[], others: 0, warnings: [] as string[] };
  const budget = { bytes: LARGEST_TOTAL_BYTES };
  for (const path of paths) {
    const folder = path !== '-' && isFolder(path);
    for (const file of folder ? filesBelow(path) : [path]) {
      for (const document of readDocuments(file, budget, folder ? found.warnings : undefined)) {
        const object = objectFrom(document);
        if (typeof object === 'object') found.objects.push(object);
        else found.others++;
        if (typeof object === 'string') found.warnings.push(`${file === '-' ? 'standard input' : file}: ${object}`);
      }
      if (found.objects.length > MOST_OBJECTS) {
        throw new InputError(`${path} holds more than ${MOST_OBJECTS} objects`);
      }
    }
  }
  return found;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    throw new InputError(`cannot read ${path}: no such file or folder`);
  }
}

/** YAML and JSON files below a folder; links are not followed. */
function filesBelow(folder: string): string[] {
  const files: string[] = [];
  const visit = (path: string, depth: number) => {
    if (depth > DEEPEST_FOLDER) throw new InputError(`${path} lies more than ${DEEPEST_FOLDER} folders deep`);
    for (const entry of entriesOf(path)) {
      const child = join(path, entry.name);
      if (entry.isDirectory()) visit(child, depth + 1);
      else if (entry.isFile() && /\.(?:ya?ml|json)$/.test(entry.name)) files.push(child);
      if (files.length > MOST_FILES) throw new InputError(`${folder} holds more than ${MOST_FILES} files`);
    }
  };
  visit(folder, 0);
  return files;
}

function entriesOf(path: string): Dirent[] {
  return readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The documents in a file. A broken file named by hand is an error; one found in a folder is a warning. */
function readDocuments(file: string, budget: { bytes: number }, warnings: string[] | undefined): unknown[] {
  let text: string;
  try {
    const size = file === '-' ? 0 : statSync(file).size;
    if (size > LARGEST_FILE_BYTES) throw new Error(`${size} bytes, at most ${LARGEST_FILE_BYTES} are read`);
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
    if (text.length > LARGEST_FILE_BYTES) throw new Error(`more than ${LARGEST_FILE_BYTES} bytes`);
    const documents: unknown[] = text.trimStart().startsWith('{') ? [JSON.parse(text)] : loadAll(text);
    budget.bytes -= text.length;
    if (budget.bytes >= 0) return documents.flatMap(itemsOf);
  } catch (error) {
    const problem = `cannot read ${file === '-' ? 'standard input' : file}: ${withoutContent(error as Error)}`;
    if (warnings === undefined) throw new InputError(problem);
    warnings.push(problem);
    return [];
  }
  throw new InputError(`more than ${LARGEST_TOTAL_BYTES} bytes of YAML and JSON: point at a part of the folder`);
}

/** Parsers quote their input, which may hold a key: only what went wrong and where is repeated. */
function withoutContent(error: Error): string {
  const { reason, mark } = error as { reason?: string; mark?: { line?: number } };
  if (typeof reason === 'string') return mark?.line === undefined ? reason : `${reason} in line ${mark.line + 1}`;
  if (error instanceof SyntaxError)
    return `not valid JSON${/ at position \d+| \(line \d+[^)]*\)/.exec(error.message)?.[0] ?? ''}`;
  return error.message.split('\n', 1)[0] ?? '';
}

/** The objects of a List, also a nested one, or the object itself. Items of a typed list get their kind from it. */
function itemsOf(document: unknown): unknown[] {
  const { items, kind } = (document ?? {}) as { items?: unknown; kind?: unknown };
  if (!Array.isArray(items)) return [document];
  const [, itemKind] = typeof kind === 'string' ? (/^(.+)List$/.exec(kind) ?? []) : [];
  return items.flatMap((item: unknown) =>
    itemsOf(isRecord(item) && item.kind === undefined && itemKind ? { ...item, kind: itemKind } : item),
  );
}
