import type { ListMeta } from 'kubernetes-types/meta/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { apiVersionOfKind, type Kind } from '../kinds/kind.ts';
import { type IncludeObject, printTable } from '../print/table.ts';
import { encodeWatchEvent } from '../protobuf/encode.ts';
import { bookmarkObject } from '../rest/bookmark.ts';
import type { Page } from '../rest/read.ts';
import { present, presentJson } from '../rest/view.ts';
import type { JsonObject } from '../schema/schema.ts';
import type { Entry } from '../store/entry.ts';
import type { Output } from './accept.ts';

/** How the objects of one request are shown. */
export interface View extends Output {
  readonly kind: Kind;
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
    const { kind, format, as, includeObject } = view;
    if (as === 'Table' && first) return line(type, json(table(view, [entry], undefined, true)));
    if (this.#entry !== entry) {
      this.#entry = entry;
      this.#lines.clear();
    }
    const shape = [type, format, as, includeObject, kind.group, kind.version].join(' ');
    const known = this.#lines.get(shape);
    if (known !== undefined) return known;
    const made = this.#make(view, type, entry);
    this.#lines.set(shape, made);
    return made;
  }

  #make(view: View, type: EventType, entry: Entry): Buffer {
    if (view.format === 'protobuf') return encodeWatchEvent(type, present(view.kind, entry) as JsonObject);
    if (view.as === 'Table') return line(type, json(table(view, [entry], undefined, false)));
    return line(type, encodeObject(view, entry));
  }
}

export function encodeBookmark(view: View, revision: number, initialEventsEnd: boolean): Buffer {
  const bookmark = bookmarkObject(view.kind, revision, initialEventsEnd);
  if (view.as !== 'Table') return encodeEvent(view, 'BOOKMARK', bookmark as JsonObject);
  const row = printTable({ columns: [], cells: () => [] }, [bookmark], {
    now: view.now(),
    includeObject: view.includeObject,
    withColumns: false,
  });
  return line('BOOKMARK', json(row));
}

export function encodeError(view: View, status: object): Buffer {
  return encodeEvent(view, 'ERROR', status as JsonObject);
}

function encodeEvent({ format }: View, type: string, object: JsonObject): Buffer {
  return format === 'protobuf' ? encodeWatchEvent(type, object) : line(type, json(object));
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
