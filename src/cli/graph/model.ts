import type { CertificateState, Inventory } from '../../inventory/model.ts';
import type { Holding, Side, TrustGraph } from '../../trust/graph.ts';
import { isSameObject, type ObjectRef, objectText } from '../../trust/object.ts';

/** The four kinds of nodes and of edges (spec 70, 5.5). */
export interface CertificateGraph {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

export interface GraphNode {
  readonly id: string;
  readonly kind: 'signer' | 'bundle' | 'leaf' | 'process';
  readonly label: string;
  readonly namespace?: string | undefined;
  readonly state?: CertificateState | undefined;
  readonly expires?: string | undefined;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  /** `flow`: a bundle is made from another one. */
  readonly kind: 'issued-by' | 'contained-in' | 'presented-by' | 'verified-with' | 'flow';
  readonly label?: string | undefined;
}

/** Puts what the objects show (who signed, who holds) and what the tables say (who shows, who verifies) together. */
export function certificateGraph(inventory: Inventory, trust: TrustGraph): CertificateGraph {
  const nodes = new Map<string, GraphNode>();
  const edges = new Map<string, GraphEdge>();
  const add = (edge: GraphEdge) => edges.set(`${edge.from} ${edge.kind} ${edge.to}`, edge);
  for (const { metadata, role, state, certificate } of inventory.certificates) {
    const ref: ObjectRef = { kind: 'Secret', namespace: metadata.namespace ?? '', name: metadata.name };
    const kind = role === 'signer' || certificate?.isCA ? 'signer' : 'leaf';
    nodes.set(objectText(ref), nodeOf(ref, kind, state, certificate?.notAfter));
  }
  for (const { metadata, state, certificates } of inventory.bundles) {
    // The API's own CA in every namespace is not part of what we keep.
    if (metadata.name === 'kube-root-ca.crt') continue;
    const ref: ObjectRef = { kind: 'ConfigMap', namespace: metadata.namespace ?? '', name: metadata.name };
    nodes.set(objectText(ref), nodeOf(ref, 'bundle', state, undefined));
    for (const signer of inventory.certificates) {
      if (!signer.certificate?.isCA || !certificates.some(({ sha256 }) => sha256 === signer.certificate?.sha256))
        continue;
      add({ from: textOf('Secret', signer.metadata), to: objectText(ref), kind: 'contained-in' });
    }
  }
  for (const { metadata, signedBy } of inventory.certificates) {
    const ref: ObjectRef = { kind: 'Secret', namespace: metadata.namespace ?? '', name: metadata.name };
    // What signs itself is a root; an intermediate is issued like a leaf.
    if (signedBy === undefined || isSameObject(signedBy, ref)) continue;
    add({ from: objectText(ref), to: objectText(signedBy), kind: 'issued-by' });
  }
  for (const { from, to, kind } of trust.flows) {
    if (kind !== 'combined' && kind !== 'copied') continue;
    if (nodes.has(objectText(from)) && nodes.has(objectText(to)))
      add({ from: objectText(from), to: objectText(to), kind: 'flow', label: kind });
  }
  for (const { name, client, server } of trust.edges) {
    for (const side of [client, server]) connect(side, name, nodes, add);
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

function connect(
  { process, presents, verifiesWith }: Side,
  name: string,
  nodes: Map<string, GraphNode>,
  add: (edge: GraphEdge) => void,
): void {
  const held = (holding: Side['presents']): Holding | undefined =>
    typeof holding === 'object' && 'object' in holding ? holding : undefined;
  const id = `process/${process}`;
  for (const [holding, kind] of [
    [held(presents), 'presented-by'],
    [verifiesWith, 'verified-with'],
  ] as const) {
    if (holding === undefined || !nodes.has(objectText(holding.object))) continue;
    if (!nodes.has(id)) nodes.set(id, { id, kind: 'process', label: process });
    add({ from: objectText(holding.object), to: id, kind, label: name });
  }
}

/** What is connected with these names, along any edges, at most so many steps away. */
export function around(graph: CertificateGraph, names: readonly string[], steps = 2): CertificateGraph | undefined {
  const isAsked = ({ id, label }: GraphNode) =>
    names.some(name => name === label || name === id || id.replace(/^([^/]+)\/[^/]+\//, '$1/') === name.toLowerCase());
  let found = new Set(graph.nodes.filter(isAsked).map(({ id }) => id));
  if (found.size === 0) return undefined;
  for (let step = 0; step < steps; step++) {
    const wider = new Set(found);
    for (const { from, to } of graph.edges) {
      // A process joins everything it touches; going on from there would bring the whole cluster.
      if (found.has(from) && !from.startsWith('process/')) wider.add(to);
      if (found.has(to) && !to.startsWith('process/')) wider.add(from);
    }
    found = wider;
  }
  return {
    nodes: graph.nodes.filter(({ id }) => found.has(id)),
    edges: graph.edges.filter(({ from, to }) => found.has(from) && found.has(to)),
  };
}

function nodeOf(
  ref: ObjectRef,
  kind: GraphNode['kind'],
  state: CertificateState,
  expires: string | undefined,
): GraphNode {
  return {
    id: objectText(ref),
    kind,
    label: ref.name,
    namespace: ref.namespace,
    state,
    ...(expires === undefined ? {} : { expires }),
  };
}

function textOf(
  kind: ObjectRef['kind'],
  { namespace = '', name }: { namespace?: string | undefined; name: string },
): string {
  return objectText({ kind, namespace, name });
}
