import { isRefusing } from '../../src/cli/console/model.ts';
import type { CertificateFacts } from '../../src/inventory/model.ts';
import { effectOfChange } from '../../src/trust/effect.ts';
import type { Edge, NodeSet, Side } from '../../src/trust/graph.ts';
import { isSameObject, type ObjectRef } from '../../src/trust/object.ts';
import { itemsOf, type Model } from '../live.ts';
import { Card, Empty } from '../parts/card.tsx';
import { Label } from '../parts/label.tsx';
import { Table } from '../parts/table.tsx';
import { Relative } from '../parts/time.tsx';
import { hrefOf } from '../route.ts';

const MOST_HISTORY = 30;
const EFFECTS = {
  restart: { tone: 'warn', icon: 'moving', text: 'Restart' },
  reload: { tone: 'good', icon: 'ok', text: 'Reload' },
  'file-only': { tone: 'plain', icon: 'leaf', text: 'File only' },
} as const;

/** Where it lies as a file, who reads it, and what a change does there. */
export function OnNodes({ model, object }: { model: Model; object: ObjectRef }) {
  const effects = effectOfChange(model.trust, object).map((effect, index) => ({ ...effect, index }));
  return (
    <Card title="Files on nodes, and what a change does" wide>
      <Table
        caption="Files on nodes"
        empty="No file on any node comes from it."
        items={effects}
        id={({ index }) => String(index)}
        columns={[
          {
            title: 'Effect',
            cell: ({ kind }) => (
              <Label tone={EFFECTS[kind].tone} icon={EFFECTS[kind].icon}>
                {EFFECTS[kind].text}
              </Label>
            ),
          },
          {
            title: 'File',
            cell: ({ delivery }) =>
              delivery.files.map(file => (
                <div key={file}>
                  <code class="break">{`${delivery.hostDirectory}/${file}`}</code>
                </div>
              )),
          },
          { title: 'Nodes', cell: ({ delivery }) => nodesOf(model, delivery.nodes).join(', ') || delivery.nodes },
          {
            title: 'Read by',
            cell: ({ uses }) => [...new Set(uses.map(({ process, takes }) => `${process} (${takes})`))].join(', '),
          },
          {
            title: 'By way of',
            cell: ({ path }) =>
              path.slice(1).map(ref => (
                <div key={ref.name}>
                  <a href={hrefOf(ref)}>{ref.name}</a>
                </div>
              )),
          },
        ]}
      />
    </Card>
  );
}

function nodesOf(model: Model, set: NodeSet): string[] {
  return itemsOf(model, 'nodes')
    .filter(({ roles }) => set === 'all' || roles.some(role => role === 'master' || role === 'control-plane'))
    .map(({ metadata }) => metadata.name)
    .sort();
}

/** Who shows it to whom, and who verifies with it. */
export function Connections({
  model,
  object,
  trustedBy,
}: {
  model: Model;
  object: ObjectRef;
  trustedBy: readonly ObjectRef[];
}) {
  const isHeld = ({ presents, verifiesWith }: Side) =>
    [presents, verifiesWith].some(
      held => typeof held === 'object' && 'object' in held && isSameObject(held.object, object),
    );
  const edges = model.trust.edges.filter(({ client, server }) => isHeld(client) || isHeld(server));
  return (
    <Card title="Verifiers and connections" wide>
      {trustedBy.length > 0 && (
        <p>
          Accepted with:{' '}
          {trustedBy.map((ref, index) => (
            <span key={`${ref.namespace}/${ref.name}`}>
              {index > 0 && ', '}
              <a href={hrefOf(ref)}>{`${ref.namespace}/${ref.name}`}</a>
            </span>
          ))}
        </p>
      )}
      <Table
        caption="Connections"
        empty="It is part of no connection in the trust graph."
        items={edges}
        id={({ name }) => name}
        columns={[
          { title: 'Connection', cell: ({ name }) => name },
          { title: 'Client', cell: ({ client }) => client.process },
          { title: 'Server', cell: ({ server }) => server.process },
          { title: 'Verified by', cell: edge => verifiersOf(edge) },
          { title: 'Handshakes', cell: ({ name }) => <HandshakeLabel model={model} edge={name} /> },
        ]}
      />
    </Card>
  );
}

function verifiersOf({ client, server }: Edge) {
  return [client, server].flatMap(({ process, verifiesWith }) =>
    verifiesWith === undefined
      ? []
      : [
          <div key={process}>
            {process} with <a href={hrefOf(verifiesWith.object)}>{verifiesWith.object.name}</a>
          </div>,
        ],
  );
}

export function HandshakeLabel({ model, edge }: { model: Model; edge: string }) {
  const report = model.sections.handshakes.get(`/${edge}`);
  if (report === undefined) return <span class="sub">not tried</span>;
  const { accepted, refused, unreachable, skipped } = report;
  if (isRefusing(report)) {
    return (
      <Label tone="bad" icon="error">
        {refused} refused, {accepted} accepted
      </Label>
    );
  }
  if (accepted > 0) {
    return (
      <Label tone="good" icon="ok">
        {accepted} accepted{refused > 0 && `, ${refused} refused before`}
      </Label>
    );
  }
  if (unreachable > 0) {
    return (
      <Label tone="warn" icon="warning">
        no answer
      </Label>
    );
  }
  return <span class="sub">{skipped ?? 'not yet'}</span>;
}

/** What was heard of it: events, changes seen by this console, and the birth of the certificate. */
export function History({
  model,
  object,
  certificate,
  now,
}: {
  model: Model;
  object: ObjectRef;
  certificate: CertificateFacts | undefined;
  now: number;
}) {
  const { namespace, name } = object;
  const events = itemsOf(model, 'events')
    .filter(({ message }) => message.includes(`"${name}" in "${namespace}"`))
    .map(({ metadata, lastAt, reason, message }) => ({
      id: `event ${metadata.name}`,
      at: lastAt,
      what: reason,
      text: message,
    }));
  const changes = itemsOf(model, 'changes')
    .filter(change => change.namespace === namespace && change.object === `${object.kind.toLowerCase()}/${name}`)
    .map(({ metadata, at, what, text }) => ({ id: `change ${metadata.name}`, at, what, text }));
  const birth =
    certificate === undefined
      ? []
      : [{ id: 'birth', at: certificate.notBefore, what: 'Valid from', text: certificate.subject }];
  const all = [...events, ...changes, ...birth].sort((a, b) => (a.at < b.at ? 1 : -1)).slice(0, MOST_HISTORY);
  return (
    <Card title="History" wide>
      {all.length === 0 ? (
        <Empty>Nothing is known of its past.</Empty>
      ) : (
        <ol class="feed">
          {all.map(({ id, at, what, text }) => (
            <li key={id}>
              <Relative at={at} now={now} /> <strong>{what}</strong> <span class="break">{text}</span>
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}
