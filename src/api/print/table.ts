import type { ListMeta } from 'kubernetes-types/meta/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';

export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** `name` marks the column that identifies the object. */
  readonly format: string;
  readonly description: string;
  /** 0 is always shown, 1 with `-o wide`. */
  readonly priority: number;
}

export type Cell = string | number | boolean | null;

export interface RowCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** How the objects of one kind look as rows. */
export interface Printer {
  readonly columns: readonly Column[];
  /** One cell for each column, wide ones included. */
  cells(object: KubeObject, now: Date): readonly Cell[];
  /** `Completed` lets clients hide rows that are over. */
  conditions?(object: KubeObject): readonly RowCondition[];
}

/** What each row carries besides its cells: the query parameter `includeObject`. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

export interface Table {
  readonly kind: 'Table';
  readonly apiVersion: 'meta.k8s.io/v1';
  readonly metadata: ListMeta;
  readonly columnDefinitions: readonly Column[];
  readonly rows: readonly TableRow[];
}

export interface TableRow {
  readonly cells: readonly Cell[];
  readonly conditions?: readonly RowCondition[];
  readonly object?: KubeObject;
}

export interface TableOptions {
  readonly now: Date;
  readonly includeObject: IncludeObject;
  /** The metadata of the list; for a single object its resource version is taken. */
  readonly metadata?: ListMeta | undefined;
  /** Later events of a watch leave the columns out. */
  readonly withColumns?: boolean | undefined;
}

/** The table of a list's items, of one object, or of the object of a watch event. */
export function printTable(printer: Printer, objects: readonly KubeObject[], options: TableOptions): Table {
  const { now, includeObject, metadata = metadataOf(objects), withColumns = true } = options;
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: withColumns ? printer.columns : [],
    rows: objects.map(object => row(printer, object, now, includeObject)),
  };
}

function row(printer: Printer, object: KubeObject, now: Date, includeObject: IncludeObject): TableRow {
  const cells = printer.cells(object, now);
  const conditions = printer.conditions?.(object) ?? [];
  return {
    cells,
    ...(conditions.length === 0 ? {} : { conditions }),
    ...(includeObject === 'None' ? {} : { object: includeObject === 'Object' ? object : metadataObject(object) }),
  };
}

function metadataObject(object: KubeObject): KubeObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata ?? {} };
}

function metadataOf(objects: readonly KubeObject[]): ListMeta {
  const resourceVersion = objects.length === 1 ? objects[0]?.metadata?.resourceVersion : undefined;
  return resourceVersion === undefined ? {} : { resourceVersion };
}
