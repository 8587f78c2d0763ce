import { type Edge, type Holding, type NodeSet, placeOf, type Side, type TrustGraph } from '../trust/graph.ts';
import { isSameObject, type ObjectRef, objectText } from '../trust/object.ts';

/** One kind of process that checks what a signer signs, and how one can know what it has loaded. */
export interface Verifier {
  readonly process: string;
  readonly nodes: NodeSet | 'anywhere';
  readonly means: Means;
}

export type Means =
  /** A server names its CAs in a handshake. */
  | { readonly kind: 'ask'; readonly edge: Edge }
  /** It began with the copy of this bundle in the revision that runs on its node. */
  | { readonly kind: 'revision'; readonly bundle: ObjectRef }
  /** The agent of the node reports what is in these files, or what the process has loaded of them. */
  | { readonly kind: 'agent'; readonly files: readonly string[] | undefined }
  /** Its pod says with which bundle it was started. */
  | { readonly kind: 'pod'; readonly bundle: ObjectRef }
  /** Its kubelet brings it `kube-root-ca.crt` of its namespace, which it reads again by itself. */
  | { readonly kind: 'root-ca'; readonly withinMs: number; readonly bundle: ObjectRef }
  /** Nobody can tell: it is named, and not counted. */
  | { readonly kind: 'nobody'; readonly why: string };

/** Everybody who checks these leaves: processes that are known by the same means are one (spec 90, section 1). */
export function verifiersOf(graph: TrustGraph, leaves: readonly ObjectRef[]): Verifier[] {
  const shown = carriersOf(graph, leaves);
  const shows = ({ presents }: Side) =>
    typeof presents === 'object' && 'object' in presents && shown.some(object => isSameObject(object, presents.object));
  const found = new Map<string, Verifier>();
  const add = ({ process, nodes }: Side, means: Means) => {
    const id = `${nodes} ${idOf(means, process)}`;
    const known = found.get(id);
    const processes = new Set([...(known?.process.split(', ') ?? []), process]);
    found.set(id, { process: [...processes].join(', '), nodes, means: joined(known?.means, means) });
  };
  for (const edge of graph.edges) {
    const { client, server } = edge;
    if (shows(client) && server.verifiesWith !== undefined)
      add(server, server.nodes === 'anywhere' ? nobody('where it listens is not known') : { kind: 'ask', edge });
    if (shows(server) && client.verifiesWith !== undefined) add(client, meansOf(graph, client, client.verifiesWith));
  }
  return [...found.values()];
}

function idOf(means: Means, process: string): string {
  if (means.kind === 'revision') return `revision ${objectText(means.bundle)}`;
  return `${means.kind} ${process}`;
}

/** All files of a process count. */
function joined(known: Means | undefined, means: Means): Means {
  if (known?.kind !== 'agent' || means.kind !== 'agent' || known.files === undefined || means.files === undefined)
    return means;
  return { kind: 'agent', files: [...new Set([...known.files, ...means.files])] };
}

/** How one can know what a client has loaded. */
function meansOf(graph: TrustGraph, client: Side, held: Holding): Means {
  if (client.nodes === 'anywhere') return nobody('it may be anywhere');
  const { object, elsewhere } = held;
  if (elsewhere !== undefined) {
    if (elsewhere.seenBy === 'agent') return { kind: 'agent', files: undefined };
    if (elsewhere.rereads !== undefined)
      return { kind: 'root-ca', withinMs: elsewhere.rereads.withinMs, bundle: object };
    return elsewhere.seenBy === 'pod' ? { kind: 'pod', bundle: object } : nobody(`${elsewhere.by} brings it its CAs`);
  }
  const place = placeOf(graph, client, held);
  if (place?.delivery === undefined) return nobody('nobody delivers its CAs');
  if (place.delivery.carrier === 'revision') return { kind: 'revision', bundle: object };
  return { kind: 'agent', files: place.files };
}

function nobody(why: string): Means {
  return { kind: 'nobody', why };
}

/** The objects that a leaf is in: its own Secret, its copies, and what carries it inside. */
export function carriersOf({ flows }: TrustGraph, leaves: readonly ObjectRef[]): ObjectRef[] {
  const reached = new Map(leaves.map(leaf => [objectText(leaf), leaf]));
  for (const object of reached.values()) {
    for (const { from, to, kind } of flows) {
      if ((kind === 'copied' || kind === 'embedded') && isSameObject(from, object)) reached.set(objectText(to), to);
    }
  }
  return [...reached.values()];
}
