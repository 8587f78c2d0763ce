import { useState } from 'preact/hooks';
import { isRefusing } from '../../src/cli/console/model.ts';
import { itemsOf, type Model } from '../live.ts';
import { Card, Empty } from '../parts/card.tsx';
import { Icon, type IconName } from '../parts/icon.tsx';
import type { Tone } from '../parts/label.tsx';
import { Label, RoleLabel } from '../parts/label.tsx';
import { Table } from '../parts/table.tsx';
import { Relative, useNow } from '../parts/time.tsx';
import { problemsOf } from '../problems.ts';
import { hrefOf } from '../route.ts';
import type { PageProps } from './page.ts';

const MOST_PROBLEMS = 10;
const MOST_NEXT = 10;
const MOST_CHANGES = 10;

/** How the cluster is, what comes next, what needs somebody. */
export function Overview({ model }: PageProps) {
  const now = useNow();
  const problems = problemsOf(model);
  const [isAll, setAll] = useState(false);
  const shown = isAll ? problems : problems.slice(0, MOST_PROBLEMS);
  return (
    <>
      <Tiles model={model} />
      <div class="grid">
        <Card title="Needs attention" wide>
          {problems.length === 0 ? (
            <p class="all-good">
              <Icon name="ok" /> Nothing: every certificate is good, nothing is degraded.
            </p>
          ) : (
            <ul class="problems">
              {shown.map(({ id, tone, icon, what, text, href }) => (
                <li key={id}>
                  <Label tone={tone} icon={icon}>
                    {what}
                  </Label>{' '}
                  {href === undefined ? text : <a href={href}>{text}</a>}
                </li>
              ))}
            </ul>
          )}
          {shown.length < problems.length && (
            <button type="button" onClick={() => setAll(true)}>
              Show all {problems.length}
            </button>
          )}
        </Card>
        <NextRotations model={model} now={now} />
        <Changes model={model} now={now} />
        <StandIns model={model} />
      </div>
    </>
  );
}

function Tiles({ model }: { model: Model }) {
  const [certificates, bundles, nodes, pools] = [
    itemsOf(model, 'certificates'),
    itemsOf(model, 'bundles'),
    itemsOf(model, 'nodes'),
    itemsOf(model, 'pools'),
  ];
  const signers = certificates.filter(({ role }) => role === 'signer');
  const leaves = certificates.filter(({ role }) => role !== 'signer');
  const good = (items: readonly { readonly state: string }[]) =>
    items.filter(({ state }) => state === 'Good' || state === 'Due').length;
  const operators = itemsOf(model, 'operators');
  const healthy = operators.filter(
    ({ conditions }) => !conditions.some(({ type, status }) => type.endsWith('Degraded') && status === 'True'),
  );
  const handshakes = itemsOf(model, 'handshakes').filter(({ accepted, refused }) => accepted + refused > 0);
  const accepted = handshakes.filter(handshake => !isRefusing(handshake));
  const pods = itemsOf(model, 'pods');
  return (
    <ul class="tiles" aria-label="Health at a glance">
      <Tile
        title="Certificates"
        href="#/certificates?kind=target"
        part={good(leaves)}
        whole={leaves.length}
        word="good"
      />
      <Tile title="Signers" href="#/certificates?kind=signer" part={good(signers)} whole={signers.length} word="good" />
      <Tile
        title="CA bundles"
        href="#/certificates?kind=ca-bundle"
        part={good(bundles)}
        whole={bundles.length}
        word="good"
      />
      <Tile title="Operators" href="#/rollouts" part={healthy.length} whole={operators.length} word="healthy" />
      <Tile
        title="Nodes"
        href="#/machine-config"
        part={nodes.filter(({ ready }) => ready).length}
        whole={nodes.length}
        word="ready"
      />
      <Tile
        title="Static pods"
        href="#/rollouts"
        part={pods.filter(({ ready }) => ready).length}
        whole={pods.length}
        word="ready"
      />
      {pools.length > 0 && (
        <Tile
          title="Pools"
          href="#/machine-config"
          part={pools.filter(({ degraded }) => !degraded).length}
          whole={pools.length}
          word="healthy"
        />
      )}
      {model.about.hasProber && (
        <Tile
          title="Connections"
          href="#/graph?view=handshakes"
          part={accepted.length}
          whole={handshakes.length}
          word="accepted"
        />
      )}
    </ul>
  );
}

function Tile({
  title,
  href,
  part,
  whole,
  word,
}: {
  title: string;
  href: string;
  part: number;
  whole: number;
  word: string;
}) {
  const [tone, icon]: [Tone, IconName] =
    whole === 0 ? ['plain', 'none'] : part === whole ? ['good', 'ok'] : ['warn', 'warning'];
  return (
    <li>
      <a class={`tile ${tone}`} href={href}>
        <span class="tile-title">{title}</span>
        <span class="tile-value">
          <Icon name={icon} /> {part}
          <small> of {whole}</small>
        </span>
        <span class="tile-word">{word}</span>
      </a>
    </li>
  );
}

function NextRotations({ model, now }: { model: Model; now: number }) {
  const items = [...itemsOf(model, 'certificates'), ...itemsOf(model, 'bundles')]
    .filter(({ next }) => next !== undefined && next.action !== 'fail')
    .toSorted((a, b) => ((a.next?.at ?? '') < (b.next?.at ?? '') ? -1 : 1))
    .slice(0, MOST_NEXT);
  return (
    <Card title="Rotates next" wide aside={<a href="#/timeline">Timeline</a>}>
      <Table
        caption="What rotates next"
        empty="Nothing here is rotated by rules we know."
        items={items}
        id={({ role, metadata }) => `${role}/${metadata.namespace}/${metadata.name}`}
        columns={[
          {
            title: 'Name',
            cell: ({ role, metadata: { namespace = '', name } }) => (
              <a href={hrefOf({ kind: role === 'ca-bundle' ? 'ConfigMap' : 'Secret', namespace, name })}>{name}</a>
            ),
          },
          { title: 'Kind', cell: ({ role }) => <RoleLabel role={role} /> },
          { title: 'When', cell: ({ next }) => (next?.at === undefined ? 'now' : <Relative at={next.at} now={now} />) },
          { title: 'Why', cell: ({ next }) => next?.reason.split('\n', 1)[0] },
        ]}
      />
    </Card>
  );
}

function Changes({ model, now }: { model: Model; now: number }) {
  const changes = itemsOf(model, 'changes').toReversed().slice(0, MOST_CHANGES);
  return (
    <Card title="Seen since this console started" wide aside={<a href="#/events">Events</a>}>
      {changes.length === 0 ? (
        <Empty>Nothing has changed yet.</Empty>
      ) : (
        <ol class="feed">
          {changes.map(({ metadata, at, object, text }) => (
            <li key={metadata.name}>
              <Relative at={at} now={now} /> <strong>{object}</strong> {text}
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}

function StandIns({ model }: { model: Model }) {
  const standIns = itemsOf(model, 'pods').filter(({ standIn }) => standIn);
  if (standIns.length === 0) return undefined;
  const operands = [...new Set(standIns.map(({ operand }) => operand))].join(', ');
  return (
    <Card title="Stand-ins in use" wide>
      <p>
        <Icon name="info" /> {operands} on {new Set(standIns.map(({ node }) => node)).size} nodes: TLS servers that read
        the same files and follow the same reload rules as the real program, which is not on this machine.
      </p>
    </Card>
  );
}
