import { type Edge, type Holding, type NodeSet, placeOf, type Side, type TrustGraph } from '../trust/graph.ts';
import { isSameObject, type ObjectRef, objectText } from '../trust/object.ts';
import { carriersOf } from './verifiers.ts';

/** One kind of process that shows what a signer signs, and how one can know what it shows. */
export interface Presenter {
  readonly process: string;
  readonly nodes: NodeSet | 'anywhere';
  /** What holds the certificate. */
  readonly object: ObjectRef;
  readonly means: Sight;
}

export type Sight =
  /** A server shows it in a handshake. */
  | { readonly kind: 'look'; readonly edge: Edge }
  /** The agent of the node reports of whom the certificate in these files is. */
  | { readonly kind: 'agent'; readonly files: readonly string[] }
  /** Nobody can tell: it is named, and not counted. */
  | { readonly kind: 'nobody'; readonly why: string };

/** Everybody who shows these leaves (spec 90, section 1): a process is one for each object that it shows. */
export function presentersOf(graph: TrustGraph, leaves: readonly ObjectRef[]): Presenter[] {
  const carriers = carriersOf(graph, leaves);
  const found = new Map<string, Presenter>();
  const add = ({ process, nodes, presents }: Side, meansOf: (held: Holding) => Sight) => {
    if (typeof presents !== 'object' || !('object' in presents)) return;
    const { object } = presents;
    if (!carriers.some(carrier => isSameObject(carrier, object))) return;
    const id = `${process} ${nodes} ${objectText(object)}`;
    found.set(id, { process, nodes, object, means: joined(found.get(id)?.means, meansOf(presents)) });
  };
  for (const edge of graph.edges) {
    const { client, server } = edge;
    add(client, held => sightOf(graph, client, held));
    add(server, () => (server.nodes === 'anywhere' ? nobody('where it listens is not known') : { kind: 'look', edge }));
  }
  return [...found.values()];
}

/** All files of a process count. */
function joined(known: Sight | undefined, means: Sight): Sight {
  if (known?.kind !== 'agent' || means.kind !== 'agent') return means;
  return { kind: 'agent', files: [...new Set([...known.files, ...means.files])] };
}

/** How one can know what a client shows. */
function sightOf(graph: TrustGraph, client: Side, held: Holding): Sight {
  if (client.nodes === 'anywhere') return nobody('it may be anywhere');
  if (held.elsewhere !== undefined) return nobody(`${held.elsewhere.by} brings it its certificate`);
  const place = placeOf(graph, client, held);
  // Who reads at its start only may show another one than the file has by now.
  if (place === undefined || place.takes === 'restart') return nobody('nobody sees what it began with');
  return { kind: 'agent', files: place.files.filter(file => !file.endsWith('.key')) };
}

function nobody(why: string): Sight {
  return { kind: 'nobody', why };
}
