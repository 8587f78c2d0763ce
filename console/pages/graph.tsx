import { useMemo, useState } from 'preact/hooks';
import { isRefusing } from '../../src/cli/console/model.ts';
import { fitted, layoutOf } from '../../src/cli/graph/layout.ts';
import {
  around,
  type CertificateGraph,
  certificateGraph,
  type GraphEdge,
  type GraphNode,
} from '../../src/cli/graph/model.ts';
import { inventoryOf, itemsOf, type Model } from '../live.ts';
import { Card } from '../parts/card.tsx';
import { matches, Search, Select, Toolbar } from '../parts/filter.tsx';
import { StateLabel } from '../parts/label.tsx';
import { Table } from '../parts/table.tsx';
import { Relative, useNow } from '../parts/time.tsx';
import { HandshakeLabel } from './certificate-surroundings.tsx';
import { GraphList } from './graph-list.tsx';
import type { PageProps } from './page.ts';

/** Who signs, holds, shows and verifies what: as a drawing, as a list, and as handshakes that are really made. */
export function Graph({ model, route }: PageProps) {
  const [view, setView] = useState(route.query.get('view') ?? 'drawing');
  const [search, setSearch] = useState('');
  const [focus, setFocus] = useState(route.query.get('focus') ?? '');
  const { certificates, bundles } = model.sections;
  const whole = useMemo(() => certificateGraph(inventoryOf(model), model.trust), [certificates, bundles, model.trust]);
  const graph = useMemo(() => narrowed(whole, focus, search), [whole, focus, search]);
  return (
    <>
      <Toolbar>
        <Select
          label="View"
          value={view}
          onChange={setView}
          options={[
            ['drawing', 'Drawing'],
            ['list', 'List'],
            ['handshakes', 'Live handshakes'],
          ]}
        />
        {view !== 'handshakes' && <Search label="Search" value={search} onChange={setSearch} />}
        {focus !== '' && view !== 'handshakes' && (
          <button type="button" onClick={() => setFocus('')}>
            Show everything
          </button>
        )}
      </Toolbar>
      {view === 'drawing' && <Drawing model={model} graph={graph} focus={focus} onFocus={setFocus} />}
      {view === 'list' && (
        <Card title="Signers, and what hangs on them" wide>
          <GraphList graph={graph} />
        </Card>
      )}
      {view === 'handshakes' && <Handshakes model={model} />}
    </>
  );
}

function narrowed(graph: CertificateGraph, focus: string, search: string): CertificateGraph {
  const near = focus === '' ? graph : (around(graph, [focus]) ?? graph);
  if (search === '') return near;
  const found = near.nodes.filter(({ id }) => matches(search, id)).map(({ id }) => id);
  return found.length === 0 ? { nodes: [], edges: [] } : (around(near, found, 1) ?? near);
}

const ZOOMS = [0.5, 0.75, 1, 1.25, 1.5];

function Drawing({
  model,
  graph,
  focus,
  onFocus,
}: {
  model: Model;
  graph: CertificateGraph;
  focus: string;
  onFocus: (id: string) => void;
}) {
  const [zoom, setZoom] = useState(1);
  const [pointed, setPointed] = useState('');
  const layout = useMemo(() => layoutOf(graph), [graph]);
  const refused = refusedEdges(model);
  if (graph.nodes.length === 0) return <p class="empty">Nothing matches.</p>;
  const scale = ZOOMS[zoom] ?? 1;
  const isLit = ({ from, to }: GraphEdge) => pointed !== '' && (from === pointed || to === pointed);
  return (
    <>
      <p class="legend">
        <span class="key issued-by">issued by</span> <span class="key contained-in">contained in</span>{' '}
        <span class="key presented-by">presented by</span> <span class="key verified-with">verified with</span>{' '}
        <span class="key flow">copied or combined</span>
        <span class="zoom">
          <button type="button" disabled={zoom === 0} onClick={() => setZoom(zoom - 1)}>
            Smaller
          </button>{' '}
          <button type="button" disabled={zoom === ZOOMS.length - 1} onClick={() => setZoom(zoom + 1)}>
            Larger
          </button>
        </span>
      </p>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <div
        class="drawing"
        tabIndex={0}
        role="region"
        aria-label="Drawing of the trust graph; the list view says the same in words"
      >
        <svg
          width={layout.width * scale}
          height={layout.height * scale}
          viewBox={`0 0 ${layout.width} ${layout.height}`}
          role="group"
          aria-label="Trust graph"
        >
          {layout.columns.map(({ kind, title, x }) => (
            <text key={kind} class={`heading ${kind}`} x={x} y={36}>
              {title}
            </text>
          ))}
          {layout.lines.map(({ edge, d }) => (
            <path
              key={`${edge.from} ${edge.kind} ${edge.to}`}
              d={d}
              class={`edge ${edge.kind}${isLit(edge) ? ' lit' : ''}${edge.label !== undefined && refused.has(edge.label) ? ' refused' : ''}`}
            />
          ))}
          {graph.nodes.map(node => {
            const box = layout.boxes.get(node.id);
            if (box === undefined) return undefined;
            return (
              <Node
                key={node.id}
                node={node}
                box={box}
                isFocused={node.id === focus}
                onFocus={onFocus}
                onPoint={setPointed}
              />
            );
          })}
        </svg>
      </div>
      <Selected graph={graph} id={focus} />
    </>
  );
}

interface NodeProps {
  readonly node: GraphNode;
  readonly box: { readonly x: number; readonly y: number; readonly width: number; readonly height: number };
  readonly isFocused: boolean;
  readonly onFocus: (id: string) => void;
  readonly onPoint: (id: string) => void;
}

function Node({ node, box, isFocused, onFocus, onPoint }: NodeProps) {
  const { id, kind, label, state } = node;
  const isBad = state !== undefined && state !== 'Good' && state !== 'Due';
  const text = fitted(label);
  const choose = () => onFocus(isFocused ? '' : id);
  return (
    <g
      class={`node ${kind}${isBad ? ' bad' : ''}${isFocused ? ' focused' : ''}`}
      role="button"
      tabIndex={0}
      aria-pressed={isFocused}
      aria-label={`${kind} ${label}${state === undefined ? '' : `, ${state}`}`}
      onClick={choose}
      onKeyDown={event => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        choose();
      }}
      onFocus={() => onPoint(id)}
      onBlur={() => onPoint('')}
      onMouseEnter={() => onPoint(id)}
      onMouseLeave={() => onPoint('')}
    >
      <title>{[id, state, node.expires].filter(Boolean).join(', ')}</title>
      <rect x={box.x} y={box.y} width={box.width} height={box.height} rx={4} />
      <text x={box.x + 8} y={box.y + 17}>
        {isBad ? `! ${text}` : text}
      </text>
    </g>
  );
}

function Selected({ graph, id }: { graph: CertificateGraph; id: string }) {
  const now = useNow();
  const node = graph.nodes.find(candidate => candidate.id === id);
  if (node === undefined) return <p class="hint">Choose a box to see only what is connected with it.</p>;
  return (
    <Card title={node.label} wide>
      <p>
        {node.state !== undefined && <StateLabel state={node.state} />} {node.namespace}
        {node.expires !== undefined && (
          <>
            , ends <Relative at={node.expires} now={now} />
          </>
        )}{' '}
        {node.kind !== 'process' && <a href={`#/certificates/${node.id}`}>Details</a>}
      </p>
      <GraphList graph={graph} />
    </Card>
  );
}

function refusedEdges(model: Model): ReadonlySet<string> {
  return new Set(
    itemsOf(model, 'handshakes')
      .filter(isRefusing)
      .map(({ edge }) => edge),
  );
}

function Handshakes({ model }: { model: Model }) {
  const now = useNow();
  return (
    <>
      {!model.about.hasProber && (
        <p class="notice info">Nobody tries handshakes here. `rotunda up` and `rotunda console --probe` do.</p>
      )}
      <Table
        caption="Connections of the trust graph"
        empty="The trust graph has no connections."
        items={model.trust.edges}
        id={({ name }) => name}
        sortedBy="Connection"
        columns={[
          { title: 'Connection', sort: ({ name }) => name, cell: ({ name }) => name },
          { title: 'Client', sort: ({ client }) => client.process, cell: ({ client }) => client.process },
          { title: 'Server', sort: ({ server }) => server.process, cell: ({ server }) => server.process },
          {
            title: 'Handshakes',
            sort: ({ name }) => model.sections.handshakes.get(`/${name}`)?.refused ?? -1,
            cell: ({ name }) => <HandshakeLabel model={model} edge={name} />,
          },
          {
            title: 'Last accepted',
            cell: ({ name }) => <Relative at={model.sections.handshakes.get(`/${name}`)?.lastAcceptedAt} now={now} />,
          },
          {
            title: 'Refusals',
            cell: ({ name }) =>
              model.sections.handshakes
                .get(`/${name}`)
                ?.refusals.map(({ reason }) => reason)
                .join('; '),
          },
        ]}
      />
    </>
  );
}
