import type { ListMeta } from 'kubernetes-types/meta/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { apiVersionOfKind, type Kind } from '../kinds/kind.ts';
import { type IncludeObject, printTable } from '../print/table.ts';
import { bookmarkObject } from '../rest/bookmark.ts';
import type { Page } from '../rest/read.ts';
import { present, presentJson } from '../rest/view.ts';
import type { Entry } from '../store/entry.ts';
import type { Output } from './accept.ts';

/** How the objects of one request are shown. */
export interface View {
  readonly kind: Kind;
  readonly as: Output['as'];
  readonly includeObject: IncludeObject;
  readonly now: () => Date;
}

/** One object as the client wants to see it. */
export function encodeObject(view: View, entry: Entry): Buffer {
  switch (view.as) {
    case undefined:
      return presentJson(view.kind, entry);
    case 'PartialObjectMetadata':
      return json(metadataOnly(present(view.kind, entry)));
    case 'Table':
      return json(table(view, [entry], undefined, true));
  }
}

/** A list. Objects that are shown as they are stored are copied, not printed again. */
export function encodeList(view: View, page: Page): Buffer {
  const metadata: ListMeta = {
    resourceVersion: String(page.revision),
    ...(page.continue === undefined ? {} : { continue: page.continue }),
    ...(page.remaining === undefined ? {} : { remainingItemCount: page.remaining }),
  };
  if (view.as === 'Table') return json(table(view, page.entries, metadata, true));
  const partial = view.as === 'PartialObjectMetadata';
  const head = partial
    ? { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1', metadata }
    : { kind: view.kind.listKind, apiVersion: apiVersionOfKind(view.kind), metadata };
  const parts: Buffer[] = [Buffer.from(`${JSON.stringify(head).slice(0, -1)},"items":[`)];
  for (const entry of page.entries) {
    if (parts.length > 1) parts.push(COMMA);
    parts.push(encodeObject(view, entry));
  }
  parts.push(END_OF_LIST);
  return Buffer.concat(parts);
}

const COMMA = Buffer.from(',');
const END_OF_LIST = Buffer.from(']}');

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/**
 * Lines of watches. A change is shown to all watches before the next one, so the lines of the last entry are kept: thousands
 * of watches may want the same one.
 */
export class EventEncoder {
  #entry: Entry | undefined;
  #lines = new Map<string, Buffer>();

  /** `first`: the first line of a table has its columns. */
  encode(view: View, type: EventType, entry: Entry, first: boolean): Buffer {
    const { kind, as, includeObject } = view;
    if (as === 'Table' && first) return line(type, json(table(view, [entry], undefined, true)));
    if (this.#entry !== entry) {
      this.#entry = entry;
      this.#lines.clear();
    }
    const shape = [type, as, includeObject, kind.group, kind.version].join(' ');
    const known = this.#lines.get(shape);
    if (known !== undefined) return known;
    const object = as === 'Table' ? json(table(view, [entry], undefined, false)) : encodeObject(view, entry);
    const made = line(type, object);
    this.#lines.set(shape, made);
    return made;
  }
}

export function encodeBookmark(view: View, revision: number, initialEventsEnd: boolean): Buffer {
  const bookmark = bookmarkObject(view.kind, revision, initialEventsEnd);
  if (view.as !== 'Table') return line('BOOKMARK', json(bookmark));
  const row = printTable({ columns: [], cells: () => [] }, [bookmark], {
    now: view.now(),
    includeObject: view.includeObject,
    withColumns: false,
  });
  return line('BOOKMARK', json(row));
}

export function encodeError(status: object): Buffer {
  return line('ERROR', json(status));
}

function line(type: string, object: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`{"type":"${type}","object":`), object, END_OF_LINE]);
}

const END_OF_LINE = Buffer.from('}\n');

function table(view: View, entries: readonly Entry[], metadata: ListMeta | undefined, withColumns: boolean): object {
  const { kind, includeObject } = view;
  const objects = entries.map(entry => present(kind, entry));
  return printTable(kind.printer, objects, { now: view.now(), includeObject, metadata, withColumns });
}

function metadataOnly({ metadata }: KubeObject): object {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}

function json(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}
