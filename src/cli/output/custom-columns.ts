import { printTable } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import { jsonPathValues, parseJsonPath, type Template, textOf } from './jsonpath.ts';

interface CustomColumn {
  readonly header: string;
  readonly path: Template;
}

/** Reads `HEADER:path,HEADER:path` as kubectl does; throws `UsageError` saying which part is wrong. */
export function parseCustomColumns(text: string): CustomColumn[] {
  return text.split(',').map(part => {
    const [, header, path] = /^([^:]+):(.+)$/s.exec(part) ?? [];
    if (header === undefined || path === undefined) {
      throw new UsageError(`-o custom-columns takes HEADER:path,HEADER:path, found "${part}"`);
    }
    return { header, path: parseJsonPath(path) };
  });
}

/** A row for each item of a list, or for the one object; what a path does not find is `<none>`. */
export function printCustomColumns(text: string, document: object, withHeader: boolean): string {
  const columns = parseCustomColumns(text);
  const items = Array.isArray(document) ? document : (document as { items?: unknown }).items;
  const rows = (Array.isArray(items) ? items : [document]).map((item: unknown) =>
    columns.map(({ path }) => jsonPathValues(path, item).map(textOf).join(',') || '<none>'),
  );
  const table = printTable(
    columns.map(({ header }) => header),
    rows,
  );
  return withHeader ? table : table.slice(table.indexOf('\n') + 1);
}
