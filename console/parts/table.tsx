import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

export interface Column<T> {
  readonly title: string;
  readonly cell: (item: T) => ComponentChildren;
  /** What it is sorted by; absent: it cannot be sorted. */
  readonly sort?: ((item: T) => string | number) | undefined;
}

export interface TableProps<T> {
  readonly caption: string;
  readonly items: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly id: (item: T) => string;
  /** The title of the column it is sorted by at first. */
  readonly sortedBy?: string | undefined;
  readonly empty: string;
}

/** More rows than these come when they are asked for. */
const PAGE = 100;

/** A table that can be sorted; on a narrow screen each row is a little card. */
export function Table<T>({ caption, items, columns, id, sortedBy, empty }: TableProps<T>) {
  const [order, setOrder] = useState({ title: sortedBy, isDescending: false });
  const [shown, setShown] = useState(PAGE);
  if (items.length === 0) return <p class="empty">{empty}</p>;
  const by = columns.find(({ title }) => title === order.title)?.sort;
  const sorted =
    by === undefined ? items : items.toSorted((a, b) => compare(by(a), by(b)) * (order.isDescending ? -1 : 1));
  const turn = (title: string) =>
    setOrder(last => ({ title, isDescending: last.title === title ? !last.isDescending : false }));
  return (
    <>
      {/* The roles are said again because a narrow screen lays rows out as blocks, which would take them away. */}
      <table class="table" role="table" aria-label={caption}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ title, sort }) => (
              <th
                key={title}
                scope="col"
                role="columnheader"
                {...(sort === undefined ? {} : { 'aria-sort': sortWord(order.title === title, order.isDescending) })}
              >
                {sort === undefined ? (
                  title
                ) : (
                  <button type="button" class="sort" onClick={() => turn(title)}>
                    {title}
                    <span aria-hidden="true">{order.title === title ? (order.isDescending ? ' ▾' : ' ▴') : ' ↕'}</span>
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {sorted.slice(0, shown).map(item => (
            <tr key={id(item)} role="row">
              {columns.map(({ title, cell }) => (
                <td key={title} role="cell" data-title={title}>
                  <div>{cell(item)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {sorted.length > shown && (
        <button type="button" onClick={() => setShown(shown + PAGE)}>
          Show more ({sorted.length - shown} left)
        </button>
      )}
    </>
  );
}

function sortWord(isSorted: boolean, isDescending: boolean): 'ascending' | 'descending' | 'none' {
  return isSorted ? (isDescending ? 'descending' : 'ascending') : 'none';
}

function compare(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
