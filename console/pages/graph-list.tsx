import type { CertificateGraph, GraphEdge, GraphNode } from '../../src/cli/graph/model.ts';
import { StateLabel } from '../parts/label.tsx';

/** The trust graph in words: signers, what they signed, where they are trusted, who shows and verifies. */
export function GraphList({ graph }: { graph: CertificateGraph }) {
  const byId = new Map(graph.nodes.map(node => [node.id, node]));
  const out = (id: string, kind: GraphEdge['kind']) =>
    nodesOf(
      byId,
      graph.edges.filter(edge => edge.from === id && edge.kind === kind).map(({ to }) => to),
    );
  const into = (id: string, kind: GraphEdge['kind']) =>
    nodesOf(
      byId,
      graph.edges.filter(edge => edge.to === id && edge.kind === kind).map(({ from }) => from),
    );
  const signers = graph.nodes.filter(({ kind }) => kind === 'signer');
  const orphans = graph.nodes.filter(({ kind, id }) => kind === 'leaf' && out(id, 'issued-by').length === 0);
  const loose = graph.nodes.filter(({ kind, id }) => kind === 'bundle' && into(id, 'contained-in').length === 0);
  const leaf = (node: GraphNode) => (
    <li key={node.id}>
      <Name node={node} />
      <Names word="shown by" nodes={out(node.id, 'presented-by')} />
    </li>
  );
  const bundle = (node: GraphNode) => (
    <li key={node.id}>
      trusted in <Name node={node} />
      <Names word="verified with by" nodes={out(node.id, 'verified-with')} />
      <Names word="goes into" nodes={out(node.id, 'flow')} />
    </li>
  );
  return (
    <ul class="tree">
      {signers.map(signer => (
        <li key={signer.id}>
          <Name node={signer} />
          <ul>
            {out(signer.id, 'contained-in').map(bundle)}
            {into(signer.id, 'issued-by').map(node => (
              <li key={node.id}>
                signed <Name node={node} />
                <Names word="shown by" nodes={out(node.id, 'presented-by')} />
              </li>
            ))}
          </ul>
        </li>
      ))}
      {orphans.length > 0 && (
        <li>
          signed by somebody who is not here
          <ul>{orphans.map(leaf)}</ul>
        </li>
      )}
      {loose.length > 0 && (
        <li>
          bundles of others
          <ul>{loose.map(bundle)}</ul>
        </li>
      )}
    </ul>
  );
}

function nodesOf(byId: ReadonlyMap<string, GraphNode>, ids: readonly string[]): GraphNode[] {
  return [...new Set(ids)].flatMap(id => byId.get(id) ?? []);
}

function Name({ node }: { node: GraphNode }) {
  return (
    <>
      {node.kind === 'process' ? node.label : <a href={`#/certificates/${node.id}`}>{node.label}</a>}{' '}
      {node.state !== undefined && <StateLabel state={node.state} />} <span class="sub">{node.namespace}</span>
    </>
  );
}

function Names({ word, nodes }: { word: string; nodes: readonly GraphNode[] }) {
  if (nodes.length === 0) return undefined;
  return (
    <div class="sub">
      {word} {nodes.map(({ label }) => label).join(', ')}
    </div>
  );
}
