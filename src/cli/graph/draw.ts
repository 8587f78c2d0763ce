import { visible } from '../table.ts';
import { type Box, fitted, layoutOf } from './layout.ts';
import type { CertificateGraph, GraphEdge, GraphNode } from './model.ts';

/** Signers as headings, below each what it signed, where it is trusted, and who shows and verifies. */
export function drawText({ nodes, edges }: CertificateGraph): string {
  const byId = new Map(nodes.map(node => [node.id, node]));
  const name = (id: string) => visible(byId.get(id)?.namespace === undefined ? (byId.get(id)?.label ?? id) : id);
  const lines: string[] = [];
  const list = (title: string, ids: readonly string[], indent: string) => {
    if (ids.length > 0) lines.push(`${indent}${title}: ${[...new Set(ids)].map(name).join(', ')}`);
  };
  const out = (id: string, kind: GraphEdge['kind']) =>
    edges.filter(edge => edge.from === id && edge.kind === kind).map(({ to }) => to);
  const into = (id: string, kind: GraphEdge['kind']) =>
    edges.filter(edge => edge.to === id && edge.kind === kind).map(({ from }) => from);
  const leaf = (node: GraphNode, lead: string) => {
    lines.push(`  ${lead}${name(node.id)}${stateText(node)}`);
    list('shown by', out(node.id, 'presented-by'), '    ');
  };
  for (const signer of nodes.filter(({ kind }) => kind === 'signer')) {
    lines.push(`${name(signer.id)}${stateText(signer)}`);
    for (const bundle of out(signer.id, 'contained-in')) {
      lines.push(`  trusted in ${name(bundle)}`);
      list('verified with by', out(bundle, 'verified-with'), '    ');
      list('goes into', out(bundle, 'flow'), '    ');
    }
    for (const id of into(signer.id, 'issued-by')) leaf(byId.get(id) as GraphNode, 'signed ');
  }
  const orphans = nodes.filter(({ kind, id }) => kind === 'leaf' && out(id, 'issued-by').length === 0);
  if (orphans.length > 0) {
    lines.push('signed by somebody who is not here');
    for (const node of orphans) leaf(node, '');
  }
  const loose = nodes.filter(({ kind, id }) => kind === 'bundle' && into(id, 'contained-in').length === 0);
  for (const node of loose) {
    lines.push(`bundle ${name(node.id)}`);
    list('verified with by', out(node.id, 'verified-with'), '  ');
  }
  return `${lines.join('\n')}\n`;
}

function stateText({ state, expires }: GraphNode): string {
  const until = expires === undefined ? '' : `, until ${expires.slice(0, 10)}`;
  return state === undefined || state === 'Good' ? (until === '' ? '' : ` (${until.slice(2)})`) : ` (${state}${until})`;
}

const SHAPES = { signer: 'doubleoctagon', bundle: 'folder', leaf: 'note', process: 'box' } as const;

/** For graphviz. */
export function drawDot({ nodes, edges }: CertificateGraph): string {
  const quote = (text: string) => JSON.stringify(visible(text));
  const lines = nodes.map(
    node =>
      `  ${quote(node.id)} [shape=${SHAPES[node.kind]}, label=${quote(node.label)}${isBad(node) ? ', color=red' : ''}];`,
  );
  const links = edges.map(
    ({ from, to, kind, label }) =>
      `  ${quote(from)} -> ${quote(to)} [label=${quote(label === undefined || kind !== 'flow' ? kind : label)}];`,
  );
  return `digraph trust {\n  rankdir=LR;\n  node [fontname="sans-serif"];\n${[...lines, ...links].join('\n')}\n}\n`;
}

function isBad({ state }: GraphNode): boolean {
  return state !== undefined && state !== 'Good' && state !== 'Due';
}

const COLOURS = { signer: '#8a5a00', bundle: '#00617a', leaf: '#2f6b2f', process: '#55406e' } as const;
const EDGE_COLOURS = {
  'issued-by': '#2f6b2f',
  'contained-in': '#8a5a00',
  'presented-by': '#55406e',
  'verified-with': '#00617a',
  flow: '#888888',
} as const;

/** A picture of its own, in four columns, readable in light and dark. */
export function drawSvg(graph: CertificateGraph): string {
  const { width, height, columns, boxes, lines } = layoutOf(graph);
  const headings = columns.map(
    ({ kind, title, x }) => `<text class="heading" x="${x}" y="36" fill="${COLOURS[kind]}">${title}</text>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="trust graph">`,
    '<style>text{font:12px sans-serif}.heading{font-weight:bold;font-size:15px}rect{fill:#ffffff}path{fill:none;stroke-width:1.2;opacity:.55}.bad{stroke:#c9190b;stroke-width:2.5}</style>',
    `<rect x="0" y="0" width="${width}" height="${height}"/>`,
    ...headings,
    ...lines.map(({ edge, d }) => link(edge, d)),
    ...graph.nodes.map(node => box(node, boxes.get(node.id) as Box)),
    '</svg>\n',
  ].join('\n');
}

function link({ from, to, kind, label }: GraphEdge, d: string): string {
  const title = escapeXml(`${from} ${kind} ${to}${label === undefined ? '' : ` (${label})`}`);
  return `<path d="${d}" stroke="${EDGE_COLOURS[kind]}"><title>${title}</title></path>`;
}

function box(node: GraphNode, { x, y, width, height }: Box): string {
  const bad = isBad(node) ? ' class="bad"' : '';
  const title = escapeXml([node.id, node.state, node.expires].filter(Boolean).join(', '));
  return (
    `<g><title>${title}</title><rect${bad} x="${x}" y="${y}" width="${width}" height="${height}" rx="4" stroke="${COLOURS[node.kind]}"/>` +
    `<text x="${x + 8}" y="${y + 17}" fill="${COLOURS[node.kind]}">${escapeXml(fitted(node.label))}</text></g>`
  );
}

function escapeXml(text: string): string {
  return visible(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
