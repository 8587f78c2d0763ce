import { dump } from 'js-yaml';
import { printTable, visible } from '../table.ts';
import { parseCustomColumns, printCustomColumns } from './custom-columns.ts';
import type { OutputFormat } from './format.ts';
import { evaluateJsonPath, parseJsonPath } from './jsonpath.ts';

/** A column of a table; those marked `wide` appear with `-o wide` only. */
export interface Column<T> {
  readonly header: string;
  readonly isWide?: boolean | undefined;
  cell(item: T): string;
}

/** A kind of thing that commands list. */
export interface Listing<T> {
  readonly kind: string;
  readonly columns: readonly Column<T>[];
  /** `secret/ns/name`-like text for `-o name`. */
  name(item: T): string;
}

export const API_VERSION = 'rotunda.dev/v1';

/** What a document for machines looks like: the item itself when one name was asked for, else a list. */
export function documentOf<T extends object>(
  { kind }: Listing<T>,
  items: readonly T[],
  isSingle: boolean,
  more: object = {},
): object {
  const typed = items.map(item => ({ apiVersion: API_VERSION, kind, ...item }));
  if (isSingle && typed[0] !== undefined) return typed[0];
  return { apiVersion: API_VERSION, kind: `${kind}List`, ...more, items: typed };
}

/** Prints items the way kubectl does. */
export function printItems<T extends object>(
  listing: Listing<T>,
  items: readonly T[],
  format: OutputFormat,
  options: {
    readonly isSingle?: boolean;
    readonly withHeader?: boolean;
    readonly hide?: readonly string[];
    /** Said of the whole list, in documents for machines. */
    readonly more?: object;
  } = {},
): string {
  const { isSingle = false, withHeader = true, hide = [], more } = options;
  switch (format.kind) {
    case 'json':
    case 'yaml':
    case 'jsonpath':
    case 'custom-columns':
      return printDocument(documentOf(listing, items, isSingle, more), format, withHeader);
    case 'name':
      return items.map(item => `${visible(listing.name(item))}\n`).join('');
    default: {
      if (items.length === 0) return '';
      const columns = listing.columns.filter(
        ({ isWide = false, header }) => (format.kind === 'wide' || !isWide) && !hide.includes(header),
      );
      const header = columns.map(column => column.header);
      const text = printTable(
        header,
        items.map(item => columns.map(column => column.cell(item) || '<none>')),
      );
      return withHeader ? text : text.slice(text.indexOf('\n') + 1);
    }
  }
}

/** One document for machines. */
export function printDocument(document: object | readonly object[], format: OutputFormat, withHeader = true): string {
  // Through JSON first: dates become texts, and what is undefined disappears.
  const plain = () => JSON.parse(JSON.stringify(document)) as object;
  switch (format.kind) {
    case 'yaml':
      return dump(plain(), { lineWidth: -1, noRefs: true });
    case 'jsonpath':
      return evaluateJsonPath(parseJsonPath(format.template), plain());
    case 'custom-columns':
      return printCustomColumns(format.template, plain(), withHeader);
    default:
      return `${JSON.stringify(document, undefined, 2)}\n`;
  }
}

/** A template that is wrong is refused before anything is asked or done. */
export function refuseBadTemplate(format: OutputFormat): void {
  if (format.kind === 'jsonpath') parseJsonPath(format.template);
  if (format.kind === 'custom-columns') parseCustomColumns(format.template);
}
