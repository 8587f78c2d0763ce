import { type Delivery, deliveriesOf, type TrustGraph, type Use } from './graph.ts';
import { type ObjectRef, objectText } from './object.ts';

/** What a change does at one place. */
export interface Effect {
  /** The objects the change goes through, from the one that changed to the one whose files change. */
  readonly path: readonly ObjectRef[];
  /**
   * `restart`: a new revision, the pods are replaced; `reload`: a running process takes it;
   * `file-only`: the files change, and nobody reads them before the next start or use.
   */
  readonly kind: EffectKind;
  readonly delivery: Delivery;
  /** The readers that take the change so. */
  readonly uses: readonly Use[];
}

export type EffectKind = 'restart' | 'reload' | 'file-only';

/** Longer ways from an object to a file do not exist; a table that has one is wrong. */
const LONGEST_PATH = 10;

/** What a change of the content of `object` does, everywhere, in the order in which it gets there (spec 20, section 3). */
export function effectOfChange(graph: TrustGraph, object: ObjectRef): Effect[] {
  const effects: Effect[] = [];
  const seen = new Set<string>([objectText(object)]);
  let reached: readonly (readonly ObjectRef[])[] = [[object]];
  for (let step = 0; reached.length > 0; step++) {
    if (step > LONGEST_PATH) throw new RangeError(`a change of ${objectText(object)} travels without end`);
    effects.push(...reached.flatMap(path => effectsAt(graph, path)));
    reached = reached.flatMap(path =>
      graph.flows.filter(({ from, to }) => isEnd(path, from) && isNew(seen, to)).map(({ to }) => [...path, to]),
    );
  }
  return effects;
}

/** The one word for several effects: a restart anywhere outweighs a reload, a reload outweighs files. */
export function verdictOf(effects: readonly Effect[]): EffectKind | 'none' {
  for (const kind of ['restart', 'reload', 'file-only'] as const) {
    if (effects.some(effect => effect.kind === kind)) return kind;
  }
  return 'none';
}

function effectsAt(graph: TrustGraph, path: readonly ObjectRef[]): Effect[] {
  const object = path.at(-1) as ObjectRef;
  return deliveriesOf(graph, object).map(delivery => {
    if (delivery.carrier === 'revision') return { path, kind: 'restart', delivery, uses: delivery.uses };
    const live = delivery.uses.filter(({ takes }) => takes === 'watch' || takes === 'per-handshake');
    return live.length > 0
      ? { path, kind: 'reload', delivery, uses: live }
      : { path, kind: 'file-only', delivery, uses: delivery.uses };
  });
}

function isEnd(path: readonly ObjectRef[], object: ObjectRef): boolean {
  return objectText(path.at(-1) as ObjectRef) === objectText(object);
}

function isNew(seen: Set<string>, object: ObjectRef): boolean {
  const text = objectText(object);
  if (seen.has(text)) return false;
  seen.add(text);
  return true;
}
