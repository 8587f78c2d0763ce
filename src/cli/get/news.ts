import type { Item } from './listings.ts';

/** What happened to an item, in the words of a watch. */
export interface ItemNews {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly item: Item;
}

/** Remembers what was shown last. */
export class ShownItems {
  readonly #shown = new Map<string, { readonly state: string; readonly item: Item }>();

  /** What is new since the last call. What only counts down is no news: the object behind a row has to have changed. */
  newsIn(items: readonly Item[]): ItemNews[] {
    const current = new Map(items.map(item => [idOf(item), item]));
    const gone = [...this.#shown].filter(([id]) => !current.has(id));
    for (const [id] of gone) this.#shown.delete(id);
    const fresh = [...current].flatMap(([id, item]): ItemNews[] => {
      const [before, state] = [this.#shown.get(id), JSON.stringify(item)];
      if (before?.state === state) return [];
      this.#shown.set(id, { state, item });
      return [{ type: before === undefined ? 'ADDED' : 'MODIFIED', item }];
    });
    return [...gone.map(([, { item }]): ItemNews => ({ type: 'DELETED', item })), ...fresh];
  }
}

function idOf({ metadata: { namespace = '', name } }: Item): string {
  return `${namespace}/${name}`;
}
