import type { CertificateGraph, GraphEdge, GraphNode } from './model.ts';

/** Where everything is drawn: four columns, in the order in which trust travels. Pure, so that the terminal's picture and the web page share it. */
export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly columns: readonly { readonly kind: GraphNode['kind']; readonly title: string; readonly x: number }[];
  readonly boxes: ReadonlyMap<string, Box>;
  readonly lines: readonly { readonly edge: GraphEdge; readonly d: string }[];
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const COLUMNS = [
  { kind: 'signer', title: 'signers' },
  { kind: 'bundle', title: 'bundles' },
  { kind: 'leaf', title: 'leaves' },
  { kind: 'process', title: 'processes' },
] as const;
const BOX = { width: 262, height: 26, gapX: 96, gapY: 12, margin: 24, top: 56 };
/** Characters that fit into a box. */
const LONGEST_LABEL = 40;
/** Each pass moves nodes towards those they are connected with; more than a few change nothing. */
const PASSES = 6;

export function layoutOf({ nodes, edges }: CertificateGraph): Layout {
  const rows = orderedColumns(nodes, edges);
  const xOf = (column: number) => BOX.margin + column * (BOX.width + BOX.gapX);
  const tallest = Math.max(1, ...rows.map(column => column.length));
  const boxes = new Map<string, Box>();
  rows.forEach((column, index) => {
    column.forEach((node, row) => {
      const y = BOX.top + row * (BOX.height + BOX.gapY);
      boxes.set(node.id, { x: xOf(index), y, width: BOX.width, height: BOX.height });
    });
  });
  return {
    width: BOX.margin * 2 + COLUMNS.length * BOX.width + (COLUMNS.length - 1) * BOX.gapX,
    height: BOX.top + tallest * (BOX.height + BOX.gapY) + BOX.margin,
    columns: COLUMNS.map((column, index) => ({ ...column, x: xOf(index) })),
    boxes,
    lines: edges.flatMap(edge => {
      const [from, to] = [boxes.get(edge.from), boxes.get(edge.to)];
      return from === undefined || to === undefined ? [] : [{ edge, d: curveOf(from, to) }];
    }),
  };
}

/** A name as it fits into its box. */
export function fitted(label: string): string {
  return label.length > LONGEST_LABEL ? `${label.slice(0, LONGEST_LABEL - 3)}...` : label;
}

/** Neighbours near each other: every node goes to the mean height of those it is connected with, pass after pass. */
function orderedColumns(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): GraphNode[][] {
  const columns = COLUMNS.map(({ kind }) => nodes.filter(node => node.kind === kind));
  const neighbours = new Map<string, string[]>();
  const connect = (a: string, b: string) => {
    const known = neighbours.get(a);
    if (known === undefined) neighbours.set(a, [b]);
    else known.push(b);
  };
  for (const { from, to } of edges) {
    connect(from, to);
    connect(to, from);
  }
  const height = new Map<string, number>();
  const note = (column: readonly GraphNode[]) => {
    column.forEach(({ id }, row) => height.set(id, (row + 0.5) / column.length));
  };
  columns.forEach(note);
  for (let pass = 0; pass < PASSES; pass++) {
    for (const column of columns) {
      const wanted = new Map(
        column.map(({ id }) => {
          const heights = (neighbours.get(id) ?? []).map(other => height.get(other) ?? 0.5);
          const mean = heights.reduce((sum, one) => sum + one, 0) / heights.length;
          // What is connected with nothing goes to the end.
          return [id, heights.length === 0 ? 2 : mean] as const;
        }),
      );
      column.sort((a, b) => (wanted.get(a.id) ?? 0) - (wanted.get(b.id) ?? 0) || (a.id < b.id ? -1 : 1));
      note(column);
    }
  }
  return columns;
}

function curveOf(from: Box, to: Box): string {
  const [y1, y2] = [from.y + from.height / 2, to.y + to.height / 2];
  if (from.x === to.x) {
    // Within a column the line leaves and comes back on the right.
    const [x, bend] = [from.x + from.width, from.x + from.width + BOX.gapX / 2];
    return `M${x} ${y1} C${bend} ${y1} ${bend} ${y2} ${x} ${y2}`;
  }
  const [x1, x2] = from.x < to.x ? [from.x + from.width, to.x] : [from.x, to.x + to.width];
  const bend = Math.round(((x2 - x1) * 2) / 3);
  return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
